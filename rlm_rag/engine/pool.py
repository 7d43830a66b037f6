"""What several runs share: one sum of money, and one line of requests for each provider."""

from __future__ import annotations

from collections.abc import Callable

from rlm_rag.engine.admission import Account, Asked, Grant, LimitReached
from rlm_rag.engine.waiting import Line
from rlm_rag.engine.windows import Said
from rlm_rag.errors import UsageError
from rlm_rag.models.base import Usage
from rlm_rag.models.limiter import DEFAULT_WIDTH, Limiter, Turns

ROUNDING_USD = 1e-9


class Share:
    """A part in what runs share; `refused` says that a call of this part was not sent for it.

    `usd` is the sum of money that bounds them together, None for no bound. `limiter` returns the
    line of requests to a provider. `windows` are what servers have said to any of them.
    """

    def __init__(
        self,
        account: Account,
        limiter: Callable[[str], Turns],
        *,
        usd: float | None,
        windows: Said,
    ) -> None:
        self.windows = windows
        self._account = account
        self.limiter = limiter
        self.usd = usd
        self.refused = False

    async def admit(self, asked: Asked) -> Grant:
        """Admit a call beside those of other runs.

        Raises:
            LimitReached: it does not fit.
        """
        try:
            return await self._account.admit(asked)
        except LimitReached:
            self.refused = True
            raise

    def settle(self, grant: Grant, usage: Usage | None) -> None:
        """Count what an admitted call cost, None where it was not sent."""
        self._account.settle(grant, usage)


class Pool:
    """Runs that share it together spend no more than `usd`, of which `spent_usd` is gone already.

    `usd` None is no limit. Requests to one provider are at most `concurrency` (16) at a time,
    those of all runs together. It belongs to the library's event loop.

    Raises:
        UsageError: a negative sum.
    """

    def __init__(
        self,
        *,
        usd: float | None = None,
        spent_usd: float = 0.0,
        concurrency: int = DEFAULT_WIDTH,
    ) -> None:
        if (usd is not None and not usd >= 0) or not spent_usd >= 0:
            raise UsageError(
                "what runs may spend together must not be negative", hint="for example Pool(usd=5)"
            )
        self.usd = usd
        self.spent_usd = spent_usd
        self.concurrency = concurrency
        self._limiters: dict[str, Limiter] = {}
        self._windows: Said = {}
        self._line = Line()
        self._promised_usd = 0.0
        self._doubted_usd = 0.0
        self._in_flight = 0

    def share(self) -> Share:
        """Return a part in it, for an `RLM`."""
        return Share(self, self.limiter, usd=self.usd, windows=self._windows)

    async def spent(self) -> float:
        """Return what is spent, in dollars, as `spent_usd` does."""
        return self.spent_usd

    def limiter(self, provider: str) -> Limiter:
        """Return the line of requests to a provider."""
        return self._limiters.setdefault(provider, Limiter(self.concurrency))

    @property
    def left_usd(self) -> float | None:
        """What is neither spent nor promised to calls in flight; None: no limit."""
        if self.usd is None:
            return None
        return max(0.0, self.usd - self.spent_usd - self._promised_usd)

    async def admit(self, asked: Asked) -> Grant:
        """Promise money to a call, which waits where calls in flight may give back enough.

        One that waits has to fit beside them with all that providers may count beyond what we do,
        and so has a run's last call.

        Raises:
            LimitReached: it does not fit, or its price is not known.
        """
        usd, more_usd = asked.estimate.usd, asked.estimate.more_usd

        def promised() -> Grant | None:
            promised, doubted = self._promised_usd, self._doubted_usd + more_usd
            may_pass = not self._fits(usd, beside=promised + doubted)
            if not self._fits(usd, beside=promised):
                if not asked.waits or not self._fits(usd, beside=0.0):
                    raise self._refusal(usd)
                return None
            if may_pass and self._in_flight and (asked.waits or asked.final):
                return None
            self._promised_usd += usd or 0.0
            self._doubted_usd += more_usd
            self._in_flight += 1
            return Grant(asked.estimate, is_doubtful=may_pass and more_usd > 0)

        return await self._line.until(promised)

    def settle(self, grant: Grant, usage: Usage | None) -> None:
        """Count what a call cost in place of what was promised to it, None for nothing."""
        promised = grant.estimate.usd or 0.0
        self._in_flight -= 1
        # Sums of floats drift; nothing in flight is nothing promised.
        self._promised_usd = self._promised_usd - promised if self._in_flight else 0.0
        doubted = self._doubted_usd - grant.estimate.more_usd
        self._doubted_usd = doubted if self._in_flight else 0.0
        if usage is not None:
            most = promised + (0.0 if grant.is_doubtful else grant.estimate.more_usd)
            self.spent_usd += most if usage.usd is None else usage.usd
        self._line.call_next()

    def _fits(self, usd: float | None, *, beside: float) -> bool:
        if self.usd is None or usd is None:
            return self.usd is None
        return self.spent_usd + beside + usd <= self.usd + ROUNDING_USD

    def _refusal(self, usd: float | None) -> LimitReached:
        price = "a call of unknown price" if usd is None else f"a call of up to ${usd:.4f}"
        return LimitReached(
            "budget_usd",
            f"{price} does not fit in the ${self.left_usd:.4f} left of ${self.usd:g} for all runs",
        )
