"""BM25 over windows, with a share of the whole file's, by numpy."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rlm_rag.indexes.columns import Column, Places, Scores, added
from rlm_rag.indexes.parts import Rarity, Totals
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.runs import run_starts

if TYPE_CHECKING:
    from rlm_rag.indexes.live import LivePostings

_CACHED_TERMS = 4096
_CACHED_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class _Impacts:
    windows: Column
    documents: Column


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
        # By numbers of another size, numpy would convert them whenever they are used.
        self._document_of = np.asarray(postings.window_documents, np.intp)
        self._window_norms = self._norms(
            postings.window_lengths, totals.window_terms, totals.windows
        )
        self._document_norms = self._norms(
            postings.document_lengths, totals.document_terms, totals.documents
        )

    @property
    def window_documents(self) -> Places:
        """The document of each window."""
        return self._document_of

    def holding(self, term: bytes) -> tuple[int, int]:
        """Return how many windows, and how many documents, hold a term."""
        impacts = self._impacts(term)
        return impacts.windows.count, impacts.documents.count

    def scores(self, terms: Mapping[bytes, float], rarity: Rarity) -> tuple[Places, Scores]:
        """Return the windows that hold one of weighted terms, ascending, and the score of each."""
        impacts = [(term, weight, self._impacts(term)) for term, weight in terms.items()]
        scores = added(
            ((one.windows, weight * rarity.windows[term]) for term, weight, one in impacts),
            len(self._document_of),
        )
        windows = np.flatnonzero(scores > 0)
        scores = scores.take(windows)
        if self._weights.whole_file:
            documents = added(
                ((one.documents, weight * rarity.documents[term]) for term, weight, one in impacts),
                len(self._document_norms),
            )
            documents *= self._weights.whole_file
            scores += documents.take(self._document_of.take(windows))
        return windows, scores

    def shares(self, terms: Mapping[bytes, float], rarity: Rarity, windows: Places) -> Scores:
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
            self._cached_bytes += _size_bytes(found)
            while len(self._cache) > _CACHED_TERMS or (
                self._cached_bytes > _CACHED_BYTES and len(self._cache) > 1
            ):
                _, oldest = self._cache.popitem(last=False)
                self._cached_bytes -= _size_bytes(oldest)
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
            documents = of_window[firsts].astype(np.uint32)
            totals = np.add.reduceat(counts, firsts)
            of_document = self._saturation(totals, self._document_norms[documents])
        return _Impacts(
            Column.of(windows, scores, len(self._window_norms)),
            Column.of(documents, of_document, len(self._document_norms)),
        )

    def _norms(self, lengths: object, total: int, count: int) -> Scores:
        mean = (total / count if count else 0.0) or 1.0
        k1, b = self._weights.k1, self._weights.b
        return k1 * (1 - b + b * np.asarray(lengths, np.float64) / mean)

    def _saturation(self, counts: Scores, norms: Scores) -> Scores:
        return counts * (self._weights.k1 + 1) / (counts + norms)


def _size_bytes(impacts: _Impacts) -> int:
    return impacts.windows.size_bytes + impacts.documents.size_bytes
