"""What was spent, or may be, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_rag.counts import counted

if TYPE_CHECKING:
    from rlm_rag.engine.estimate import Spend
    from rlm_rag.models.base import Usage


def spent(usage: Usage) -> str:
    """Return calls, tokens and money: `3 calls, 1,200 tokens, $0.0120`."""
    tokens = usage.input_tokens + usage.output_tokens
    return f"{counted(usage.calls, 'call')}, {counted(tokens, 'token')}, {_money(usage.usd)}"


def unsent(usage: Usage) -> str:
    """Return what was answered without sending, and saved, to stand after `spent`; or nothing."""
    if not usage.cached_calls:
        return ""
    saved = f", ${usage.saved_usd:.4f} saved" if usage.saved_usd else ""
    return f", {counted(usage.cached_calls, 'call')} answered without sending{saved}"


def estimated(name: str, spend: Spend) -> str:
    """Return one case of an estimate as a row of a table."""
    tokens = f"{spend.input_tokens:,} tokens in, {spend.output_tokens:,} out"
    return f"{name:<7} {_money(spend.usd):>13}  {counted(spend.calls, 'call')}, {tokens}"


def _money(usd: float | None) -> str:
    return "price unknown" if usd is None else f"${usd:.4f}"
