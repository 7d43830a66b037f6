"""How many requests one provider gets at a time: fewer when it asks to slow down."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

DEFAULT_WIDTH = 16


class Permit:
    """One request's leave to be sent; tells the limiter how it went."""

    __slots__ = ("_epoch", "_limiter")

    def __init__(self, limiter: Limiter, epoch: int) -> None:
        self._limiter = limiter
        self._epoch = epoch

    def throttled(self) -> None:
        """The provider asked to slow down, or did not keep up."""
        self._limiter._narrow(self._epoch)

    def succeeded(self) -> None:
        """The provider answered in full."""
        self._limiter._widen()


class Limiter:
    """Adaptive concurrency for one provider, first come, first served.

    Starts `width` wide (16, docs/design.md 4.5), halves when a request is throttled, at most
    once for the requests that were in flight together, and grows by one for every full round
    of successes, to `width` again. Belongs to one event loop at a time.

    Raises:
        ValueError: `width` below 1.
    """

    def __init__(self, width: int = DEFAULT_WIDTH) -> None:
        if width < 1:
            raise ValueError(f"width must be at least 1, not {width}")
        self._max_width = width
        self._width = float(width)
        self._in_flight = 0
        self._epoch = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def width(self) -> int:
        """How many requests may be in flight now."""
        return int(self._width)

    @property
    def in_flight(self) -> int:
        """How many permits are held now."""
        return self._in_flight

    @asynccontextmanager
    async def permit(self) -> AsyncIterator[Permit]:
        """Wait for a turn, and hold it for as long as the block runs."""
        await self._acquire()
        try:
            yield Permit(self, self._epoch)
        finally:
            self._in_flight -= 1
            self._wake()

    async def _acquire(self) -> None:
        if self._in_flight < self.width and not self._waiting:
            self._in_flight += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # The turn had been given just before the cancellation: hand it on.
                self._in_flight -= 1
                self._wake()
            elif turn in self._waiting:
                self._waiting.remove(turn)
            raise

    def _wake(self) -> None:
        while self._waiting and self._in_flight < self.width:
            turn = self._waiting.popleft()
            if not turn.done():
                self._in_flight += 1
                turn.set_result(None)

    def _narrow(self, epoch: int) -> None:
        if epoch == self._epoch:
            self._width = max(1.0, self.width / 2)
            self._epoch += 1

    def _widen(self) -> None:
        self._width = min(float(self._max_width), self._width + 1 / self._width)
        self._wake()
