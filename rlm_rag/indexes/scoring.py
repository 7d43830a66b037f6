"""BM25 over windows, with a share of the whole file's, by numpy."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rlm_rag.indexes.candidates import SLACK, reached
from rlm_rag.indexes.columns import Column, Places, Scores, added, distinct
from rlm_rag.indexes.contest import Wanted
from rlm_rag.indexes.norms import Norms
from rlm_rag.indexes.parts import Rarity, Totals
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.recent import Recent

if TYPE_CHECKING:
    from rlm_rag.indexes.live import LivePostings

_RECENT_TERMS = 4096
# Looked up together: it takes some 50 bytes for each posting.
_TERMS_AT_ONCE = 32
_RECENT_BYTES = 32 << 20
# So many more than are wanted are looked at to learn what the best reach, and as many again.
_MORE_TRIED = 64
# Fewer are worked out as fast as they are sorted out.
_FEW = 2048


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

    def holding(self, terms: Collection[bytes]) -> dict[bytes, tuple[int, int]]:
        """Return how many windows, and how many documents, hold each of distinct terms."""
        impacts = self._impacts(terms)
        return {term: (one.windows.count, one.documents.count) for term, one in impacts.items()}

    def scores(
        self, terms: Mapping[bytes, float], rarity: Rarity, wanted: Wanted
    ) -> tuple[Places, Scores]:
        """Return windows that hold one of weighted terms, ascending, and the score of each.

        All that can be among the best that are wanted are there; where the second best of a
        document counts, all that hold a term.
        """
        found = self._impacts(terms)
        impacts = [(term, weight, found[term]) for term, weight in terms.items()]
        sums = added(
            ((one.windows, weight * rarity.windows[term]) for term, weight, one in impacts),
            self._norms.window_count,
        )
        documents = np.zeros(self._norms.document_count)
        if self._weights.whole_file:
            documents = added(
                ((one.documents, weight * rarity.documents[term]) for term, weight, one in impacts),
                self._norms.document_count,
            )
            documents *= self._weights.whole_file
        windows = self._contenders(sums, documents, wanted)
        scores = sums.take(windows)
        scores += documents.take(self._norms.document_of.take(windows))
        return windows, scores

    def _contenders(self, sums: Scores, documents: Scores, wanted: Wanted) -> Places:
        """Return the windows that can be among the best, by what the best of some of them reach."""
        document_of = self._norms.document_of
        tried = wanted.count + _MORE_TRIED
        held = sums > 0
        if wanted.second or np.count_nonzero(held) <= max(_FEW, wanted.count):
            return np.flatnonzero(held)
        enough = reached(sums, tried)
        windows = (
            np.flatnonzero(sums >= enough)[: 2 * tried]
            if enough > 0
            else np.flatnonzero(held)[:tried]
        )
        of_windows = document_of.take(windows)
        if wanted.allowed is not None:
            allowed = wanted.allowed(of_windows)
            windows, of_windows = windows[allowed], of_windows[allowed]
        beside = documents + wanted.gains
        totals = sums.take(windows) + beside.take(of_windows)
        least = reached(totals * wanted.factors(of_windows), wanted.count) - SLACK
        # First by what costs least to know.
        most_beside = float(beside.max(initial=0.0))
        windows = np.flatnonzero(sums > max(least - most_beside, 0.0))
        if least > 0:
            totals = sums.take(windows) + beside.take(document_of.take(windows))
            windows = windows[totals >= least]
        gaining = [those[sums.take(those) > 0] for those, _ in wanted.bonuses]
        return distinct(np.concatenate([windows, *gaining])) if gaining else windows

    def shares(self, terms: Mapping[bytes, float], rarity: Rarity, windows: Places) -> Scores:
        """Return how much of the terms, by weight and rarity, these windows hold: 0 to 1."""
        shares = np.zeros(len(windows))
        total = 0.0
        impacts = self._impacts(terms)
        for term, weight in terms.items():
            worth = weight * rarity.windows[term]
            shares += worth * impacts[term].windows.hold(windows)
            total += worth
        return shares / (total or 1.0)

    def _impacts(self, terms: Collection[bytes]) -> dict[bytes, _Impacts]:
        return self._recent.several(terms, self._scored)

    def _scored(self, terms: Sequence[bytes]) -> Iterator[_Impacts]:
        for first in range(0, len(terms), _TERMS_AT_ONCE):
            yield from self._scored_at_once(terms[first : first + _TERMS_AT_ONCE])

    def _scored_at_once(self, terms: Sequence[bytes]) -> Iterator[_Impacts]:
        found = self._postings.several(terms)
        norms = self._norms
        windows, counts = found.windows.astype(np.intp), found.counts.astype(np.float64)
        scores = norms.of_windows(windows, counts)
        of_window = norms.document_of.take(windows)
        begins = np.ones(len(windows), np.bool_)
        np.not_equal(of_window[1:], of_window[:-1], out=begins[1:])
        begins[found.borders[found.borders < len(windows)]] = True
        firsts = np.flatnonzero(begins)
        of_term = firsts.searchsorted(found.borders).tolist()
        if not self._weights.whole_file:
            firsts, of_term = firsts[:0], [0] * len(of_term)
        documents = of_window.take(firsts)
        totals = np.add.reduceat(counts, firsts) if len(firsts) else counts[:0]
        document_scores = norms.of_documents(documents, totals)
        borders = zip(pairwise(found.borders.tolist()), pairwise(of_term), strict=True)
        for (first, end), (document, last) in borders:
            yield _Impacts(
                Column.of(found.windows[first:end], scores[first:end], norms.window_count),
                Column.of(
                    documents[document:last].astype(np.uint32),
                    document_scores[document:last],
                    norms.document_count,
                ),
            )
