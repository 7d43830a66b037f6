"""The core of the ranking, held against the package rank-bm25.

The one difference is the inverse document frequency: ours is ln(1 + (N - n + 0.5) / (n + 0.5)),
which is never negative, where that package takes ln((N - n + 0.5) / (n + 0.5)) and puts a share
of the average in the place of negative ones. It is given ours; all else is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from rlm_rag.indexes.index import SearchIndex, build_index
from rlm_rag.indexes.ranking import PLAIN
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.indexes.store import SegmentStore
from rlm_rag.indexes.terms import raw_words, word_terms
from rlm_rag.indexes.windows import window_count, window_lines
from rlm_rag.lines import split_lines
from rlm_rag.packed import PackedCorpus

from .scores import scores_of

Pack = Callable[[Mapping[str, str]], PackedCorpus]

WORDS = ["alpha", "Beta", "getUser", "get_user", "user", "x", "猫が好き", "привет", "a1", "été"]
lines = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
texts = st.lists(lines, max_size=90).map("\n".join)
corpora = st.dictionaries(st.sampled_from(["a.txt", "b.txt", "c.txt", "d.txt"]), texts, min_size=1)
queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)


class Oracle(BM25Okapi):  # type: ignore[misc]
    def _calc_idf(self, nd: dict[bytes, int]) -> None:
        self.idf = {
            word: log(1 + (self.corpus_size - holding + 0.5) / (holding + 0.5))
            for word, holding in nd.items()
        }


def terms_of(text: str) -> list[bytes]:
    return [term for word in raw_words(text) for term in word_terms(word)]


def windows_of(documents: Mapping[str, str]) -> list[list[bytes]]:
    found = []
    for content in documents.values():
        split = split_lines(content)
        for number in range(window_count(len(split))):
            first, last = window_lines(number, len(split))
            found.append(terms_of("\n".join(split[first - 1 : last])))
    return found


def check(index: SearchIndex, documents: Mapping[str, str], words: list[str]) -> None:
    windows = windows_of(documents)
    query = list(dict.fromkeys(terms_of(" ".join(words))))
    scores = scores_of(index, dict.fromkeys(query, 1.0))
    assert len(scores) == len(windows)
    if not any(windows):
        # The package divides by the mean length.
        assert not scores.any()
        return
    oracle = Oracle(windows, k1=PLAIN.k1, b=PLAIN.b)
    expected = oracle.get_scores(query)
    assert scores == pytest.approx(expected)
    ranked = np.argsort(-scores.round(9), kind="stable").tolist()
    assert ranked == np.argsort(-expected.round(9), kind="stable").tolist()


@settings(max_examples=30)
@given(corpora, queries)
def test_scores_and_ranking_are_those_of_rank_bm25(
    pack: Pack, documents: dict[str, str], words: list[str]
) -> None:
    check(build_index(pack(documents), weights=PLAIN), documents, words)


@settings(max_examples=12)
@given(st.lists(corpora, min_size=2, max_size=5), queries)
def test_so_they_are_after_any_sequence_of_updates(
    pack: Pack,
    tmp_path_factory: pytest.TempPathFactory,
    versions: list[dict[str, str]],
    words: list[str],
) -> None:
    folder: Path = tmp_path_factory.mktemp("stored") / "one"
    for documents in versions:
        store = SegmentStore(folder, stamp=stamp_of(PLAIN))
        check(build_index(pack(documents), weights=PLAIN, store=store), documents, words)
