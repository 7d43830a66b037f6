"""BM25 over windows, with a share of the whole file's, by numpy."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.ranking import Weights

if TYPE_CHECKING:
    from rlm_rag.indexes.live import LivePostings

Numbers = NDArray[np.uint32]
Scores = NDArray[np.float64]

_CACHED_TERMS = 512


@dataclass(frozen=True, slots=True)
class _Impacts:
    idf: float
    windows: Numbers
    window_scores: Scores
    documents: Numbers
    document_scores: Scores


class Ranker:
    """Scores the windows of an index; keeps what it worked out for recent terms."""

    def __init__(self, postings: LivePostings, weights: Weights) -> None:
        self._postings = postings
        self._weights = weights
        self._cache: OrderedDict[bytes, _Impacts] = OrderedDict()
        self._document_of = np.asarray(postings.window_documents, np.uint32)
        self._window_norms = self._norms(postings.window_lengths)
        self._document_norms = self._norms(postings.document_lengths)

    @property
    def window_documents(self) -> Numbers:
        """The document of each window."""
        return self._document_of

    def idf(self, term: bytes) -> float:
        """Return a term's inverse window frequency, ln(1 + (N - n + 0.5) / (n + 0.5))."""
        return self._impacts(term).idf

    def scores(self, terms: Mapping[bytes, float]) -> Scores:
        """Score every window for weighted terms; those that hold none of them have 0."""
        scores = np.zeros(len(self._document_of))
        documents = np.zeros(len(self._document_norms))
        for term, weight in terms.items():
            impacts = self._impacts(term)
            scores[impacts.windows] += weight * impacts.window_scores
            documents[impacts.documents] += weight * impacts.document_scores
        if self._weights.whole_file:
            held = np.flatnonzero(scores)
            scores[held] += self._weights.whole_file * documents[self._document_of[held]]
        return scores

    def shares(self, terms: Mapping[bytes, float]) -> Scores:
        """Return how much of the terms, by weight and rarity, each window holds: 0 to 1."""
        shares = np.zeros(len(self._document_of))
        total = 0.0
        for term, weight in terms.items():
            impacts = self._impacts(term)
            shares[impacts.windows] += weight * impacts.idf
            total += weight * impacts.idf
        return shares / (total or 1.0)

    def _impacts(self, term: bytes) -> _Impacts:
        found = self._cache.get(term)
        if found is None:
            found = self._cache[term] = self._score(term)
            if len(self._cache) > _CACHED_TERMS:
                self._cache.popitem(last=False)
        else:
            self._cache.move_to_end(term)
        return found

    def _score(self, term: bytes) -> _Impacts:
        found = self._postings.postings(term)
        windows = np.asarray(found.windows, np.uint32)
        counts = np.asarray(found.counts, np.float64)
        idf = _idf(len(self._window_norms), len(windows))
        scores = idf * self._saturation(counts, self._window_norms[windows])
        if not self._weights.whole_file:
            return _Impacts(idf, windows, scores, windows[:0], scores[:0])
        # Windows come in the order of their documents.
        of_window = self._document_of[windows]
        firsts = np.flatnonzero(np.diff(of_window, prepend=np.int64(-1)))
        documents = of_window[firsts]
        totals = np.add.reduceat(counts, firsts) if len(firsts) else counts
        of_document = _idf(len(self._document_norms), len(documents)) * self._saturation(
            totals, self._document_norms[documents]
        )
        return _Impacts(idf, windows, scores, documents, of_document)

    def _norms(self, lengths: object) -> Scores:
        known = np.asarray(lengths, np.float64)
        mean = (float(known.mean()) if len(known) else 0.0) or 1.0
        k1, b = self._weights.k1, self._weights.b
        return k1 * (1 - b + b * known / mean)

    def _saturation(self, counts: Scores, norms: Scores) -> Scores:
        return counts * (self._weights.k1 + 1) / (counts + norms)


def _idf(total: int, holding: int) -> float:
    return log(1 + (total - holding + 0.5) / (holding + 0.5))
