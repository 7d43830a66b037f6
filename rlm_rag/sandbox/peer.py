"""One live worker as the host sees it: its messages read and checked until it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Set
from typing import Any

from rlm_rag.errors import ProtocolError, WorkerLostError
from rlm_rag.sandbox import frames
from rlm_rag.sandbox.blocks import Serve
from rlm_rag.sandbox.calls import Calls, Clock
from rlm_rag.sandbox.snapshots import KeptVariables
from rlm_rag.sandbox.transport import Transport


class Peer:
    """A worker that has greeted: `done` is the running block's end.

    Once it `ended`, `why` says so in words, and `broke_protocol` and `in_block` how and when.
    `was_restored` says that it was given what another worker left.
    """

    def __init__(
        self,
        transport: Transport,
        serve: Serve,
        services: Set[str],
        waiting: Set[str],
        kept: KeptVariables,
    ) -> None:
        self.transport = transport
        self._kept = kept
        self.calls = Calls(transport, serve, services, waiting, self._fail)
        self.done: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.ended = False
        self.why = ""
        self.broke_protocol = False
        self.was_restored = False
        self._keeping: asyncio.Future[None] | None = None
        self._block: int | None = None
        self._clock: Clock | None = None
        self._fault: Exception | None = None
        self._reader = asyncio.get_running_loop().create_task(self._read())

    @property
    def in_block(self) -> bool:
        """Whether a block runs, or ran when the worker ended."""
        return self._block is not None

    def begin(self, block: int, code: str, limit_seconds: float) -> Clock:
        """Expect the `done` of `block`, and start its clock."""
        self.done = asyncio.get_running_loop().create_future()
        self._block = block
        self._kept.begin_block(block, code)
        self._clock = Clock(limit_seconds, self.transport.cpu_seconds)
        if self._fault is not None:
            self._fail(self._fault)
        return self._clock

    async def keep(self) -> None:
        """Have the worker leave all that its last snapshots left out.

        Raises:
            WorkerLostError: it ended instead.
        """
        self._keeping = asyncio.get_running_loop().create_future()
        self._kept.allow_snapshot()
        if self.ended:
            raise WorkerLostError(self.why)
        await self.transport.send(frames.encode({"t": "keep"}))
        await self._keeping

    async def close(self) -> None:
        """Kill the worker; no process and no task of it is left on return."""
        try:
            await self.transport.kill()
        finally:
            await self.calls.close()
            self._reader.cancel()
            await asyncio.wait({self._reader})
            if self.done.done() and not self.done.cancelled():
                self.done.exception()

    async def _read(self) -> None:
        try:
            why = await self._read_to_end()
            # Killed here, so that a worker which broke the protocol cannot go on for a moment.
            await self.transport.kill()
        except Exception as error:  # noqa: BLE001 - a fault of the host's: `run` raises it
            self.ended = True
            self._fail(error)
            return
        ending = self.transport.ending
        self.why = f"{why} ({ending})" if ending else why
        self.ended = True
        self._settle(WorkerLostError(self.why))

    async def _read_to_end(self) -> str:
        assembler = frames.Assembler()
        size_bytes = 0
        try:
            while frame := await self.transport.receive():
                size_bytes += len(frame)
                message = assembler.feed(frame)
                if message is not None:
                    await self._take(message, size_bytes)
                    size_bytes = 0
        except (ProtocolError, WorkerLostError) as error:
            self.broke_protocol = isinstance(error, ProtocolError)
            return error.message
        return "the worker process ended"

    async def _take(self, message: Mapping[str, Any], size_bytes: int) -> None:
        frames.check_worker_message(message)
        if message["t"] == "call":
            running = self._block is not None and message["block"] == self._block
            await self.calls.take(message, size_bytes, self._clock if running else None)
        elif message["t"] == "done" and message["block"] == self._block:
            self._block = None
            self._settle(dict(message))
        elif message["t"] == "piece":
            self._kept.take_piece(message)
        elif message["t"] == "snapshot":
            self._kept.take_snapshot(message)
        elif message["t"] == "kept" and self._keeping is not None and not self._keeping.done():
            self._keeping.set_result(None)
        else:
            raise ProtocolError(f"a {message['t']} frame came when none was due")

    def _fail(self, error: Exception) -> None:
        self._fault = error
        self._settle(error)

    def _settle(self, outcome: dict[str, Any] | Exception) -> None:
        keeping = self._keeping
        if isinstance(outcome, Exception) and keeping is not None and not keeping.done():
            keeping.set_exception(outcome)
        if not self.done.done():
            if isinstance(outcome, Exception):
                self.done.set_exception(outcome)
            else:
                self.done.set_result(outcome)
        if self._clock is not None:
            self._clock.wake()
