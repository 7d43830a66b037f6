"""Whether a call fits what the limits in tokens and money leave."""

from __future__ import annotations

import math

from rlm_rag.engine.admission import Amounts, CallEstimate, LimitReached
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.pool import ROUNDING_USD


def too_costly(
    limits: Limits, estimate: CallEstimate, committed: Amounts, *, kept: str = ""
) -> LimitReached | None:
    """Return why a call does not fit beside what is committed, None where it does.

    `kept` says in words what is kept back for another.
    """
    if limits.tokens is not None and committed.tokens + estimate.tokens > limits.tokens:
        left = max(0, limits.tokens - committed.tokens)
        return LimitReached(
            "budget_tokens",
            f"a call of up to {estimate.tokens} tokens does not fit in the {left} left "
            f"of {limits.tokens}{kept}",
        )
    if limits.usd is None:
        return None
    if estimate.usd is None:
        return LimitReached("budget_usd", "the price of a call is not known")
    if committed.usd + estimate.usd > limits.usd + ROUNDING_USD:
        left_usd = max(0.0, limits.usd - committed.usd)
        return LimitReached(
            "budget_usd",
            f"a call of up to ${estimate.usd:.4f} does not fit in the ${left_usd:.4f} left "
            f"of ${limits.usd:g}{kept}",
        )
    return None


def fitted(limits: Limits, estimate: CallEstimate, committed: Amounts) -> CallEstimate:
    """Return a call with as long a reply as fits beside what is committed, and is of use."""
    room = estimate.output_tokens
    if limits.tokens is not None:
        room = min(room, limits.tokens - committed.tokens - estimate.input_tokens)
    if limits.usd is not None and estimate.reply_usd > 0:
        left_usd = limits.usd + ROUNDING_USD - committed.usd - estimate.prompt_usd
        room = min(room, math.floor(left_usd / estimate.reply_usd))
    return estimate.shortened(room)
