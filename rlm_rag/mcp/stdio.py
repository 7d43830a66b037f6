"""Serving one client over standard input and output."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, BinaryIO, cast

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from rlm_rag.child import private_streams
from rlm_rag.engine.threads import in_thread


async def serve_stdio(server: Server[Any]) -> None:
    """Serve whoever started this process, until its messages end.

    Standard output carries messages of the protocol alone: whatever else prints there from now
    on, here or in a child process, goes to standard error, and reads an empty standard input.
    """
    incoming, outgoing = private_streams()
    # They are used as these two are, but never wait where a cancellation cannot reach them.
    stdin = cast("anyio.AsyncFile[str]", _Incoming(incoming))
    stdout = cast("anyio.AsyncFile[str]", _Outgoing(outgoing))
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

    def _hand_over(self) -> None:
        try:
            for line in self._file:
                self._put(line.decode("utf-8", "replace"))
        finally:
            self._put(None)

    def _put(self, line: str | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._read.put_nowait, line)


class _Outgoing:
    """A pipe that is written to in threads that nothing waits for: its reader may have stopped."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    async def write(self, text: str) -> None:
        await in_thread(self._file.write, text.encode("utf-8"))

    async def flush(self) -> None:
        await in_thread(self._file.flush)
