"""The map has what the events showed of each document, by how it was seen."""

from __future__ import annotations

from typing import Any

import pytest

from rlm_rag.trace.events import Event
from rlm_rag.trace.view.coverage import Coverage, Documents
from tests.trace.test_show import retrieval, start
from tests.trace.view.made import EVERY, LOOKED, hostile, hostile_look_up


def map_of(
    events: list[Event], documents: Documents, summary: dict[str, Any] | None = None
) -> dict[str, Any]:
    coverage = Coverage()
    for node, event in enumerate(events):
        coverage.add(event, node)
    return coverage.map_of(summary or {}, documents)


UNKNOWN = Documents(None, "The source is gone.")


def test_each_document_has_its_lines_by_how_they_were_seen() -> None:
    found = map_of(EVERY, LOOKED.documents, {"files": 4, "untouched": 2, "unobserved": True})
    assert found["documents"] == [
        ["src/a.py", 9, [[[1, 9]], [], []], [6], False],
        ["docs/b.md", 4, [[], [], [[1, 4]]], [10], False],
        ["src/c.py", 5, [[], [], []], [], False],
        ["d.md", 2, [[], [], []], [], False],
    ]
    assert found["figures"] == {"files": 4, "untouched": 2}
    assert found["complete"]
    assert found["unobserved"]


def test_ranges_that_touch_are_one_and_what_was_read_is_not_what_was_searched() -> None:
    seen = [["a", 5, 9], ["a", 1, 4], ["a", 20, 21], ["a", 8, 12], ["a", 0, 0]]
    events = [start(), retrieval("symbols", {}, [], seen=seen)]
    events += [retrieval("read", {}, "", seq=2, seen=[["a", 2, 3]])]
    [document] = map_of(events, UNKNOWN)["documents"]
    assert document[1] is None
    assert document[2] == [[[1, 12], [20, 21]], [[2, 3]], []]


def test_a_grep_went_through_what_its_glob_matches() -> None:
    events = [start(), retrieval("grep_context", {"pattern": "x", "path_glob": "*.md"}, {})]
    found = map_of(events, LOOKED.documents)
    assert {row[0] for row in found["documents"] if row[4]} == {"docs/b.md", "d.md"}
    for child in (retrieval("grep_context", {}, {}, run="r1.1"), events[1]):
        assert not all(row[4] for row in map_of([start(), child], LOOKED.documents)["documents"])
    everywhere = [start(), retrieval("grep_context", {"pattern": "x"}, {})]
    assert all(row[4] for row in map_of(everywhere, LOOKED.documents)["documents"])


def test_what_only_the_answer_lists_is_shown_too() -> None:
    found = map_of([start()], UNKNOWN, {"lines": {"a.py": [[1, 2], [3, 9]]}})
    assert found["documents"] == [["a.py", None, [[[1, 9]], [], []], [], False]]
    assert not found["complete"]
    assert found["note"] == "The source is gone."


def test_a_map_of_very_many_documents_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_rag.trace.view.coverage.MAX_DOCUMENTS", 50)
    many = Documents({f"f{number}": 1 for number in range(60)}, "")
    found = map_of([start(), retrieval("read", {}, "", seen=[["f59", 1, 1]])], many)
    assert len(found["documents"]) == 50
    assert found["left_out"] == 10
    assert found["documents"][0][0] == "f59"


def test_nothing_in_a_hostile_trace_breaks_the_map() -> None:
    found = map_of(hostile(), hostile_look_up().documents, {"looked": "no list", "lines": 3})
    assert found["looked"] == []
    assert all("\u202e" not in row[0] for row in found["documents"])
