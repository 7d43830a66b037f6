"""The one daemon thread whose event loop serves every synchronous caller.

Worker processes must be spawned from a thread that outlives them, since the parent-death signal
follows the thread; notebooks and threads can call in while a loop of their own is running.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, wait
from typing import Any, TypeVar

T = TypeVar("T")

STOP_SECONDS = 5.0
_GLANCE_SECONDS = 0.2


def outcome(future: Future[T]) -> T:
    """Wait for a future's result, so that a signal is heard soon.

    One that comes just before the wait begins does not end it: Python looks for it afterwards.
    """
    while not future.done():
        wait([future], _GLANCE_SECONDS)
    return future.result()


def _run_until_stopped(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        try:
            loop.run_forever()
        except (KeyboardInterrupt, SystemExit):
            # Raised by a caller's own function; its task keeps it for whoever waits for that
            # one, and the loop goes on for all others.
            continue
        return


class LoopThread:
    """An event loop in a daemon thread, started at the first use."""

    def __init__(self) -> None:
        # Reentrant: a collected corpus may submit its closing from within any line here.
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start `coroutine` on the loop and return its future; callable from any thread."""
        try:
            loop = self._running()
        except BaseException:
            # Interrupted while the thread starts: a coroutine that nobody runs makes Python warn.
            coroutine.close()
            raise
        return asyncio.run_coroutine_threadsafe(coroutine, loop)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run `coroutine` to its end; an interrupted caller cancels it before it raises."""
        future = self.submit(coroutine)
        try:
            return outcome(future)
        except BaseException:
            future.cancel()
            raise

    def is_current(self) -> bool:
        """Whether the caller runs on the loop, which it must not keep waiting."""
        return self._thread is threading.current_thread()

    async def awaited(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return what `coroutine` comes to, run on the loop, whichever loop awaits it.

        Awaited on the loop itself, it has ended where a cancellation of it has.
        """
        if asyncio.get_running_loop() is self._loop:
            return await coroutine
        return await asyncio.wrap_future(self.submit(coroutine))

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                # Made in its own thread: a Ctrl-C in the middle of making one breaks it.
                made: Future[asyncio.AbstractEventLoop] = Future()
                thread = threading.Thread(
                    target=self._serve, args=(made,), name="rlm-rag-loop", daemon=True
                )
                thread.start()
                self._loop, self._thread = outcome(made), thread
            return self._loop

    @staticmethod
    def _serve(made: Future[asyncio.AbstractEventLoop]) -> None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        made.set_result(loop)
        try:
            _run_until_stopped(loop)
        finally:
            pending = asyncio.all_tasks(loop)
            for task in pending:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    def stop(self) -> None:
        """Cancel what runs, close the loop and end the thread; idempotent."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(STOP_SECONDS)


_THREAD = LoopThread()


@atexit.register
def _stop_at_exit() -> None:
    # Registered at import, before any user of the thread registers its own closing, which
    # therefore runs first and still finds the loop.
    _THREAD.stop()


def _forget_after_fork() -> None:
    global _THREAD
    _THREAD = LoopThread()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


def loop_thread() -> LoopThread:
    """Return the process's loop thread; a forked child gets one of its own."""
    return _THREAD
