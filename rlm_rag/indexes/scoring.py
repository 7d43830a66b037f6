"""BM25 over windows, with a share of the whole file's, by numpy."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.parts import Rarity, Totals
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.runs import run_starts

if TYPE_CHECKING:
    from rlm_rag.indexes.live import LivePostings

Numbers = NDArray[np.uint32]
Scores = NDArray[np.float64]

_CACHED_TERMS = 4096
_CACHED_BYTES = 32 << 20
# Where a term is in more than one of so many, adding a whole column is faster than its places.
_DENSE = 8


@dataclass(frozen=True, slots=True)
class _Column:
    """How well each holds a term: the numbered things alone, or, without numbers, all.

    `count` of them hold it at all.
    """

    numbers: Numbers | None
    scores: Scores
    count: int

    def add_to(self, totals: Scores, weight: float) -> None:
        if self.numbers is None:
            totals += weight * self.scores
        else:
            totals[self.numbers] += weight * self.scores

    def hold(self, numbers: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Say which of these have a score."""
        if self.numbers is None:
            return self.scores.take(numbers) > 0
        if not len(self.numbers):
            return np.zeros(len(numbers), np.bool_)
        places = np.searchsorted(self.numbers, numbers.astype(np.uint32))
        return np.equal(self.numbers.take(places, mode="clip"), numbers)


@dataclass(frozen=True, slots=True)
class _Impacts:
    windows: _Column
    documents: _Column
    size_bytes: int


def totals_of(postings: LivePostings) -> Totals:
    """Return what an index adds to the totals of its corpus."""
    return Totals(
        postings.window_count,
        int(np.sum(postings.window_lengths, dtype=np.int64)),
        postings.document_count,
        int(np.sum(postings.document_lengths, dtype=np.int64)),
    )


class Ranker:
    """Scores the windows of an index that is part of a corpus of these totals.

    What it worked out for recent terms is kept.
    """

    def __init__(self, postings: LivePostings, weights: Weights, totals: Totals) -> None:
        self.totals = totals
        self._postings = postings
        self._weights = weights
        self._cache: OrderedDict[bytes, _Impacts] = OrderedDict()
        self._cached_bytes = 0
        self._document_of = np.asarray(postings.window_documents, np.uint32)
        self._window_norms = self._norms(
            postings.window_lengths, totals.window_terms, totals.windows
        )
        self._document_norms = self._norms(
            postings.document_lengths, totals.document_terms, totals.documents
        )

    @property
    def window_documents(self) -> Numbers:
        """The document of each window."""
        return self._document_of

    def holding(self, term: bytes) -> tuple[int, int]:
        """Return how many windows, and how many documents, hold a term."""
        impacts = self._impacts(term)
        return impacts.windows.count, impacts.documents.count

    def scores(self, terms: Mapping[bytes, float], rarity: Rarity) -> Scores:
        """Score every window for weighted terms; those that hold none of them have 0."""
        scores = np.zeros(len(self._document_of))
        documents = np.zeros(len(self._document_norms))
        for term, weight in terms.items():
            impacts = self._impacts(term)
            impacts.windows.add_to(scores, weight * rarity.windows[term])
            impacts.documents.add_to(documents, weight * rarity.documents[term])
        if self._weights.whole_file:
            documents *= self._weights.whole_file
            held = np.flatnonzero(scores)
            scores[held] += documents.take(self._document_of[held])
        return scores

    def shares(
        self, terms: Mapping[bytes, float], rarity: Rarity, windows: NDArray[np.intp]
    ) -> Scores:
        """Return how much of the terms, by weight and rarity, these windows hold: 0 to 1."""
        shares = np.zeros(len(windows))
        total = 0.0
        for term, weight in terms.items():
            worth = weight * rarity.windows[term]
            shares += worth * self._impacts(term).windows.hold(windows)
            total += worth
        return shares / (total or 1.0)

    def _impacts(self, term: bytes) -> _Impacts:
        found = self._cache.get(term)
        if found is None:
            found = self._cache[term] = self._score(term)
            self._cached_bytes += found.size_bytes
            while len(self._cache) > _CACHED_TERMS or (
                self._cached_bytes > _CACHED_BYTES and len(self._cache) > 1
            ):
                _, oldest = self._cache.popitem(last=False)
                self._cached_bytes -= oldest.size_bytes
        else:
            self._cache.move_to_end(term)
        return found

    def _score(self, term: bytes) -> _Impacts:
        found = self._postings.postings(term)
        windows, counts = found.windows, found.counts.astype(np.float64)
        scores = self._saturation(counts, self._window_norms[windows])
        documents, of_document = windows[:0], scores[:0]
        if self._weights.whole_file and len(windows):
            # Windows come in the order of their documents.
            of_window = self._document_of[windows]
            firsts = run_starts(of_window)
            documents = of_window[firsts]
            totals = np.add.reduceat(counts, firsts)
            of_document = self._saturation(totals, self._document_norms[documents])
        columns = (
            _column(windows, scores, len(self._window_norms)),
            _column(documents, of_document, len(self._document_norms)),
        )
        size = sum(len(one.scores) * (8 if one.numbers is None else 12) for one in columns)
        return _Impacts(*columns, size)

    def _norms(self, lengths: object, total: int, count: int) -> Scores:
        mean = (total / count if count else 0.0) or 1.0
        k1, b = self._weights.k1, self._weights.b
        return k1 * (1 - b + b * np.asarray(lengths, np.float64) / mean)

    def _saturation(self, counts: Scores, norms: Scores) -> Scores:
        return counts * (self._weights.k1 + 1) / (counts + norms)


def _column(numbers: Numbers, scores: Scores, total: int) -> _Column:
    if len(numbers) * _DENSE < total:
        return _Column(numbers, scores, len(numbers))
    dense = np.zeros(total)
    dense[numbers] = scores
    return _Column(None, dense, len(numbers))
