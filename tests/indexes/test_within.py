"""Retrieval restricted to some of the documents, and where a text may be split."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pytest

from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.answering import Answerer
from rlm_rag.indexes.requests import (
    BordersRequest,
    BordersResult,
    GrepRequest,
    GrepResult,
    PathsRequest,
    PathsResult,
    RepoMapRequest,
    SearchRequest,
    SearchResult,
    SymbolsRequest,
    SymbolsResult,
    TextResult,
)
from rlm_rag.indexes.wire import decode_request, decode_result, encode_request, encode_result

Answers = Callable[[Mapping[str, str]], Answerer]

CODE = """import os


def retry(attempt):
    return attempt


class Delay:
    def wait(self):
        return retry(2)
"""
DOCUMENTS = {"src/a.py": CODE, "src/b.py": CODE, "lib/a.py": CODE}


@pytest.fixture(scope="module")
def answerer(answers: Answers) -> Answerer:
    return answers(DOCUMENTS)


def test_search_grep_and_symbols_keep_to_the_paths_given(answerer: Answerer) -> None:
    within = ("src/b.py", "lib/a.py")
    found = answerer.answer(SearchRequest("retry attempt", within=within))
    assert isinstance(found, SearchResult)
    assert {hit.path for hit in found.hits} == set(within)
    lines = answerer.answer(GrepRequest("def retry", path_glob="src/", within=within))
    assert isinstance(lines, GrepResult)
    assert dict(lines.counts) == {"src/b.py": 1}
    defined = answerer.answer(SymbolsRequest("retry", within=within[:1]))
    assert isinstance(defined, SymbolsResult)
    assert {symbol.path for symbol in defined.symbols} == {"src/b.py"}


def test_a_repo_map_keeps_to_the_paths_given_with_a_focus_too(answerer: Answerer) -> None:
    for focus in (None, "retry"):
        result = answerer.answer(RepoMapRequest(focus=focus, within=("src/b.py",)))
        assert isinstance(result, TextResult)
        assert "src/b.py:" in result.text
        assert "a.py:" not in result.text


def test_a_glob_that_matches_nothing_within_is_said(answerer: Answerer) -> None:
    result = answerer.answer(SearchRequest("retry", path_glob="lib/", within=("src/a.py",)))
    assert isinstance(result, SearchResult)
    assert result.hits == ()
    assert "lib/" in str(result.note)


def test_borders_are_the_definitions_of_a_document_or_of_a_text(answerer: Answerer) -> None:
    expected = BordersResult(((4, 0), (8, 0), (9, 1)))
    assert answerer.answer(BordersRequest("src/a.py")) == expected
    assert answerer.answer(BordersRequest("new.py", CODE)) == expected
    headings = answerer.answer(BordersRequest("x.md", "# A\n\ntext\n\n## B\n"))
    assert headings == BordersResult(((1, 0), (5, 1)))
    with pytest.raises(RetrievalError, match=r"no\.py"):
        answerer.answer(BordersRequest("no.py"))


def test_borders_and_paths_cross_the_pipe() -> None:
    request = BordersRequest("a.md", "# T\n")
    assert decode_request(encode_request(3, request)) == (3, request)
    result = BordersResult(((1, 0), (5, 2)), note="n")
    assert decode_result(encode_result(3, result)) == (3, result)
    _, narrowed = decode_request(encode_request(4, SearchRequest("q", within=("a", "b"))))
    assert isinstance(narrowed, SearchRequest)
    assert narrowed.within is not None
    assert list(narrowed.within) == ["a", "b"]


def test_names_mean_exact_paths_then_ends_of_paths_then_globs(answerer: Answerer) -> None:
    names = ("src/a.py", "b.py", "./lib/a.py", "src/", "*.md", "", "!", "a.py")
    found = answerer.answer(PathsRequest(names))
    assert isinstance(found, PathsResult)
    assert found.found == {
        "src/a.py": ("src/a.py",),
        "b.py": ("src/b.py",),
        "./lib/a.py": ("lib/a.py",),
        "src/": ("src/a.py", "src/b.py"),
        "a.py": ("src/a.py", "lib/a.py"),
    }
    within = answerer.answer(PathsRequest(("a.py", "lib/*"), within=("src/a.py",)))
    assert within == PathsResult({"a.py": ("src/a.py",)})
    assert decode_result(encode_result(5, found)) == (5, found)


def test_globs_that_take_too_long_together_are_stopped(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_rag.indexes.selection.SECONDS", 0.1)
    answerer = answers({"a/" * 60 + "c": "x", "b.md": "x"})
    globs = [f"{'**/a/' * 19}{number}/**" for number in range(4_000)]
    found = answerer.answer(PathsRequest(("b.md", *globs, "b.md")))
    assert isinstance(found, PathsResult)
    assert found.found == {"b.md": ("b.md",)}
    late = re.match(r"(\d+) of 4002 names", str(found.note))
    assert late is not None
    assert 1 < int(late.group(1)) < 4_002
