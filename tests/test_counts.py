"""Counts as they are said."""

from __future__ import annotations

from rlm_rag.counts import counted


def test_one_is_said_in_the_singular_and_all_else_in_the_plural() -> None:
    said = [counted(number, "call") for number in (0, 1, 2, 1200)]
    assert said == ["0 calls", "1 call", "2 calls", "1,200 calls"]
    assert counted(2, "child", "children") == "2 children"
