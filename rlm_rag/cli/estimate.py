"""What `rlm-rag ask --estimate` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_rag.cli import streams
from rlm_rag.cli.spending import estimated

if TYPE_CHECKING:
    from rlm_rag.engine.estimate import Estimate


def show_estimate(estimate: Estimate, *, as_json: bool) -> None:
    """Print low, likely and high, and on standard error what they rest on."""
    if as_json:
        streams.result_json(estimate.to_dict())
        return
    for name in ("low", "likely", "high"):
        streams.result(estimated(name, getattr(estimate, name)))
    for assumption in estimate.assumptions:
        streams.note(assumption)
