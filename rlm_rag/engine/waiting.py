"""Waiting for calls in flight to settle, first come, first served."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Line:
    """Those who wait in an event loop; whoever is called tries again, and calls the next."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def until(self, attempt: Callable[[], T | None]) -> T:
        """Return what an attempt gives, made now and, while it gives None, in turn again.

        Raises:
            Exception: what the attempt raised, which ends the wait.
        """
        waited = False
        while True:
            try:
                got = attempt()
            except BaseException:
                self.call_next()
                raise
            if got is not None:
                self.call_next()
                return got
            await self._turn(first=waited)
            waited = True

    async def _turn(self, *, first: bool) -> None:
        """Wait to be called, at the end of the line or, who was called before, at its head."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if first:
            self._waiting.appendleft(turn)
        else:
            self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self._waiting:
                self._waiting.remove(turn)
            else:
                self.call_next()
            raise

    def call_next(self) -> None:
        """Call who is first, where anybody waits."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
