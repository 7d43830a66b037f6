"""The requests of one call, as its budget counts them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rlm_rag.engine.admission import Reservation
from rlm_rag.engine.budget import Budget
from rlm_rag.models.base import Usage


class Attempts:
    """The requests of one call, `begun` of them sent so far.

    One without a reply that may have been billed all the same is counted at its estimate, and
    the next has to fit beside it. `check` may raise, so that none is sent.
    """

    def __init__(self, budget: Budget, reservation: Reservation, check: Callable[[], None]) -> None:
        self._check = check
        self._budget = budget
        self._reservation = reservation
        self.begun = 0
        self._lost = Usage()
        self._is_lost = False
        self._since_loss = 0

    async def begin(self) -> None:
        """Count one more, once it fits the limits.

        Raises:
            LimitReached: it does not.
        """
        self._check()
        if self._is_lost:
            self._lost += self._budget.settle(self._reservation, None)
            self._is_lost, self._since_loss = False, 0
            self._reservation = await self._budget.admit_again(self._reservation)
        elif self.begun:
            await self._budget.admit_retry(self._reservation)
        else:
            self._budget.check_fits(self._reservation)
        self.begun += 1
        self._since_loss += 1

    def lose(self) -> None:
        """Say that the last one got no reply, and may have been billed."""
        self._is_lost = True

    def answered(self, usage: Usage) -> Usage:
        """Count what the reply cost, and return what all of them did."""
        return self._settled(replace(usage, calls=self._since_loss))

    def failed(self) -> Usage:
        """Count them where none was answered."""
        return self._settled(None if self._is_lost else Usage(calls=self._since_loss))

    def unknown(self) -> Usage:
        """A cancelled request may have been billed: count what had been set aside for it."""
        return self._settled(None)

    def _settled(self, usage: Usage | None) -> Usage:
        """Count what was spent, where a request was sent at all, and return it."""
        if self._since_loss:
            return self._lost + self._budget.settle(self._reservation, usage)
        self._budget.release(self._reservation)
        return self._lost
