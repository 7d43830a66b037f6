"""How many requests one provider gets at a time, and whose turn it is."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

DEFAULT_WIDTH = 16
# One turn in so many goes to whoever has waited longest, so that a stream of small batches
# cannot keep a large one waiting for ever.
_OLDEST_EVERY = 4
# Near the width that the provider refused last, it takes this many rounds to try one more.
_ROUNDS_NEAR_REFUSAL = 16

_Turn = asyncio.Future[None]


class Leave(Protocol):
    """One request's leave to be sent, which is told how it went."""

    def throttled(self, pause_seconds: float = 0.0) -> None:
        """The provider asked to slow down, or did not keep up; nobody sends for so long."""
        ...

    def succeeded(self) -> None:
        """The provider answered in full."""
        ...


class Turns(Protocol):
    """Whose turn it is to send a request to one provider."""

    def permit(
        self, owner: Hashable = None, *, again: bool = False
    ) -> AbstractAsyncContextManager[Leave]:
        """Wait for a turn, and hold it for the body; `again` goes to the head of the line."""
        ...


class Permit:
    """One request's leave to be sent; tells the limiter how it went."""

    __slots__ = ("_epoch", "_limiter")

    def __init__(self, limiter: Limiter, epoch: int) -> None:
        self._limiter = limiter
        self._epoch = epoch

    def throttled(self, pause_seconds: float = 0.0) -> None:
        """The provider asked to slow down, or did not keep up; nobody sends for so long."""
        self._limiter._narrow(self._epoch)
        self._limiter._pause(pause_seconds)

    def succeeded(self) -> None:
        """The provider answered in full."""
        self._limiter._widen()


class Limiter:
    """Adaptive concurrency for one provider, fair between owners.

    Starts `width` wide (16, docs/design.md 4.5), halves when a request is throttled, at most
    once for the requests that were in flight together, and grows by one for every full round
    of successes, to `width` again; slower near the width that was refused last.

    Turns go to the owner with the fewest requests, so that ten calls beside another's thousand
    all start within one call's time; owners of more than `width` share evenly. Every fourth
    turn goes to the request that has waited longest, so that `n` requests in line before one
    delay it by at most `4 * (n + 1)` turns. Nobody who holds a turn waits for another: it
    cannot deadlock.
    Belongs to one event loop at a time.

    Raises:
        ValueError: `width` below 1.
    """

    def __init__(self, width: int = DEFAULT_WIDTH) -> None:
        if width < 1:
            raise ValueError(f"width must be at least 1, not {width}")
        self._max_width = width
        self._width = float(width)
        self._refused_width = float(width + 1)
        self._in_flight = 0
        self._epoch = 0
        self._closed_until = 0.0
        self._opening: asyncio.TimerHandle | None = None
        self._turns_given = 0
        self._line: OrderedDict[_Turn, Hashable] = OrderedDict()
        self._lines: dict[Hashable, OrderedDict[_Turn, None]] = {}
        self._under_way: dict[Hashable, int] = {}

    @property
    def width(self) -> int:
        """How many requests may be in flight now."""
        return int(self._width)

    @property
    def in_flight(self) -> int:
        """How many permits are held now."""
        return self._in_flight

    @property
    def waiting(self) -> int:
        """How many requests are in line now."""
        return len(self._line)

    @asynccontextmanager
    async def permit(self, owner: Hashable = None, *, again: bool = False) -> AsyncIterator[Permit]:
        """Wait for a turn, and hold it for as long as the block runs.

        `owner` is whose request it is; with `again`, for one that had its turn before, it goes
        to the head of the line.
        """
        await self._acquire(owner, again)
        try:
            yield Permit(self, self._epoch)
        finally:
            self._release(owner)
            self._wake()

    async def _acquire(self, owner: Hashable, again: bool) -> None:
        if self._in_flight < self.width and not self._line and not self._paused():
            self._take(owner)
            return
        turn: _Turn = asyncio.get_running_loop().create_future()
        line = self._lines.setdefault(owner, OrderedDict())
        self._line[turn] = owner
        line[turn] = None
        if again:
            self._line.move_to_end(turn, last=False)
            line.move_to_end(turn, last=False)
        self._wake()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # The turn had been given just before the cancellation: hand it on.
                self._release(owner)
                self._wake()
            elif turn in self._line:
                self._leave(turn)
            raise

    def _take(self, owner: Hashable) -> None:
        self._in_flight += 1
        self._under_way[owner] = self._under_way.get(owner, 0) + 1

    def _release(self, owner: Hashable) -> None:
        self._in_flight -= 1
        self._under_way[owner] -= 1
        if not self._under_way[owner]:
            del self._under_way[owner]

    def _leave(self, turn: _Turn) -> Hashable:
        owner = self._line.pop(turn)
        line = self._lines[owner]
        del line[turn]
        if not line:
            del self._lines[owner]
        return owner

    def _wake(self) -> None:
        while self._line and self._in_flight < self.width and not self._paused():
            turn = self._next()
            owner = self._leave(turn)
            if not turn.done():
                self._turns_given += 1
                self._take(owner)
                turn.set_result(None)

    def _next(self) -> _Turn:
        if len(self._lines) == 1 or self._turns_given % _OLDEST_EVERY == _OLDEST_EVERY - 1:
            return next(iter(self._line))
        return next(iter(self._lines[min(self._lines, key=self._rank)]))

    def _rank(self, owner: Hashable) -> tuple[int, int]:
        """Small batches by their size, then large ones by what they have under way."""
        under_way = self._under_way.get(owner, 0)
        return min(len(self._lines[owner]) + under_way, self._max_width + 1), under_way

    def _paused(self) -> bool:
        if not self._closed_until:
            return False
        loop = asyncio.get_running_loop()
        if loop.time() >= self._closed_until:
            self._closed_until = 0.0
            return False
        if self._opening is None or self._opening.when() < self._closed_until:
            if self._opening is not None:
                self._opening.cancel()
            self._opening = loop.call_at(self._closed_until, self._open)
        return True

    def _open(self) -> None:
        self._opening = None
        self._wake()

    def _pause(self, seconds: float) -> None:
        if seconds > 0:
            until = asyncio.get_running_loop().time() + seconds
            self._closed_until = max(self._closed_until, until)

    def _narrow(self, epoch: int) -> None:
        if epoch == self._epoch:
            self._refused_width = self._width
            self._width = max(1.0, self.width / 2)
            self._epoch += 1

    def _widen(self) -> None:
        near = self._refused_width - 1 <= self._width < self._refused_width
        rounds = _ROUNDS_NEAR_REFUSAL if near else 1
        self._width = min(float(self._max_width), self._width + 1 / (self._width * rounds))
        if self._width >= self._refused_width:
            # The provider takes more than it did when it refused.
            self._refused_width = float(self._max_width + 1)
        self._wake()
