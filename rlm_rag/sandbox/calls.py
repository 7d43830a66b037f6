"""The calls of one worker that the host serves, and the clock that some of them stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any

from rlm_rag.errors import ProtocolError, WorkerLostError
from rlm_rag.sandbox import frames
from rlm_rag.sandbox.blocks import Serve, ServiceCall, ServiceError, ServiceReply
from rlm_rag.sandbox.halves import halves
from rlm_rag.sandbox.transport import Transport

MAX_OUTSTANDING_CALLS = 256
# Four of the largest messages: what hostile code can have its host hold.
MAX_OUTSTANDING_BYTES = 4 * frames.MAX_MESSAGE_BYTES
# What a call gets may be larger than a message: a batch of 100,000 prompts was paid for.
MAX_REPLY_MESSAGES = 16

# How often it is looked at what a waiting worker computes, at most.
_LOOK_SECONDS = 0.05


class Clock:
    """A block's time, which stands still while it waits for somebody else and computes nothing.

    `over` is set when the time is up (then `expired` is true), or by `wake` before that.
    `cpu_seconds` tells what the worker has computed so far.
    """

    def __init__(self, limit_seconds: float, cpu_seconds: Callable[[], float]) -> None:
        self.limit_seconds = limit_seconds
        self._cpu_seconds = cpu_seconds
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.expired = False
        self._began = self._resumed = time.monotonic()
        self._worked = 0.0
        self._waits = 0
        # What was computed in waits that are over, and when the present one began.
        self._computed = 0.0
        self._wait_began = (0.0, 0.0)
        self._alarm: asyncio.TimerHandle | None = None
        self._stopped = False
        self._arm()

    def _arm(self) -> None:
        left = max(0.0, self.limit_seconds - self._spent_seconds())
        if self._waits:
            left = max(left, _LOOK_SECONDS)
        self._alarm = asyncio.get_running_loop().call_later(left, self._look)

    def _look(self) -> None:
        """Expire, unless a part of the time was spent waiting."""
        if self._waits and self._spent_seconds() < self.limit_seconds:
            self._arm()
        else:
            self._expire()

    def _spent_seconds(self) -> float:
        present = self._computed_seconds() if self._waits else 0.0
        return self._worked + self._computed + present

    def _computed_seconds(self) -> float:
        """How much of the present wait the worker spent computing, in however many threads."""
        began, cpu = self._wait_began
        return max(0.0, min(time.monotonic() - began, self._cpu_seconds() - cpu))

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _expire(self) -> None:
        self.expired = not self.over.done()
        self.wake()

    def wake(self) -> None:
        """Say that the block ended, or will not end."""
        if not self.over.done():
            self.over.set_result(None)

    def wait_began(self) -> None:
        """Stand still, unless another wait goes on."""
        self._waits += 1
        if self._waits == 1 and not self._stopped:
            now = time.monotonic()
            self._worked += now - self._resumed
            self._wait_began = (now, self._cpu_seconds())
            self._disarm()
            self._arm()

    def wait_ended(self) -> None:
        """Go on, unless another wait goes on."""
        self._waits -= 1
        if self._waits == 0 and not self._stopped:
            self._computed += self._computed_seconds()
            self._resumed = time.monotonic()
            self._disarm()
            self._arm()

    def stop(self) -> tuple[float, float]:
        """Stop for good; return the wall time, and the part of it that stood still."""
        now = time.monotonic()
        if not self._stopped:
            self._stopped = True
            self._disarm()
            if self._waits == 0:
                self._worked += now - self._resumed
        wall = now - self._began
        return wall, max(0.0, wall - self._worked)


# The clock of the block that the service at work was called from, where the service may stop it.
_clock: ContextVar[Clock | None] = ContextVar("clock", default=None)


@contextmanager
def uncounted() -> Iterator[None]:
    """Stop the clock of the calling block for as long as a service waits for somebody else.

    Only the wait itself is given to the block: what the host does before and after, and sending
    the reply to a worker that may not read it, is the block's own time. Without a block, or in a
    service that is not among the setup's `waiting`, nothing.
    """
    clock = _clock.get()
    if clock is None:
        yield
        return
    clock.wait_began()
    try:
        yield
    finally:
        clock.wait_ended()


class Calls:
    """The calls of one worker that are being served; those of `waiting` may stop its clock."""

    def __init__(
        self,
        transport: Transport,
        serve: Serve,
        services: Set[str],
        waiting: Set[str],
        fail: Callable[[Exception], None],
    ) -> None:
        self._transport = transport
        self._serve = serve
        self._services = services
        self._waiting = waiting
        self._fail = fail
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._held_bytes = 0
        # A worker that reads nothing would else have its host hold every reply in full.
        self._sending = asyncio.Lock()

    async def take(self, message: Mapping[str, Any], size_bytes: int, clock: Clock | None) -> None:
        """Serve a call in a task of its own, or refuse it where too much is outstanding."""
        number = message["call"]
        if number in self._tasks:
            raise ProtocolError("a call came twice")
        if message["name"] not in self._services:
            text = f"{message['name']} is not offered here"
            await self._transport.send(_error_frame(number, "unknown_service", text))
            return
        if len(self._tasks) >= MAX_OUTSTANDING_CALLS:
            text = f"more than {MAX_OUTSTANDING_CALLS} calls at once; use the batched functions"
            await self._transport.send(_error_frame(number, "too_many_calls", text))
            return
        if self._held_bytes + size_bytes > MAX_OUTSTANDING_BYTES:
            text = f"the arguments of calls at once are more than {MAX_OUTSTANDING_BYTES:,} bytes"
            await self._transport.send(_error_frame(number, "too_many_calls", text))
            return
        call = ServiceCall(
            number, message["block"], message["name"], tuple(message["args"]), message["kwargs"]
        )
        context = copy_context()
        context.run(_clock.set, clock if call.name in self._waiting else None)
        task = asyncio.get_running_loop().create_task(self._answer(call), context=context)
        self._tasks[number] = task
        self._held_bytes += size_bytes
        task.add_done_callback(lambda _: self._forget(number, size_bytes))

    def _forget(self, number: int, size_bytes: int) -> None:
        del self._tasks[number]
        self._held_bytes -= size_bytes

    async def _answer(self, call: ServiceCall) -> None:
        try:
            messages = await self._reply(call)
            async with self._sending:
                for frame in messages:
                    try:
                        await self._transport.send(frame)
                    except WorkerLostError:
                        return  # The reader notices the end, and says how it came.
        except Exception as error:  # noqa: BLE001 - a fault of the host's: `run` raises it
            self._fail(error)

    async def _reply(self, call: ServiceCall) -> Iterable[bytes]:
        try:
            return _reply_frames(call.call, await self._serve(call))
        except ServiceError as error:
            return (_error_frame(call.call, error.kind, error.message),)

    def cancel_all(self) -> None:
        """Cancel every call; none of them is answered."""
        for task in self._tasks.values():
            task.cancel()

    async def close(self) -> None:
        """Cancel every call and wait until none is left."""
        while self._tasks:
            self.cancel_all()
            await asyncio.wait(list(self._tasks.values()))
            await asyncio.sleep(0)


def _reply_frames(number: int, reply: ServiceReply) -> Iterator[bytes]:
    """Yield the messages of a reply: all but the last say that `more` of its value follows."""
    waiting = [reply.value]
    sent = 0
    while waiting:
        value = waiting.pop()
        message = {"t": "reply", "call": number, "ok": True, "value": value, "note": reply.note}
        try:
            data = frames.encode({**message, "more": bool(waiting)})
        except ProtocolError as error:
            parts = halves(value)
            if parts is None or sent + len(waiting) + len(parts) > MAX_REPLY_MESSAGES:
                text = f"the result is too large: {error.message}"
                yield _error_frame(number, "too_large", text)
                return
            waiting += reversed(parts)
        else:
            yield data
            sent += 1


def _error_frame(number: int, kind: str, message: str) -> bytes:
    error = {"kind": kind, "message": message}
    return frames.encode({"t": "reply", "call": number, "ok": False, "error": error, "note": None})
