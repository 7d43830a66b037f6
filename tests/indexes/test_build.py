"""What is in a segment does not depend on how much of it was counted at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.indexes import parallel, postings
from rlm_rag.indexes.definitions import scan, scannable
from rlm_rag.indexes.forms import VARIABLE, Language
from rlm_rag.indexes.index import Progress, SearchIndex, build_index
from rlm_rag.indexes.language_rows import LANGUAGES
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.indexes.store import SegmentStore
from rlm_rag.packed import PackedCorpus

from .segments import build_segment

Pack = Callable[[Mapping[str, str]], PackedCorpus]

PIECES = (
    "class Load:",
    "  def load(x):",
    "    return x",
    "async def f():",
    "type Xs = list[int]",
    "X_1: int = 2",
    "y = 3",
    "cdef f(x):",
    "export class A {",
    "func (a) b(",
    "fn c(",
    "}",
    "",
    "# def no",
    "\tdef tab():",
)
texts = st.lists(st.sampled_from(PIECES), max_size=120).map("\n".join)


@settings(max_examples=15, deadline=None)
@given(st.lists(texts, min_size=1, max_size=4), st.integers(1, 40), st.integers(1, 3))
def test_segments_are_the_same_in_however_many_pieces_they_were_counted(
    pack: Pack, contents: list[str], words: int, windows: int
) -> None:
    corpus = pack({f"src/m{number}.py": text for number, text in enumerate(contents)})
    whole = build_segment(corpus, range(len(corpus)), weights=Weights())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "_PIECE_WORDS", words)
        patch.setattr(postings, "_PIECE_WINDOWS", windows)
        assert build_segment(corpus, range(len(corpus)), weights=Weights()) == whole


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
@settings(max_examples=30, deadline=None)
@given(text=texts)
def test_leaving_variables_out_leaves_out_nothing_else(language: Language, text: str) -> None:
    data = scannable(text.encode())
    expected = [match for match in scan(data, language) if match.kind != VARIABLE]
    assert list(scan(data, language, variables=False)) == expected


class KilledError(Exception):
    """Stands for the end of a process."""


def test_a_build_that_was_killed_goes_on_where_it_was(
    pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "_PIECE_BYTES", 300)
    corpus = pack({f"{number}.txt": f"word{number}\n" * 20 for number in range(12)})
    weights = Weights()

    def build(on_progress: Progress) -> SearchIndex:
        store = SegmentStore(tmp_path / "one", stamp=stamp_of(weights))
        return build_index(corpus, weights=weights, store=store, on_progress=on_progress)

    def kill(done: int, total: int) -> None:
        if done >= 5:
            raise KilledError

    with pytest.raises(KilledError):
        build(kill)
    told: list[tuple[int, int]] = []
    index = build(lambda done, total: told.append((done, total)))
    (held, _), *_, last = told
    assert 5 <= held < 12
    assert last == (12, 12)
    assert index.added == 12 - held
    whole = build_index(corpus, weights=weights)
    for term in (b"word3", b"word11", b"word"):
        found = index.postings.postings(term).windows.tolist()
        assert found == whole.postings.postings(term).windows.tolist()
