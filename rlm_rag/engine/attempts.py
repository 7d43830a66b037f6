"""The requests of one call, as its budget counts them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rlm_rag.engine.admission import CallEstimate, Reservation
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.weighing import Weighing
from rlm_rag.models.base import Usage


class Attempts:
    """The requests of one call, `begun` of them sent so far.

    One without a reply that may have been billed all the same is counted at what `weighing`
    makes of it with care, and the next has to fit beside it. `check` may raise, so that none is
    sent.
    """

    def __init__(
        self,
        budget: Budget,
        reservation: Reservation,
        check: Callable[[], None],
        weighing: Weighing,
    ) -> None:
        self._check = check
        self._budget = budget
        self._reservation = reservation
        self._weighing = weighing
        self.begun = 0
        self._lost = Usage()
        self._loss: CallEstimate | None = None
        self._since_loss = 0

    async def begin(self) -> None:
        """Count one more, once it fits the limits.

        Raises:
            LimitReached: it does not.
        """
        self._check()
        if self._since_loss:
            await self._budget.admit_retry(self._reservation)
        else:
            self._budget.check_fits(self._reservation)
        self.begun += 1
        self._since_loss += 1

    async def again(self) -> None:
        """Have a request admitted that takes the place of one that was lost, if one was.

        Raises:
            LimitReached: it does not fit.
        """
        if self._loss is None:
            return
        self._check()
        loss, self._loss = self._loss, None
        self._lost += self._budget.settle(self._reservation, loss.spent(calls=self._since_loss))
        self._since_loss = 0
        estimate = self._weighing.estimate(loss.output_tokens)
        self._reservation = await self._budget.admit_again(
            replace(self._reservation, estimate=estimate)
        )

    async def lose(self) -> None:
        """Say that the last one got no reply, and may have been billed."""
        self._loss = self._reservation.estimate
        # One that was doubtful was counted with care before it was sent.
        if not self._reservation.is_doubtful:
            self._loss = await self._weighing.careful(self._loss.output_tokens)

    def answered(self, usage: Usage) -> Usage:
        """Count what the reply cost, and return what all of them did."""
        return self._settled(replace(usage, calls=self._since_loss))

    def failed(self) -> Usage:
        """Count them where none was answered."""
        if self._loss is not None:
            return self._settled(self._loss.spent(calls=self._since_loss))
        return self._settled(Usage(calls=self._since_loss))

    def unknown(self) -> Usage:
        """A cancelled request may have been billed: count all that it may have cost."""
        return self._settled(None)

    def _settled(self, usage: Usage | None) -> Usage:
        """Count what was spent, where a request was sent at all, and return it."""
        if self._since_loss:
            return self._lost + self._budget.settle(self._reservation, usage)
        self._budget.release(self._reservation)
        return self._lost
