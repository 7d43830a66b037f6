"""What several runs share: one sum of money, and one line of requests for each provider."""

from __future__ import annotations

import asyncio
from collections import deque

from rlm_rag.errors import UsageError
from rlm_rag.models.limiter import DEFAULT_WIDTH, Limiter

ROUNDING_USD = 1e-9


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
        self.limiters: dict[str, Limiter] = {}
        self.waiting: deque[asyncio.Future[None]] = deque()
        self._promised_usd = 0.0
        self._in_flight = 0

    def share(self) -> Share:
        """Return a part in it, for an `RLM`."""
        return Share(self)

    def limiter(self, provider: str) -> Limiter:
        """Return the line of requests to a provider."""
        return self.limiters.setdefault(provider, Limiter(self.concurrency))

    @property
    def left_usd(self) -> float | None:
        """What is neither spent nor promised to calls in flight; None: no limit."""
        if self.usd is None:
            return None
        return max(0.0, self.usd - self.spent_usd - self._promised_usd)

    def fits(self, usd: float, *, in_flight: bool = True) -> bool:
        """Whether a call of at most `usd` fits, beside the calls in flight or without them."""
        promised = self._promised_usd if in_flight else 0.0
        return self.usd is None or self.spent_usd + promised + usd <= self.usd + ROUNDING_USD

    def promise(self, usd: float) -> None:
        """Hold money for a call that is sent."""
        self._promised_usd += usd
        self._in_flight += 1

    def settle(self, promised_usd: float, spent_usd: float) -> None:
        """Count what a call cost in place of what was held for it."""
        self._in_flight -= 1
        # Sums of floats drift; nothing in flight is nothing promised.
        self._promised_usd = self._promised_usd - promised_usd if self._in_flight else 0.0
        self.spent_usd += spent_usd


class Share:
    """A part in a pool; `refused` says that a call of this part was not sent for want of money."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.refused = False
