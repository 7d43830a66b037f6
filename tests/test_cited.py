"""The lines that a run cited are those of its source while that is the same, else of its trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rlm_rag
from rlm_rag.cited import changed_since, look_up
from rlm_rag.engine.citations import content_digest
from rlm_rag.errors import TraceError
from rlm_rag.trace.events import Event, RunStarted
from rlm_rag.trace.reader import Record, Trace
from rlm_rag.trace.view.passages import Passage
from tests.trace.test_show import retrieval, start
from tests.trace.view.made import answered

TEXT = "".join(f"line {number} of the file\n" for number in range(1, 31))
READ = "10: line 10 of the file\n11:   line 11 of the file"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    (folder / "a.txt").write_text(TEXT)
    (folder / "b.txt").write_text("other\n")
    return folder


@pytest.fixture(scope="module")
def begun(source: Path) -> Iterator[RunStarted]:
    """The start of a run over that folder, as an engine records it."""
    with rlm_rag.load(str(source)) as corpus:
        options = {"source": corpus.origin}
        yield start(corpus={"fingerprint": corpus.fingerprint}, options=options)


def cites(line: int, end_line: int, quote: str | None = None, **changes: Any) -> dict[str, Any]:
    values = {"path": "a.txt", "quote": quote, "status": "verified", "verified": True}
    return {**values, "line": line, "end_line": end_line, **changes}


def trace(begun: RunStarted, *citations: dict[str, Any], saw: tuple[Event, ...] = ()) -> Trace:
    end = answered(citations=list(citations), cited={"a.txt": content_digest(TEXT)})
    events = [begun, *saw, end]
    return Trace(Path("t.jsonl"), tuple(Record(n, "", event) for n, event in enumerate(events)))


def gone(begun: RunStarted) -> RunStarted:
    return replace(begun, options={"source": "/nowhere/at/all"})


def passage(trace: Trace) -> Passage:
    [found] = look_up(trace).passages
    return found


def text_of(found: Passage) -> dict[int, str]:
    return {line.number: "".join(text for text, _ in line.pieces) for line in found.lines}


def test_a_source_that_is_as_it_was_gives_the_lines_and_those_around(begun: RunStarted) -> None:
    run = trace(begun, cites(10, 11, "10 of the file line 11"))
    looked = look_up(run)
    [found] = looked.passages
    assert list(text_of(found)) == list(range(6, 16))
    assert [line.number for line in found.lines if line.cited] == [10, 11]
    marked = [text for line in found.lines for text, mark in line.pieces if mark]
    assert marked == ["10 of the file", "line 11"]
    assert found.note == "Read from the source, which is as it was at the run."
    assert looked.documents.lines == {"a.txt": 30, "b.txt": 1}
    assert changed_since(run) == ()


def test_where_one_document_changed_the_others_are_still_read(
    begun: RunStarted, source: Path
) -> None:
    run = trace(begun, cites(10, 10), cites(1, 1, path="b.txt"))
    (source / "b.txt").write_text("changed\n")
    try:
        looked = look_up(run)
    finally:
        (source / "b.txt").write_text("other\n")
    of_a, of_b = looked.passages
    assert text_of(of_a)[10] == "line 10 of the file"
    assert of_b.lines == ()
    assert looked.documents.lines is None
    assert "changed since the run" in looked.documents.note
    assert "The trace does not have these lines" in of_b.note


def test_without_its_source_the_lines_are_those_that_the_run_read(begun: RunStarted) -> None:
    read = retrieval("read", {"path": "a.txt"}, READ, seen=[["a.txt", 10, 11]])
    found = passage(trace(gone(begun), cites(10, 12, "line 11 of"), saw=(read,)))
    assert text_of(found) == {10: "line 10 of the file", 11: "  line 11 of the file", 12: ""}
    assert [text for line in found.lines for text, mark in line.pieces if mark] == ["line 11 of"]
    assert "Taken from the trace" in found.note
    assert "cannot be read" in found.note
    assert "left out" in found.note


def test_lines_of_a_search_are_used_and_said_to_be_trimmed(begun: RunStarted) -> None:
    hits = [{"path": "a.txt", "line": 9, "end_line": 12, "snippet": "10: line 10 of the file"}]
    search = retrieval("search", {"query": "x"}, hits)
    grep = retrieval(
        "grep_context", {"pattern": "x"}, {"hits": [{"path": "a.txt", "line": 11, "text": " x"}]}
    )
    found = passage(trace(gone(begun), cites(10, 11), saw=(search, grep)))
    assert text_of(found) == {10: "line 10 of the file", 11: " x"}
    assert "trims indentation" in found.note
    cut = retrieval(
        "grep_context", {}, {"hits": [{"path": "a.txt", "line": 10, "text": "y" * 400}]}
    )
    assert passage(trace(gone(begun), cites(10, 10), saw=(cut,))).lines == ()


def test_lines_that_a_result_only_pretends_to_have_are_not_taken(begun: RunStarted) -> None:
    forged = retrieval("read", {}, "10: real\n25: forged", seen=[["a.txt", 10, 11]])
    assert passage(trace(gone(begun), cites(25, 25), saw=(forged,))).lines == ()
    two = retrieval("read", {}, "10: which?", seen=[["a.txt", 10, 10], ["b.txt", 10, 10]])
    assert passage(trace(gone(begun), cites(10, 10), saw=(two,))).lines == ()


@pytest.mark.parametrize(
    ("citation", "note"),
    [
        (cites(40, 41), "The document has 30 lines."),
        (cites(0, 3), "It names no lines."),
        (cites(9, 3), "It names no lines."),
        (cites(1, 1, path="gone.txt", status="false"), ""),
        ({"path": 3}, "It names no lines."),
    ],
)
def test_a_citation_without_lines_says_why(
    begun: RunStarted, citation: dict[str, Any], note: str
) -> None:
    assert passage(trace(begun, citation)) == Passage((), note)


def test_a_citation_of_very_many_lines_shows_the_first(
    begun: RunStarted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_rag.cited.MAX_LINES", 5)
    found = passage(trace(begun, cites(1, 30)))
    assert [line.number for line in found.lines if line.cited] == [1, 2, 3, 4, 5]
    assert found.note.endswith("The first 5 of its lines are shown.")


@pytest.mark.parametrize(
    ("origin", "why"),
    [
        (None, "does not say where its corpus was"),
        (7, "does not say where its corpus was"),
        ("'", "does not say where its corpus was"),
        ("x --max-files", "does not say where its corpus was"),
        ("x --nonsense", "cannot be read: There is no option 'nonsense'."),
        ("https://example.org/a.html", "is an address, and not fetched again"),
        ("docs=git@example.org:a/b.git", "is an address, and not fetched again"),
        ("s3://bucket/x", "is an address, and not fetched again"),
        ("/nowhere/at/all", "cannot be read"),
    ],
)
def test_a_source_that_is_not_to_be_had_is_not_fetched_and_that_is_said(
    begun: RunStarted, origin: object, why: str
) -> None:
    looked = look_up(trace(replace(begun, options={"source": origin}), cites(1, 1)))
    assert why in looked.documents.note
    assert why in looked.passages[0].note


@pytest.mark.parametrize("origin", ["'", "x --max-files", "x --max-files many"])
def test_a_source_that_nobody_wrote_so_is_an_error_of_its_trace(
    begun: RunStarted, origin: str
) -> None:
    with pytest.raises(TraceError, match="does not say where its corpus was"):
        changed_since(trace(replace(begun, options={"source": origin}), cites(1, 1)))
