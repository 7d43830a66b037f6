"""Waiting for calls in flight to settle, first come, first served."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Line:
    """Those who wait in an event loop; whoever is called tries again, and calls the next.

    Who was called in vain keeps the place that they came to.
    """

    def __init__(self) -> None:
        self._places = itertools.count()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    async def until(self, attempt: Callable[[], T | None]) -> T:
        """Return what an attempt gives, made now and, while it gives None, in turn again.

        Raises:
            Exception: what the attempt raised, which ends the wait.
        """
        place = next(self._places)
        while True:
            try:
                got = attempt()
            except BaseException:
                self.call_next()
                raise
            if got is not None:
                self.call_next()
                return got
            await self._turn(place)

    async def _turn(self, place: int) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (place, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.call_next()
            raise

    def call_next(self) -> None:
        """Call who is first, where anybody waits."""
        while self._waiting:
            _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
