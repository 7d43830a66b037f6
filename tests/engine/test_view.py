"""What one RLM sees of a corpus, with what its blocks added, through real index processes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

import rlm_rag
from rlm_rag.corpus import Corpus
from rlm_rag.engine import added
from rlm_rag.engine.added import Added
from rlm_rag.engine.caller import Refused
from rlm_rag.engine.view import MAX_NAMES, View
from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.requests import (
    GrepRequest,
    GrepResult,
    OutlineRequest,
    ReadRequest,
    SearchRequest,
    SearchResult,
    TextResult,
)
from rlm_rag.indexes.retriever import ProcessRetriever

DOCUMENTS = {
    "src/a.py": "def wait(seconds):\n    return seconds\n",
    "src/b.py": "def wait(minutes):\n    return minutes\n",
    "lib/a.py": "WAIT = 1\n",
}


@pytest.fixture(scope="module")
def corpus() -> Iterator[Corpus]:
    entries = [{"path": path, "content": text} for path, text in DOCUMENTS.items()]
    with rlm_rag.load(entries) as loaded:
        yield loaded


def seen(corpus: Corpus, use: Callable[[View], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        retriever = ProcessRetriever(corpus.packed_path)
        view = View(corpus, retriever)
        try:
            return await use(view)
        finally:
            await view.aclose()
            await retriever.aclose()

    return asyncio.run(main())


def test_a_narrowed_view_has_the_figures_and_texts_of_its_documents_alone(corpus: Corpus) -> None:
    async def use(view: View) -> None:
        part = view.narrowed(["src/b.py", "src/a.py", "no.py"])
        assert list(part.paths()) == ["src/a.py", "src/b.py"]
        assert part.numbers == (0, 1)
        assert (len(part), part.line_count) == (2, 4)
        assert part.total_bytes == sum(len(DOCUMENTS[path]) for path in part.paths())
        assert part.text("src/a.py") == DOCUMENTS["src/a.py"]
        assert part.text("lib/a.py") is None
        assert "2 documents" in part.figures
        assert part.narrowed(["src/b.py"]).numbers == (1,)

    seen(corpus, use)


def test_an_end_of_a_path_that_is_ambiguous_in_the_corpus_may_be_clear_in_a_part(
    corpus: Corpus,
) -> None:
    async def use(view: View) -> None:
        part = view.narrowed(["src/a.py", "src/b.py"])
        found = await part.retrieve(ReadRequest("a.py"))
        assert isinstance(found, TextResult)
        assert found.path == "src/a.py"
        outside = await part.retrieve(OutlineRequest("lib/a.py"))
        assert isinstance(outside, TextResult)
        assert "no document has the path 'lib/a.py'; close to it: src/a.py" in str(outside.error)
        several = await part.retrieve(OutlineRequest("**"))
        assert isinstance(several, TextResult)
        assert [line.split()[0] for line in several.text.splitlines()] == ["src/a.py", "src/b.py"]
        with pytest.raises(RetrievalError, match="ambiguous"):
            await part.retrieve(ReadRequest("src/"))

    seen(corpus, use)


def test_names_are_resolved_once_each_and_too_many_are_refused(corpus: Corpus) -> None:
    async def use(view: View) -> None:
        view.added.add("notes.md", "x")
        chosen = await view.select(["src/b.py", "src/", "added:/notes.md", "*.md", "none", "src/"])
        assert chosen.paths == ("src/b.py", "src/a.py", "added:/notes.md")
        assert chosen.unknown == ("none",)
        with pytest.raises(RetrievalError, match=f"{MAX_NAMES + 1:,} names"):
            await view.select([f"none{n}" for n in range(MAX_NAMES + 1)])

    seen(corpus, use)


def test_added_texts_join_what_the_corpus_answers_and_follow_their_changes(corpus: Corpus) -> None:
    async def use(view: View) -> None:
        view.added.add("note", "Wait for the zebra.\n")
        found = await view.retrieve(SearchRequest("wait", k=2))
        assert isinstance(found, SearchResult)
        assert [hit.path.startswith("added:/") for hit in found.hits] == [False, True]
        lines = await view.retrieve(GrepRequest("wait", k=2, ignore_case=True))
        assert isinstance(lines, GrepResult)
        assert (lines.total, len(lines.hits), lines.truncated) == (4, 2, True)
        assert lines.counts["added:/note"] == 1
        view.added.add("/note", "Nothing.\n")
        again = await view.retrieve(GrepRequest("zebra"))
        assert isinstance(again, GrepResult)
        assert (again.total, dict(again.counts)) == (0, {})
        child = view.shared()
        child.added.add("own", "zebra")
        assert list(view.added.documents) == ["added:/note"]
        assert list(child.added.documents) == ["added:/note", "added:/own"]

    seen(corpus, use)


@pytest.mark.parametrize("path", ["", "  ", "..", "../x", "/", "a\nb", "x" * 400])
def test_a_path_that_cannot_be_one_is_refused(path: str) -> None:
    with pytest.raises(Refused):
        Added().add(path, "text")


def test_added_texts_are_bounded_in_number_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(added, "MAX_CHARS", 10)
    monkeypatch.setattr(added, "MAX_DOCUMENTS", 2)
    texts = Added({"added:/a": "12345"})
    texts.add("a", "1234567")
    texts.add("b", "123")
    with pytest.raises(Refused, match="characters"):
        texts.add("b", "1234")
    with pytest.raises(Refused, match="documents"):
        texts.add("c", "")
    assert dict(texts.documents) == {"added:/a": "1234567", "added:/b": "123"}
