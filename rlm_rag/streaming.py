"""A run as a stream of its events, which ends with its answer."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Any, Self

from rlm_rag.closing import Closing
from rlm_rag.engine.answer import Answer
from rlm_rag.engine.blocking import INTERRUPT_SECONDS
from rlm_rag.engine.loop_thread import loop_thread, outcome
from rlm_rag.engine.run import Run
from rlm_rag.trace.events import Event

Work = Callable[[Callable[[Event], None], Callable[[Run], None]], Coroutine[Any, Any, Answer]]
"""Does a run on the library's loop; it tells each event, and the run before that begins."""


class Stream(Closing):
    """The trace events of a run as they happen, then its `Answer`, by `for` or `async for`.

    The run goes on by itself, however slowly its events are taken. Leaving the loop early, or a
    `with` around it, ends the run and its worker. What the run raises, the iteration raises.
    """

    def __init__(self, work: Work) -> None:
        # The run refers to this alone, so that a stream that nobody has any more can tell.
        self._channel = _Channel()
        self._ended = loop_thread().submit(work(self._channel.put, self._channel.took))
        self._ended.add_done_callback(self._channel.end)
        weakref.finalize(self, self._channel.cancel).atexit = False

    def cancel(self) -> None:
        """End the run; what it came to is still told, an `Answer` with what there is at last."""
        self._channel.cancel()

    def close(self) -> None:
        """End the run and wait until it has ended, no longer than 10 s."""
        self._channel.cancel()
        wait([self._ended], INTERRUPT_SECONDS)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event | Answer:
        item = outcome(self._channel.get())
        if item is None:
            raise StopIteration
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event | Answer:
        item = await asyncio.wrap_future(self._channel.get())
        if item is None:
            raise StopAsyncIteration
        return item

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.close)


_Item = Event | Answer | BaseException | None


class _Channel:
    """What the library's thread tells, until somebody takes it; None is the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready: deque[_Item] = deque()
        self._awaited: Future[Event | Answer | None] | None = None
        self._run: Run | None = None
        self._is_cancelled = False
        self._is_over = False

    def took(self, run: Run) -> None:
        with self._lock:
            self._run = run
            cancelled = self._is_cancelled
        if cancelled:
            loop_thread().submit(run.interrupted())

    def cancel(self) -> None:
        with self._lock:
            run = None if self._is_cancelled or self._is_over else self._run
            self._is_cancelled = True
        if run is not None:
            loop_thread().submit(run.interrupted())

    def put(self, item: _Item) -> None:
        with self._lock:
            self._ready.append(item)
        self._hand_over()

    def end(self, ended: Future[Answer]) -> None:
        error = None if ended.cancelled() else ended.exception()
        with self._lock:
            self._is_over = True
            if not ended.cancelled():
                self._ready.append(error or ended.result())
        self._hand_over()

    def get(self) -> Future[Event | Answer | None]:
        """Return the next item as a future: one that was not awaited to its end loses none."""
        future: Future[Event | Answer | None] = Future()
        with self._lock:
            self._awaited = future
        self._hand_over()
        return future

    def _hand_over(self) -> None:
        with self._lock:
            awaited = self._awaited
            if awaited is None or not (self._ready or self._is_over):
                return
            self._awaited = None
            if not awaited.set_running_or_notify_cancel():
                return
            item = self._ready.popleft() if self._ready else None
        if isinstance(item, BaseException):
            awaited.set_exception(item)
        else:
            awaited.set_result(item)
