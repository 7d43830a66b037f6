"""The core of the ranking, held against a plain BM25 written out here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.indexes.index import build_index
from rlm_rag.indexes.ranking import PLAIN
from rlm_rag.indexes.terms import raw_words, word_terms
from rlm_rag.indexes.windows import window_count, window_lines
from rlm_rag.lines import split_lines
from rlm_rag.packed import PackedCorpus

from .scores import scores_of

Pack = Callable[[Mapping[str, str]], PackedCorpus]

WORDS = [
    "alpha",
    "Beta",
    "getUser",
    "get_user",
    "user",
    "x",
    "猫が好き",
    "привет",
    "a1",
    "_",
    "été",
]
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), max_size=90).map(
    "\n".join
)
corpora = st.lists(texts, min_size=1, max_size=4).map(
    lambda contents: {f"d{number}.txt": content for number, content in enumerate(contents)}
)


def windows_of(documents: Mapping[str, str]) -> list[Counter[bytes]]:
    found = []
    for content in documents.values():
        lines = split_lines(content)
        for number in range(window_count(len(lines))):
            first, last = window_lines(number, len(lines))
            text = "\n".join(lines[first - 1 : last])
            found.append(Counter(t for word in raw_words(text) for t in word_terms(word)))
    return found


def plain_bm25(windows: list[Counter[bytes]], query: Mapping[bytes, float]) -> dict[int, float]:
    k1, b = PLAIN.k1, PLAIN.b
    # A raw word without a term counts as nothing.
    lengths = [sum(window.values()) for window in windows]
    mean = (sum(lengths) / len(lengths) if lengths else 0) or 1.0
    scores: dict[int, float] = {}
    for term, weight in query.items():
        holding = sum(1 for window in windows if term in window)
        idf = log(1 + (len(windows) - holding + 0.5) / (holding + 0.5))
        for number, window in enumerate(windows):
            if term in window:
                count = window[term]
                norm = count + k1 * (1 - b + b * lengths[number] / mean)
                scores[number] = scores.get(number, 0.0) + weight * idf * count * (k1 + 1) / norm
    return scores


@settings(max_examples=60, deadline=None)
@given(corpora, st.lists(st.sampled_from(WORDS), min_size=1, max_size=4))
def test_scores_are_those_of_plain_bm25(
    pack: Pack, documents: dict[str, str], words: list[str]
) -> None:
    query = dict.fromkeys(
        (t for word in words for w in raw_words(word) for t in word_terms(w)), 1.0
    )
    index = build_index(pack(documents), weights=PLAIN)
    scores = scores_of(index, query).tolist()
    held = {number: score for number, score in enumerate(scores) if score}
    assert held == pytest.approx(plain_bm25(windows_of(documents), query))


def test_a_share_of_the_whole_files_score_is_added(pack: Pack) -> None:
    far_apart = "alpha\n" + "filler\n" * 80 + "beta\n"
    corpus = pack({"both.txt": far_apart, "one.txt": "alpha\n" + "filler\n" * 80})
    weights = replace(PLAIN, whole_file=0.4)
    index = build_index(corpus, weights=weights)
    scores = scores_of(index, {b"alpha": 1.0, b"beta": 1.0}, weights)
    first_of = index.postings.first_windows
    assert scores[first_of[0]] > scores[first_of[1]]


def test_path_and_definition_words_count_as_occurrences(pack: Pack) -> None:
    corpus = pack({"retry/a.py": "x = 1\n", "b.py": "def retry(): pass\n", "c.py": "retry = 2\n"})
    index = build_index(corpus, weights=replace(PLAIN, path=2, definition=4))
    postings = index.postings.postings(b"retry")
    assert list(postings.windows) == [0, 1, 2]
    assert list(postings.counts) == [2, 5, 1]


def test_the_names_that_enclose_a_window_count_in_it(pack: Pack) -> None:
    body = "".join(f"        x{number} = {number}\n" for number in range(60))
    corpus = pack({"a.py": f"class Outer:\n    def inner(self):\n{body}"})
    index = build_index(corpus, weights=replace(PLAIN, scope=1))
    assert list(index.postings.postings(b"outer").windows) == [0, 1]
