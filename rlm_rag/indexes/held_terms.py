"""Where a term is in an index, and how well windows and documents hold it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.columns import Numbers, Places, Scores
from rlm_rag.indexes.norms import Norms
from rlm_rag.indexes.runs import run_starts, spread

if TYPE_CHECKING:
    from rlm_rag.indexes.live import LivePostings


@dataclass(frozen=True, slots=True)
class Impacts:
    """How well windows, and documents, hold a term: all that do, ascending.

    The windows are those of its `HeldTerm`.
    """

    scores: Scores
    documents: Places
    document_scores: Scores

    @property
    def size_bytes(self) -> int:
        """How much memory it takes."""
        return self.scores.nbytes + 2 * self.document_scores.nbytes


class HeldTerm:
    """The windows that hold a term, ascending, and how often each does.

    How well they hold it is worked out of all or of some: the same to the last bit.
    """

    __slots__ = ("_counts", "_norms", "_starts", "windows")

    def __init__(self, windows: Numbers, counts: NDArray[np.integer], norms: Norms) -> None:
        self.windows = windows
        self._counts = counts.astype(np.min_scalar_type(int(counts.max(initial=0))))
        self._norms = norms
        # Windows come in the order of their documents: where those of each begin.
        self._starts = run_starts(norms.numbers_of.take(windows)).astype(np.uint32)

    @classmethod
    def of(cls, term: bytes, postings: LivePostings, norms: Norms) -> HeldTerm:
        """Look a term up.

        Raises:
            SegmentError: a segment is damaged.
        """
        found = postings.postings(term)
        return cls(found.windows, found.counts, norms)

    @property
    def size_bytes(self) -> int:
        """How much memory it takes."""
        return self.windows.nbytes + self._counts.nbytes + self._starts.nbytes

    @property
    def document_count(self) -> int:
        """How many documents hold it."""
        return len(self._starts)

    def impacts(self) -> Impacts:
        """Return how well all hold it."""
        windows, counts = self.windows.astype(np.intp), self._counts.astype(np.float64)
        scores = self._norms.of_windows(windows, counts)
        if not len(windows):
            return Impacts(scores, windows, scores)
        starts = self._starts.astype(np.intp)
        documents = self._norms.document_of.take(windows.take(starts))
        totals = np.add.reduceat(counts, starts)
        return Impacts(scores, documents, self._norms.of_documents(documents, totals))

    def in_windows(self, windows: Places) -> tuple[Places, Scores]:
        """Return which of some windows hold it, by their places there, and how well."""
        if not len(self.windows):
            return windows[:0], np.zeros(0)
        numbers = windows.astype(np.uint32)
        at = self.windows.searchsorted(numbers)
        held = np.flatnonzero(self.windows.take(at, mode="clip") == numbers)
        counts = self._counts.take(at.take(held)).astype(np.float64)
        return held, self._norms.of_windows(windows.take(held), counts)

    def in_documents(
        self, documents: Places, firsts: Numbers, ends: Numbers
    ) -> tuple[Places, Scores]:
        """Return which of some documents hold it, by their places there, and how well.

        Their windows are those from `firsts` to before `ends`.
        """
        begin = self.windows.searchsorted(firsts)
        sizes = self.windows.searchsorted(ends) - begin
        held = np.flatnonzero(sizes)
        if not len(held):
            return held, np.zeros(0)
        sizes = sizes.take(held)
        counts = self._counts.take(spread(begin.take(held), sizes)).astype(np.float64)
        totals = np.add.reduceat(counts, np.cumsum(sizes) - sizes)
        return held, self._norms.of_documents(documents.take(held), totals)
