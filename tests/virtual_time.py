"""An event loop whose clock jumps to the next timer, so that hours of waiting take no time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):
    """Never waits: what would have been waited is added to `now`."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("nothing is ever going to happen: a deadlock")
        if not ready and timeout:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its `time` starts at 0; a loop on which nothing can happen any more raises RuntimeError."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Call it here and now: a thread that waits for nothing takes no time."""
        done: asyncio.Future[T] = self.create_future()
        done.set_result(func(*args))
        return done


def run_virtually(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run to the end, at once; no sockets, and no threads that wait."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)
