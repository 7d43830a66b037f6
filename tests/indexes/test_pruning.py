"""Passing over windows of a large index: the answers are those of scoring all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlm_rag.indexes import common, contest, finding, pruning, scoring, stored_terms
from rlm_rag.indexes.columns import Places, Scores
from rlm_rag.indexes.finding import Finder
from rlm_rag.indexes.index import build_index
from rlm_rag.indexes.marks import Marks
from rlm_rag.indexes.path_filter import PathFilter
from rlm_rag.indexes.ranking import PLAIN, Weights
from rlm_rag.indexes.recent import Recent
from rlm_rag.indexes.search import Searcher
from rlm_rag.packed import PackedCorpus

from .test_parts import CORPORA, QUERIES, WEIGHTS, InProcess

Pack = Callable[[Mapping[str, str]], PackedCorpus]
FEW = settings(max_examples=settings().max_examples // 2)

# Rare words, common ones, and one in every window.
WORDS = st.sampled_from([*"abcdefgh", *["common"] * 6, *["often"] * 3, "def seldom():", "testing"])
LINES = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)
TEXTS = st.lists(LINES, min_size=1, max_size=90).map("\n".join)
MANY = st.lists(TEXTS, min_size=8, max_size=20).map(
    lambda texts: {f"{'tests' if n % 4 == 1 else 'x'}/f{n}.py": t for n, t in enumerate(texts)}
)
ASKED = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
LONG = st.lists(WORDS, min_size=4, max_size=9).map(
    lambda words: "title\n\n" + "\n".join(words) + "\nTraceback (most recent call last):\n"
)


@pytest.fixture(scope="module", autouse=True)
def small_steps() -> Iterator[None]:
    """Have small corpora pruned as far as large ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contest, "_MORE_TRIED", 1)
        patch.setattr(contest, "_MOST_OPEN", 8)
        patch.setattr(contest, "_FEW", 1)
        patch.setattr(contest, "_CHUNK", 3)
        patch.setattr(contest, "_WORTH_A_LOOK", 2)
        patch.setattr(stored_terms, "_LOADED_PER_LOOK", 1)
        patch.setattr(pruning, "MOST_LOOSE", 3)
        patch.setattr(common, "COMMON_POSTINGS", 4)
        yield


def searchers(corpus: PackedCorpus, weights: Weights = WEIGHTS) -> tuple[Searcher, Searcher]:
    """Return one that scores all windows, and one that passes over what it can."""
    index = build_index(corpus, weights=weights)
    found = []
    for large in (1 << 30, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(finding, "LARGE_WINDOWS", large)
            finder = Finder(corpus, index, weights=weights)
            searcher = Searcher(InProcess([finder]), weights=weights)
            # The first question decides how all are answered.
            searcher.search("nothing", k=1)
        found.append(searcher)
    return found[0], found[1]


def check(corpus: PackedCorpus, query: str, k: int, weights: Weights = WEIGHTS) -> None:
    every, pruned = searchers(corpus, weights)
    for allowed in (None, PathFilter("x/*")):
        expected = every.search(query, k=k, allowed=allowed)
        assert pruned.search(query, k=k, allowed=allowed) == expected
        with pytest.MonkeyPatch.context() as patch:
            leave_out_all_that_cannot_be_among_the_best(patch)
            assert every.search(query, k=k, allowed=allowed) == expected


def leave_out_all_that_cannot_be_among_the_best(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scoring, "_FEW", 0)
    patch.setattr(scoring, "_MORE_TRIED", 1)


def few_among_many() -> dict[str, str]:
    """Return 200 documents of which every window holds `common`, and 30 that hold more."""
    documents = {f"f{n}.txt": f"common {n}\n" * 30 for n in range(200)}
    return documents | {f"g{n}.txt": "common needle pin\n" * 30 for n in range(30)}


def watched(
    patch: pytest.MonkeyPatch, ranker: type[scoring.Ranker | pruning.PrunedRanker]
) -> list[int]:
    """Return the list that gets how many windows a ranker scores, each time."""
    scored: list[int] = []
    whole = ranker.scores

    def counted(self: object, *arguments: object) -> tuple[Places, Scores]:
        found = whole(self, *arguments)  # type: ignore[arg-type]
        scored.append(len(found[0]))
        return found

    patch.setattr(ranker, "scores", counted)
    return scored


@settings(FEW, suppress_health_check=[HealthCheck.too_slow])
@given(MANY, ASKED | LONG, st.integers(1, 3))
def test_the_best_are_those_of_all_windows(
    pack: Pack, documents: dict[str, str], query: str, k: int
) -> None:
    check(pack(documents), query, k)


@FEW
@given(CORPORA, QUERIES, st.integers(1, 12))
def test_so_they_are_for_names_files_and_reports(
    pack: Pack, documents: dict[str, str], query: str, k: int
) -> None:
    check(pack(documents), query, k)


@settings(max_examples=10)
@given(MANY, ASKED)
def test_so_they_are_without_any_extras(pack: Pack, documents: dict[str, str], query: str) -> None:
    check(pack(documents), query, 2, PLAIN)


def test_most_windows_are_passed_over(pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    every, pruned = searchers(pack(few_among_many()))
    scored = watched(monkeypatch, pruning.PrunedRanker)
    assert pruned.search("common needle pin", k=3) == every.search("common needle pin", k=3)
    assert scored[0] <= 30


def test_windows_that_cannot_be_among_the_best_are_worked_out_no_further(
    pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    every, _ = searchers(pack(few_among_many()))
    expected = every.search("common needle pin", k=3)
    leave_out_all_that_cannot_be_among_the_best(monkeypatch)
    scored = watched(monkeypatch, scoring.Ranker)
    assert every.search("common needle pin", k=3) == expected
    assert scored[0] <= 30


def test_a_question_leaves_nothing_for_the_next(pack: Pack) -> None:
    documents = {f"f{n}.py": f"def word{n}():\n    return common\n" for n in range(40)}
    every, pruned = searchers(pack(documents))
    for query in ("word3 common", "word5", "title\n\nword7 is\nwrong in common", "word3 common"):
        assert pruned.search(query, k=2) == every.search(query, k=2)


def test_a_mark_is_told_once() -> None:
    told: list[int] = []

    def tell(number: int) -> int:
        told.append(number)
        return number % 7

    marks = Marks(50, tell)
    assert marks.of(np.array([9, 3, 9])).tolist() == [2, 3, 2]
    assert marks.of(np.array([3, 49])).tolist() == [3, 0]
    assert told == [3, 9, 49]


class Weight:
    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes


def test_what_was_used_longest_ago_is_forgotten_first() -> None:
    made: list[bytes] = []

    def make(key: bytes) -> Weight:
        made.append(key)
        return Weight(len(key))

    recent: Recent[Weight] = Recent(max_count=3, max_bytes=10)
    for key in (b"aaaa", b"bbbb", b"aaaa", b"cccc", b"aaaa", b"bbbb"):
        recent.get(key, make)
    assert made == [b"aaaa", b"bbbb", b"cccc", b"bbbb"]
    recent.get(b"d" * 99, make)
    recent.get(b"d" * 99, make)
    for key in (b"1", b"2", b"3", b"4", b"1"):
        recent.get(key, make)
    assert made[4:] == [b"d" * 99, b"1", b"2", b"3", b"4", b"1"]
