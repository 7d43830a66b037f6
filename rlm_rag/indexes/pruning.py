"""Scoring the best windows of a large index, without a score for all that hold a term."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from rlm_rag.indexes.columns import Numbers, Places, Scores
from rlm_rag.indexes.contest import Contest, Sums, Wanted, Weighed
from rlm_rag.indexes.held_terms import HeldTerm, Impacts, LooseTerm
from rlm_rag.indexes.live import LivePostings, Run, Several, together
from rlm_rag.indexes.norms import Norms
from rlm_rag.indexes.parts import Rarity, Totals
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.recent import Recent
from rlm_rag.indexes.runs import run_starts
from rlm_rag.indexes.stored_terms import MOST_LOOSE, StoredTerm

_RECENT_TERMS = 4096
_COUNTED_TERMS = 1 << 16
# Looked up together.
_TERMS_AT_ONCE = 32
_LEAST_BYTES = 32 << 20
# Of twenty terms that every window holds where they are, and of three how well.
_BYTES_PER_WINDOW = 96


class PrunedRanker:
    """Scores the windows of an index that is part of a corpus of these totals.

    What it worked out for recent terms is kept, and room for a number of each window.
    """

    def __init__(self, postings: LivePostings, weights: Weights, totals: Totals) -> None:
        self.totals = totals
        self._postings = postings
        self._whole_file = weights.whole_file
        self._norms = Norms(postings, weights, totals)
        firsts = np.frombuffer(postings.first_windows, np.uint32)
        self._borders: Numbers = np.append(firsts, np.uint32(postings.window_count))
        self._sums = Sums(self._norms, self._borders.astype(np.intp), weights.whole_file)
        max_bytes = max(_LEAST_BYTES, _BYTES_PER_WINDOW * postings.window_count)
        self._held: Recent[HeldTerm] = Recent(max_count=_RECENT_TERMS, max_bytes=max_bytes)
        self._impacts: Recent[Impacts] = Recent(max_count=_RECENT_TERMS, max_bytes=max_bytes)
        self._counts: dict[bytes, tuple[int, int]] = {}

    @property
    def window_documents(self) -> Places:
        """The document of each window."""
        return self._norms.document_of

    def holding(self, terms: Collection[bytes]) -> dict[bytes, tuple[int, int]]:
        """Return how many windows, and how many documents, hold each of distinct terms."""
        missing = [term for term in terms if term not in self._counts]
        if len(self._counts) + len(missing) > _COUNTED_TERMS:
            self._counts.clear()
            missing = list(terms)
        for term, held in self._held.several(missing, self._look_up).items():
            self._counts[term] = held.window_count, held.document_count
        return {term: self._counts[term] for term in terms}

    def scores(
        self, terms: Mapping[bytes, float], rarity: Rarity, wanted: Wanted
    ) -> tuple[Places, Scores]:
        """Return windows that hold one of weighted terms, ascending, and the score of each.

        All that can be among the best that are wanted are there; where the second best of a
        document counts, with all windows of it.
        """
        exact = partial(self._exact, terms, rarity)
        weighed = [
            Weighed(
                partial(self._term, term),
                partial(self._impacts_of, term),
                weight * rarity.windows[term],
                weight * rarity.documents[term],
            )
            for term, weight in terms.items()
        ]
        return Contest(self._sums, weighed, wanted, exact).best()

    def shares(self, terms: Mapping[bytes, float], rarity: Rarity, windows: Places) -> Scores:
        """Return how much of the terms, by weight and rarity, these windows hold: 0 to 1."""
        shares = np.zeros(len(windows))
        numbers = windows.astype(np.uint32)
        total = 0.0
        for term, weight in terms.items():
            worth = weight * rarity.windows[term]
            held, _ = self._in_windows(term, windows, numbers)
            shares[held] += worth
            total += worth
        return shares / (total or 1.0)

    def _exact(
        self, terms: Mapping[bytes, float], rarity: Rarity, windows: Places
    ) -> tuple[Places, Scores]:
        """Return those of some windows, ascending, that hold a term, and their scores."""
        scores = np.zeros(len(windows))
        numbers = windows.astype(np.uint32)
        for term, weight in terms.items():
            held, found = self._in_windows(term, windows, numbers)
            scores[held] += weight * rarity.windows[term] * found
        held = np.flatnonzero(scores)
        windows, scores = windows.take(held), scores.take(held)
        if self._whole_file:
            of_window = self._norms.document_of.take(windows)
            starts = run_starts(of_window)
            of_documents = self._exact_of(terms, rarity, of_window.take(starts))
            scores += np.repeat(of_documents, np.diff(starts, append=len(windows)))
        return windows, scores

    def _exact_of(self, terms: Mapping[bytes, float], rarity: Rarity, documents: Places) -> Scores:
        """Return the share of their windows' scores that documents have by themselves."""
        scores = np.zeros(len(documents))
        firsts, ends = self._borders.take(documents), self._borders.take(documents + 1)
        numbers = documents.astype(np.uint32)
        for term, weight in terms.items():
            impacts = self._impacts.kept(term)
            held, found = (
                impacts.in_documents(numbers)
                if impacts is not None
                else self._term(term).in_documents(documents, firsts, ends)
            )
            scores[held] += weight * rarity.documents[term] * found
        return scores * self._whole_file

    def _in_windows(self, term: bytes, windows: Places, numbers: Numbers) -> tuple[Places, Scores]:
        """Return which of some windows, ascending, hold a term, by their places, and how well."""
        impacts = self._impacts.kept(term)
        if impacts is not None:
            return impacts.in_windows(numbers)
        return self._term(term).in_windows(windows)

    def _term(self, term: bytes) -> HeldTerm:
        (held,) = self._held.several((term,), self._look_up).values()
        return held

    def _impacts_of(self, term: bytes) -> Impacts:
        return self._impacts.get(term, lambda key: self._term(key).impacts())

    def _look_up(self, terms: Sequence[bytes]) -> Iterator[HeldTerm]:
        """Look terms up.

        Raises:
            SegmentError: a segment is damaged.
        """
        for first in range(0, len(terms), _TERMS_AT_ONCE):
            yield from self._look_up_at_once(terms[first : first + _TERMS_AT_ONCE])

    def _look_up_at_once(self, terms: Sequence[bytes]) -> Iterator[HeldTerm]:
        runs = self._postings.runs(terms)
        if runs is None:
            return iter(self._loose(self._postings.several(terms)))
        stored = [self._stored(one) for one in runs]
        loose = [one for one, held in zip(runs, stored, strict=True) if held is None]
        others = iter(self._loose(together(loose)) if loose else ())
        return (next(others) if one is None else one for one in stored)

    def _stored(self, runs: Sequence[Run]) -> StoredTerm | None:
        if sum(len(run.postings) for run in runs) <= MOST_LOOSE:
            return None
        found = StoredTerm(runs, self._norms)
        return found if found.is_whole else None

    def _loose(self, several: Several) -> list[HeldTerm]:
        borders = pairwise(several.borders.tolist())
        windows, counts = several.windows, several.counts
        # Copies: they may be a small part of an array that nothing else needs.
        return [
            LooseTerm(windows[first:end].copy(), counts[first:end], self._norms)
            for first, end in borders
        ]
