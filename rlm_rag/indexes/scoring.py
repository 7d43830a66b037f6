"""BM25 over windows, with a share of the whole file's, by numpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rlm_rag.indexes.columns import Column, Places, Scores, added
from rlm_rag.indexes.held_terms import HeldTerm
from rlm_rag.indexes.norms import Norms
from rlm_rag.indexes.parts import Rarity, Totals
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.recent import Recent

if TYPE_CHECKING:
    from rlm_rag.indexes.live import LivePostings

_RECENT_TERMS = 4096
_RECENT_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class _Impacts:
    windows: Column
    documents: Column

    @property
    def size_bytes(self) -> int:
        """How much memory it takes."""
        return self.windows.size_bytes + self.documents.size_bytes


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
        self._recent: Recent[_Impacts] = Recent(max_count=_RECENT_TERMS, max_bytes=_RECENT_BYTES)
        self._norms = Norms(postings, weights, totals)

    @property
    def window_documents(self) -> Places:
        """The document of each window."""
        return self._norms.document_of

    def holding(self, term: bytes) -> tuple[int, int]:
        """Return how many windows, and how many documents, hold a term."""
        impacts = self._impacts(term)
        return impacts.windows.count, impacts.documents.count

    def scores(self, terms: Mapping[bytes, float], rarity: Rarity) -> tuple[Places, Scores]:
        """Return the windows that hold one of weighted terms, ascending, and the score of each."""
        impacts = [(term, weight, self._impacts(term)) for term, weight in terms.items()]
        scores = added(
            ((one.windows, weight * rarity.windows[term]) for term, weight, one in impacts),
            self._norms.window_count,
        )
        windows = np.flatnonzero(scores > 0)
        scores = scores.take(windows)
        if self._weights.whole_file:
            documents = added(
                ((one.documents, weight * rarity.documents[term]) for term, weight, one in impacts),
                self._norms.document_count,
            )
            documents *= self._weights.whole_file
            scores += documents.take(self._norms.document_of.take(windows))
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
        return self._recent.get(term, self._score)

    def _score(self, term: bytes) -> _Impacts:
        held = HeldTerm.of(term, self._postings, self._norms)
        impacts = held.impacts()
        documents = impacts.documents if self._weights.whole_file else impacts.documents[:0]
        return _Impacts(
            Column.of(held.windows, impacts.scores, self._norms.window_count),
            Column.of(
                documents.astype(np.uint32),
                impacts.document_scores[: len(documents)],
                self._norms.document_count,
            ),
        )
