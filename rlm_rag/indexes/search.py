"""Answering search requests: ranked windows with their snippets."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from math import log
from typing import TYPE_CHECKING

from rlm_rag.indexes.query import Query, parse_query
from rlm_rag.indexes.ranking import Ranker, Weights
from rlm_rag.indexes.requests import Hit
from rlm_rag.indexes.snippets import snippet
from rlm_rag.indexes.windows import window_lines
from rlm_rag.packed import PackedCorpus, split_lines

if TYPE_CHECKING:
    from rlm_rag.indexes.index import SearchIndex

_SCORE_DIGITS = 4
# Candidates looked at, so that k remain when neighbours are left out.
_CANDIDATES_PER_HIT = 4


class Searcher:
    """Searches one indexed corpus."""

    def __init__(self, corpus: PackedCorpus, index: SearchIndex, *, weights: Weights) -> None:
        self._corpus = corpus
        self._index = index
        self._weights = weights
        self._ranker = Ranker(index.postings, weights)

    @property
    def index(self) -> SearchIndex:
        """The index that is searched."""
        return self._index

    def search(
        self, query: str, *, k: int, allowed: Callable[[str], bool] | None = None
    ) -> tuple[Hit, ...]:
        """Return the `k` best windows, best first; ties by path, then line.

        `allowed` says which paths may be in it. A window that overlaps or adjoins a better
        one of its file is left out while others are to be had.
        """
        parsed = parse_query(query, stop_weight=self._weights.stop_word)
        scores = self._scores(parsed)
        if allowed is not None:
            scores = self._only(scores, allowed)
        chosen = self._choose(scores, k)
        weights = {term: weight * self._ranker.idf(term) for term, weight in parsed.terms.items()}
        return tuple(self._hit(window, scores[window], weights) for window in chosen)

    def _scores(self, query: Query) -> dict[int, float]:
        scores = self._ranker.scores(query.terms)
        index = self._index
        for name in query.identifiers if self._weights.defined_identifier else ():
            windows = index.defined.get(name, ())
            if windows:
                bonus = self._weights.defined_identifier * self._ranker.idf(name)
                for window in dict.fromkeys(windows):
                    scores[window] = scores.get(window, 0.0) + bonus / (1 + log(len(windows)))
        documents = index.postings.window_documents
        named = self._named_files(query.file_names) if self._weights.named_file else {}
        tests = frozenset[int]() if query.about_tests else index.tests
        if named or tests:
            for window, score in scores.items():
                document = documents[window]
                score += named.get(document, 0.0)
                scores[window] = score * self._weights.test_path if document in tests else score
        return scores

    def _named_files(self, names: Iterable[str]) -> dict[int, float]:
        """Return what a document gains by being named in the query."""
        gains: dict[int, float] = {}
        for name in names:
            ending = "/" + name
            found = [
                number
                for number, path in enumerate(self._index.paths)
                if path == name or path.endswith(ending)
            ]
            for number in found:
                gain = self._weights.named_file / (1 + log(len(found)))
                gains[number] = max(gains.get(number, 0.0), gain)
        return gains

    def _only(self, scores: dict[int, float], allowed: Callable[[str], bool]) -> dict[int, float]:
        documents = self._index.postings.window_documents
        held = {documents[window] for window in scores}
        kept = {number for number in held if allowed(self._index.paths[number])}
        return {window: score for window, score in scores.items() if documents[window] in kept}

    def _choose(self, scores: dict[int, float], k: int) -> list[int]:
        def order(window: int) -> tuple[float, str, int]:
            document, _ = self._index.postings.place(window)
            return -round(scores[window], _SCORE_DIGITS), self._index.paths[document], window

        wanted = _CANDIDATES_PER_HIT * k
        ranked = heapq.nsmallest(wanted, scores, key=order)
        chosen = self._apart(ranked, k)
        if len(chosen) < k and len(ranked) < len(scores):
            ranked = sorted(scores, key=order)
            chosen = self._apart(ranked, k)
        if len(chosen) < k:
            taken = set(chosen)
            chosen += [window for window in ranked if window not in taken][: k - len(chosen)]
            chosen.sort(key=order)
        return chosen

    def _apart(self, ranked: Iterable[int], k: int) -> list[int]:
        """Take the best windows of which no two of one file are neighbours."""
        documents = self._index.postings.window_documents
        chosen: list[int] = []
        taken: set[int] = set()
        for window in ranked:
            beside = (near for near in (window - 1, window + 1) if near in taken)
            if any(documents[near] == documents[window] for near in beside):
                continue
            chosen.append(window)
            taken.add(window)
            if len(chosen) == k:
                break
        return chosen

    def _hit(self, window: int, score: float, terms: dict[bytes, float]) -> Hit:
        document, number = self._index.postings.place(window)
        first, last = window_lines(number, self._index.line_counts[document])
        lines = split_lines(self._corpus.content(document))[first - 1 : last]
        path = self._index.paths[document]
        return Hit(path, first, last, round(score, _SCORE_DIGITS), snippet(lines, first, terms))
