"""Running until a signal asks for the end, which then comes in order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


def run_until_asked(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine in the main thread; a signal cancels it, and is raised again at its end.

    SIGINT, SIGTERM and SIGHUP are answered so, unless the process ignores them; a second one is
    answered as before.
    """
    caught: list[int] = []
    before: dict[int, Any] = {}

    def give_back() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    async def guarded() -> None:
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()

        def cancel(number: int, _frame: FrameType | None) -> None:
            caught.append(number)
            give_back()
            loop.call_soon_threadsafe(lambda: task and task.cancel())

        for number in _answered():
            before[number] = signal.signal(number, cancel)
        await main()

    try:
        asyncio.run(guarded())
    except asyncio.CancelledError:
        if not caught:
            raise
    finally:
        give_back()
    for number in caught:
        signal.raise_signal(number)


def _answered() -> list[int]:
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    return [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
