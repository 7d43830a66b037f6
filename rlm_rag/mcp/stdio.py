"""Serving one client over standard input and output."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, BinaryIO, cast

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from rlm_rag.child import private_streams
from rlm_rag.engine.threads import in_thread
from rlm_rag.mcp.messages import refusal


async def serve_stdio(server: Server[Any], *, say: Callable[[str], None]) -> None:
    """Serve whoever started this process, until its messages end.

    A line that is no message is answered with an error, and told to `say`.

    Standard output carries messages of the protocol alone: whatever else prints there from now
    on, here or in a child process, goes to standard error, and reads an empty standard input.
    """
    incoming, outgoing = private_streams()
    # They are used as these two are, but never wait where a cancellation cannot reach them.
    source = _Incoming(incoming)
    target = _Outgoing(outgoing, left=source.end)
    messages_only = _Messages(source, target, say)
    stdin, stdout = (
        cast("anyio.AsyncFile[str]", messages_only),
        cast("anyio.AsyncFile[str]", target),
    )
    async with stdio_server(stdin, stdout) as (messages, replies):
        await server.run(messages, replies, server.create_initialization_options())


class _Incoming:
    """The lines of a pipe, read in a thread that nothing waits for.

    A server that is asked to end must not wait for its client to say one thing more.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._loop = asyncio.get_running_loop()
        self._read: asyncio.Queue[str | None] = asyncio.Queue()
        threading.Thread(target=self._hand_over, name="rlm-rag-stdin", daemon=True).start()

    def __aiter__(self) -> _Incoming:
        return self

    async def __anext__(self) -> str:
        line = await self._read.get()
        if line is None:
            raise StopAsyncIteration
        return line

    def end(self) -> None:
        """Have the lines end here, whatever comes."""
        self._put(None)

    def _hand_over(self) -> None:
        try:
            for line in self._file:
                self._put(line.decode("utf-8", "replace"))
        finally:
            self.end()

    def _put(self, line: str | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._read.put_nowait, line)


class _Messages:
    """The lines that are messages; the SDK would drop the others without an answer."""

    def __init__(self, source: _Incoming, target: _Outgoing, say: Callable[[str], None]) -> None:
        self._source = source
        self._target = target
        self._say = say

    def __aiter__(self) -> _Messages:
        return self

    async def __anext__(self) -> str:
        while True:
            line = await self._source.__anext__()
            refused = refusal(line) if line.strip() else None
            if line.strip() and refused is None:
                return line
            if refused is not None:
                self._say(f"refused what the client said: {refused.error.message}")
                await self._target.write(f"{refused.model_dump_json(by_alias=True)}\n")
                await self._target.flush()


class _Outgoing:
    """A pipe that is written to in threads that nothing waits for: its reader may have stopped.

    `left` is called where there is no reader any more.
    """

    def __init__(self, file: BinaryIO, *, left: Callable[[], None]) -> None:
        self._file = file
        self._left = left

    async def write(self, text: str) -> None:
        await self._do(self._file.write, text.encode("utf-8"))

    async def flush(self) -> None:
        await self._do(self._file.flush)

    async def _do(self, write: Callable[..., object], *written: bytes) -> None:
        try:
            await in_thread(write, *written)
        except BrokenPipeError:
            self._left()
