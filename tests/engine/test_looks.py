"""Look-ups by words, and whether they found anything."""

from __future__ import annotations

from typing import Any

import pytest

from rlm_rag.engine.looks import Look, look_of

HIT = {"path": "a.md", "line": 1}


@pytest.mark.parametrize(
    ("name", "arguments", "result", "look"),
    [
        ("search", {"query": "x", "k": 3}, [], Look("search", "x", False)),
        ("search", {"query": "x"}, [HIT], Look("search", "x", True)),
        ("symbols", {"name": "x"}, [], Look("symbols", "x", False)),
        ("grep_context", {"pattern": "x"}, {"hits": [HIT]}, Look("grep_context", "x", True)),
        ("grep_context", {"pattern": "x"}, {"hits": []}, Look("grep_context", "x", False)),
        ("grep_context", {"pattern": "("}, {"hits": [], "error": "bad"}, None),
        ("read", {"path": "a.md"}, "", None),
    ],
)
def test_a_look_is_what_was_asked_for_and_whether_it_was_there(
    name: str, arguments: dict[str, Any], result: Any, look: Look | None
) -> None:
    assert look_of(name, arguments, result) == look
