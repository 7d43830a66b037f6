"""What a run has cost, as its last line says it."""

from __future__ import annotations

from rlm_rag.cli.spending import unsent
from rlm_rag.models.base import Usage


def test_calls_that_were_not_sent_are_told_with_what_they_saved() -> None:
    assert unsent(Usage(calls=3)) == ""
    assert unsent(Usage(cached_calls=1)) == ", 1 call answered without sending"
    saved = Usage(cached_calls=4, saved_usd=0.25)
    assert unsent(saved) == ", 4 calls answered without sending, $0.2500 saved"
