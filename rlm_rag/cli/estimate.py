"""What `rlm-rag ask --estimate` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_rag.cli import streams
from rlm_rag.counts import counted

if TYPE_CHECKING:
    from rlm_rag.engine.estimate import Estimate


def show_estimate(estimate: Estimate, *, as_json: bool) -> None:
    """Print low, likely and high, and on standard error what they rest on."""
    if as_json:
        streams.result_json(estimate.to_dict())
        return
    for name, spend in (
        ("low", estimate.low),
        ("likely", estimate.likely),
        ("high", estimate.high),
    ):
        money = "price unknown" if spend.usd is None else f"${spend.usd:.4f}"
        tokens = f"{spend.input_tokens:,} tokens in, {spend.output_tokens:,} out"
        streams.result(f"{name:<7} {money:>13}  {counted(spend.calls, 'call')}, {tokens}")
    for assumption in estimate.assumptions:
        streams.note(assumption)
