"""One REPL, seen from the host: runs blocks, serves their calls, survives the worker's death."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rlm_rag.errors import ProtocolError, SandboxError, SandboxUnavailableError, WorkerLostError
from rlm_rag.sandbox import frames
from rlm_rag.sandbox.blocks import (
    AnswerState,
    BlockError,
    BlockResult,
    Said,
    Serve,
    ServiceCall,
    ServiceError,
    ServiceReply,
    WorkerSetup,
)
from rlm_rag.sandbox.boot import boot_command, worker_hash
from rlm_rag.sandbox.calls import MAX_OUTSTANDING_CALLS, Clock
from rlm_rag.sandbox.confine.view import Program, WorkerLimits
from rlm_rag.sandbox.opening import Isolation, open_transport
from rlm_rag.sandbox.peer import Peer
from rlm_rag.sandbox.snapshots import KeptVariables
from rlm_rag.sandbox.transport import Transport
from rlm_rag.shown import printable, whole

__all__ = [
    "MAX_OUTSTANDING_CALLS",
    "AnswerState",
    "BlockError",
    "BlockResult",
    "Said",
    "Serve",
    "ServiceCall",
    "ServiceError",
    "ServiceReply",
    "Session",
    "WorkerLimits",
    "WorkerSetup",
]

# Room for the worker's own line on what it left out.
CUT_NOTE_CHARS = 200
# How long a block that nobody waits for has to stop; 20 ms do, but for one long call in C.
ABANDON_SECONDS = 0.4
# More than a worker allows itself.
RESTORE_SECONDS = 10.0
# Where no block came to its end in as many workers one after the other, code that was brought back
# may be the reason: the next gets plain data alone, reading which runs none.
_WHOLE_RESTORATIONS = 2
MAX_MEMORY_CHARS = 2_000

_Outcome = dict[str, Any] | BlockError


class Session:
    """A worker over one corpus, restarted when it is lost; used in one event loop.

    `serve` answers the worker's calls, each in a task of its own, at most
    `MAX_OUTSTANDING_CALLS` at once. A block that runs out of time is interrupted, and its worker
    killed `interrupt_grace_seconds` later if that did not help. A worker is replaced at most
    `max_restarts` times. `program` is the worker's command line inside the layer. `kept` is what
    the worker of an earlier session left; `restored` are the names that the first one has of it.
    """

    def __init__(
        self,
        *,
        layer: Isolation,
        packed_path: Path | None,
        serve: Serve,
        setup: WorkerSetup,
        limits: WorkerLimits | None = None,
        program: Program = boot_command,
        start_seconds: float = 10,
        interrupt_grace_seconds: float = 2,
        max_restarts: int = 3,
        kept: KeptVariables | None = None,
    ) -> None:
        self._layer = layer
        self._packed_path = packed_path
        self._serve = serve
        self._setup = setup
        self._limits = limits
        self._program = program
        self._start_seconds = start_seconds
        self._grace_seconds = interrupt_grace_seconds
        self._restarts_left = max_restarts
        self._peer: Peer | None = None
        self._variables: tuple[tuple[str, str, str], ...] = ()
        self._kept = kept or KeptVariables()
        self._record: Sequence[Said] = ()
        self._told = 0
        self.restored: frozenset[str] = frozenset()
        # How often what is kept was brought back since a block last came to its end.
        self._restorations = 0
        self._started = False
        self._running = False
        self._closed = False
        self.worker_hash = worker_hash()
        self.isolation = layer.name

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def start(self) -> None:
        """Start the worker and wait for its greeting.

        Raises:
            SandboxUnavailableError: it did not start, or not within `start_seconds`.
        """
        if self._closed:
            raise SandboxError("the session is closed")
        self.restored = await self._reopen()
        self._started = True

    async def _open_peer(self) -> frozenset[str]:
        """Start a worker with what is kept of the last one; return the names restored."""
        transport = await open_transport(
            self._layer, self._packed_path, limits=self._limits, program=self._program
        )
        try:
            async with asyncio.timeout(self._start_seconds):
                await _greet(transport)
                await transport.send(frames.encode(self._init(transport)))
                self._told = 0
                await transport.send(self._untold())
            names = await self._restore(transport)
        except BaseException as error:
            await transport.kill()
            if isinstance(error, (TimeoutError, ProtocolError, WorkerLostError)):
                why = f"nothing for {self._start_seconds:g} s" if not str(error) else str(error)
                raise SandboxUnavailableError(
                    f"the worker did not start: {why} ({transport.ending})"
                ) from error
            raise
        tools = frozenset(self._setup.tools)
        services, waiting = tools.union(self._setup.services), tools | self._setup.waiting
        self._peer = Peer(transport, self._serve, services, waiting, self._kept)
        self._peer.was_restored = bool(names)
        return names

    async def _restore(self, transport: Transport) -> frozenset[str]:
        if not len(self._kept):
            return frozenset()
        # Reading a snapshot runs code that the lost worker chose.
        plain = self._restorations >= _WHOLE_RESTORATIONS
        self._restorations += 1
        async with asyncio.timeout(RESTORE_SECONDS):
            for frame in self._kept.frames(plain=plain):
                await transport.send(frame)
            restored = await _next_message(transport)
        if restored["t"] != "restored":
            raise ProtocolError("its first word after a restoration was not what it restored")
        self._kept.keep_only(restored["names"])
        return frozenset(restored["names"])

    def _drop_what_harms(self, peer: Peer | None) -> None:
        """Forget what is kept if a worker that was given it broke the protocol, or just ended."""
        if peer is None or not peer.was_restored:
            return
        if peer.broke_protocol or (self._restorations and not peer.in_block):
            self._kept = KeptVariables()

    def _init(self, transport: Transport) -> dict[str, Any]:
        return {
            "t": "init",
            "corpus": transport.corpus,
            "libraries": transport.libraries,
            "shape": self._setup.shape,
            "services": list(self._setup.services),
            "tools": list(self._setup.tools),
            "info": dict(self._setup.info),
            "await_seconds": self._setup.await_seconds,
            "numbers": self._setup.numbers,
            "added": list(self._setup.added.items()),
            "task": self._setup.task,
            "contexts": [list(each) for each in self._setup.contexts],
        }

    def tell_history(self, record: Sequence[Said]) -> None:
        """Have the next block find `record` as `history`; it must begin with what it was before."""
        self._record = record

    def _untold(self) -> bytes:
        """Return the frames of what the worker's `history` lacks."""
        new = self._record[self._told :]
        self._told = len(self._record)
        return b"".join(
            frames.encode({"t": "history", "said": [s.question, s.turn, s.role, s.content]})
            for s in new
        )

    async def keep(self, *, seconds: float) -> KeptVariables:
        """Return what the worker has between blocks; after `seconds`, its last whole snapshot."""
        peer = self._peer
        if peer is not None and not peer.ended and not self._running:
            with suppress(TimeoutError, WorkerLostError):
                async with asyncio.timeout(seconds):
                    await peer.keep()
        self._kept.drop_arriving()
        return self._kept

    async def run(
        self, code: str, *, block: int, timeout_seconds: float, output_chars: int
    ) -> BlockResult:
        """Run one block and return what it did, whatever became of it.

        Time in which a tool or one of the setup's `waiting` services is `uncounted`, since it
        waits for somebody else itself, is not counted towards `timeout_seconds`.
        Cancelling interrupts the block, or kills the worker where that does not help.

        Raises:
            WorkerLostError: the worker was lost and may not be replaced again.
            Exception: whatever `serve` raised that is not a `ServiceError`.
        """
        if self._closed or self._running:
            raise SandboxError("the session is closed, or another block runs")
        self._running = True
        try:
            return await self._run(code, block, timeout_seconds, output_chars)
        finally:
            self._running = False

    async def look(
        self, code: str, *, block: int, timeout_seconds: float, output_chars: int
    ) -> BlockResult:
        """Run one last block, in a new worker where the last one was lost for good.

        Raises:
            WorkerLostError: that one is lost too, or does not start.
        """
        if self._peer is None or self._peer.ended:
            self._restarts_left = max(self._restarts_left, 1)
        return await self.run(
            code, block=block, timeout_seconds=timeout_seconds, output_chars=output_chars
        )

    async def _run(
        self, code: str, block: int, timeout_seconds: float, output_chars: int
    ) -> BlockResult:
        if not self._started:
            raise SandboxError("the session was not started")
        lost: tuple[str, ...] = ()
        restarted, restored_block = False, 0
        if self._peer is None or self._peer.ended:
            why = "it was ended" if self._peer is None else self._peer.why
            lost, restarted = await self._replace(why), True
            restored_block = self._kept.block
        assert self._peer is not None
        peer, clock = self._peer, self._peer.begin(block, code, timeout_seconds)
        frame = {"t": "exec", "block": block, "code": code, "output_chars": output_chars}
        try:
            outcome = await self._outcome(peer, clock, self._untold() + frames.encode(frame))
        except BaseException as error:
            await self._abandon(peer, interrupt=isinstance(error, asyncio.CancelledError))
            raise
        finally:
            seconds, waited = clock.stop()
        if isinstance(outcome, BlockError):
            lost, restarted = (*lost, *await self._replace(outcome.message)), True
            restored_block = self._kept.block
            told: dict[str, Any] = {"error": outcome, "variables": self._variables}
        else:
            told = _told(outcome, clock, output_chars)
            self._variables = told["variables"]
            self._restorations = 0
        return BlockResult(
            block,
            seconds=seconds,
            waited_seconds=waited,
            restarted=restarted,
            restored_block=restored_block,
            lost=lost,
            **told,
        )

    async def _outcome(self, peer: Peer, clock: Clock, exec_frame: bytes) -> _Outcome:
        """Return the worker's `done`, or why there is none."""
        try:
            sent = peer.transport.send(exec_frame)
            if not sent.done():
                # A worker that does not read must not hold the host for ever.
                async with asyncio.timeout(clock.limit_seconds + self._grace_seconds):
                    await sent
            await clock.over
            if not peer.done.done():
                await self._interrupt(peer, self._grace_seconds)
            if peer.done.done():
                return peer.done.result()
        except TimeoutError:
            pass
        except WorkerLostError as error:
            return BlockError("WorkerLost", peer.why or error.message, "")
        message = (
            f"the block ran longer than {clock.limit_seconds:g} s and did not stop when "
            "interrupted, so its process was ended"
        )
        return BlockError("Timeout", message, "")

    async def _interrupt(self, peer: Peer, seconds: float) -> None:
        """Interrupt the running block and wait for its end, no longer than `seconds`.

        Raises:
            TimeoutError: the block goes on.
            WorkerLostError: the worker is gone.
        """
        async with asyncio.timeout(seconds):
            await peer.transport.interrupt()
            await asyncio.wait({peer.done})

    async def _abandon(self, peer: Peer, *, interrupt: bool) -> None:
        """Leave a block whose outcome nobody waits for; keep the worker if the block stops."""
        peer.calls.cancel_all()
        kept = False
        try:
            if interrupt:
                await self._interrupt(peer, min(self._grace_seconds, ABANDON_SECONDS))
                self._variables = _variables(peer.done.result())
                kept = True
        except (TimeoutError, WorkerLostError):
            pass  # A block that does not stop, or a worker that is gone, is ended below.
        finally:
            if not kept:
                await self._end_worker()

    async def _replace(self, why: str) -> tuple[str, ...]:
        """End the worker and start another; return the names of the variables lost."""
        self._drop_what_harms(self._peer)
        await self._end_worker()
        self._kept.drop_arriving()
        if self._restarts_left <= 0:
            raise WorkerLostError(f"the sandbox's worker was lost too often; the last time: {why}")
        self._restarts_left -= 1
        try:
            restored = await self._reopen()
        except SandboxUnavailableError as error:
            raise WorkerLostError(f"{why}; no new one started: {error.message}") from error
        lost = tuple(name for name, _, _ in self._variables if name not in restored)
        self._variables = tuple(row for row in self._variables if row[0] in restored)
        return lost

    async def _reopen(self) -> frozenset[str]:
        try:
            return await self._open_peer()
        except SandboxUnavailableError:
            if not len(self._kept):
                raise
            # What was kept may be what ended it.
            self._kept = KeptVariables()
            return await self._open_peer()

    async def _end_worker(self) -> None:
        peer, self._peer = self._peer, None
        if peer is not None:
            await peer.close()

    async def aclose(self) -> None:
        """End the worker and cancel what it waits for; idempotent."""
        self._closed = True
        await self._end_worker()


async def _greet(transport: Transport) -> None:
    hello = await _next_message(transport)
    if hello["t"] != "hello":
        raise ProtocolError("its first word was not a greeting")
    if hello["version"] != frames.VERSION:
        raise ProtocolError(f"it speaks version {hello['version']}, not {frames.VERSION}")


async def _next_message(transport: Transport) -> dict[str, Any]:
    assembler = frames.Assembler()
    while frame := await transport.receive():
        message = assembler.feed(frame)
        if message is not None:
            frames.check_worker_message(message)
            return message
    raise WorkerLostError("it ended before its first word")


def _told(done: Mapping[str, Any], clock: Clock, output_chars: int) -> dict[str, Any]:
    """Return what a worker says of its block, for a `BlockResult`.

    The worker is held to the bound that it was given, its own note of what it cut apart.
    """
    most = output_chars + CUT_NOTE_CHARS
    stdout, stderr = whole(done["stdout"]), whole(done["stderr"])
    value, answer = done["value"], done["answer"]
    return {
        "stdout": stdout[:most],
        "stderr": stderr[:most],
        "stdout_cut": done["stdout_cut"] + max(0, len(stdout) - most),
        "stderr_cut": done["stderr_cut"] + max(0, len(stderr) - most),
        "value": None if value is None else whole(value)[:most],
        "error": _error(done["error"], clock, most),
        "answer": None if answer is None else _answer(answer),
        "overwritten": tuple(map(whole, done["overwritten"])),
        "variables": _variables(done),
        "memory": tuple(
            (whole(name), whole(text)[:MAX_MEMORY_CHARS]) for name, text in done["memory"]
        ),
    }


def _answer(told: Mapping[str, Any]) -> AnswerState:
    return AnswerState(content=whole(told["content"]), ready=told["ready"])


def _error(raised: Mapping[str, str] | None, clock: Clock, most_chars: int) -> BlockError | None:
    """Return an error as it may be shown anywhere, whatever the exception says."""
    traceback = "" if raised is None else printable(raised["traceback"])[:most_chars]
    if clock.expired:
        message = (
            f"the block ran longer than {clock.limit_seconds:g} s and was interrupted; "
            "what it had assigned is kept"
        )
        return BlockError("Timeout", message, traceback)
    if raised is None:
        return None
    message = printable(raised["message"])[:most_chars]
    return BlockError(printable(raised["type"]), message, traceback)


def _variables(done: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    return tuple((whole(name), whole(kind), whole(size)) for name, kind, size in done["variables"])
