"""Where a term is in an index, and how well windows and documents hold it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.columns import Numbers, Places, Scores
from rlm_rag.indexes.norms import Norms
from rlm_rag.indexes.runs import run_starts, spread

V = TypeVar("V", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Impacts:
    """How well windows, and documents, hold a term: all that do, ascending."""

    windows: Numbers
    scores: Scores
    documents: Numbers
    document_scores: Scores

    @classmethod
    def of(cls, windows: Numbers, counts: NDArray[np.integer], norms: Norms) -> Impacts:
        """Work out how well windows that hold a term so often do, and their documents."""
        # By numbers of another size, numpy would convert them at each use.
        places, times = windows.astype(np.intp), counts.astype(np.float64)
        scores = norms.of_windows(places, times)
        if not len(windows):
            return cls(windows, scores, windows, scores)
        of_windows = norms.numbers_of.take(places)
        starts = run_starts(of_windows)
        documents, totals = of_windows.take(starts), np.add.reduceat(times, starts)
        return cls(windows, scores, documents, norms.of_documents(documents, totals))

    def in_windows(self, windows: Numbers) -> tuple[Places, Scores]:
        """Return which of some windows hold it, by their places there, and how well."""
        return _found(windows, self.windows, self.scores)

    def in_documents(self, documents: Numbers) -> tuple[Places, Scores]:
        """Return which of some documents hold it, by their places there, and how well."""
        return _found(documents, self.documents, self.document_scores)

    @classmethod
    def joined(cls, parts: Sequence[Impacts]) -> Impacts:
        """Join those of windows that follow each other, and have no document in common."""
        names = ("windows", "scores", "documents", "document_scores")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    @property
    def size_bytes(self) -> int:
        """How much memory it takes."""
        of_windows = self.windows.nbytes + self.scores.nbytes
        return of_windows + self.documents.nbytes + self.document_scores.nbytes


class HeldTerm(Protocol):
    """The windows, and the documents, that hold a term, and how well."""

    window_count: int
    document_count: int

    @property
    def size_bytes(self) -> int:
        """How much memory it takes."""
        ...

    def impacts(self) -> Impacts:
        """Return how well all hold it."""
        ...

    def in_windows(self, windows: Places) -> tuple[Places, Scores]:
        """Return which of some windows, ascending, hold it, by their places, and how well."""
        ...

    def in_documents(
        self, documents: Places, firsts: Numbers, ends: Numbers
    ) -> tuple[Places, Scores]:
        """Return which of some documents, ascending, hold it, by their places, and how well.

        Their windows are those from `firsts` to before `ends`.
        """
        ...


class LooseTerm:
    """A term of which the windows that hold it, ascending, and how often each does, are at hand.

    How well they hold it is worked out of all or of some: the same to the last bit.
    """

    __slots__ = ("_counts", "_norms", "_windows", "document_count", "window_count")

    def __init__(
        self,
        windows: Numbers,
        counts: NDArray[np.integer],
        norms: Norms,
        *,
        document_count: int | None = None,
    ) -> None:
        """Documents are counted where it is not told how many hold the term."""
        self._windows = windows
        self._counts = counts.astype(np.min_scalar_type(int(counts.max(initial=0))))
        self._norms = norms
        self.window_count = len(windows)
        if document_count is None:
            document_count = len(run_starts(norms.numbers_of.take(windows)))
        self.document_count = document_count

    @property
    def size_bytes(self) -> int:
        """How much memory it takes."""
        return self._windows.nbytes + self._counts.nbytes

    def impacts(self) -> Impacts:
        """Return how well all hold it."""
        return Impacts.of(self._windows, self._counts, self._norms)

    def in_windows(self, windows: Places) -> tuple[Places, Scores]:
        """Return which of some windows hold it, by their places there, and how well."""
        held, counts = _found(windows.astype(np.uint32), self._windows, self._counts)
        return held, self._norms.of_windows(windows.take(held), counts.astype(np.float64))

    def in_documents(
        self, documents: Places, firsts: Numbers, ends: Numbers
    ) -> tuple[Places, Scores]:
        """Return which of some documents hold it, by their places there, and how well.

        Their windows are those from `firsts` to before `ends`.
        """
        begin = self._windows.searchsorted(firsts)
        sizes = self._windows.searchsorted(ends) - begin
        return of_documents(documents, sizes, self._counts.take(spread(begin, sizes)), self._norms)


def of_documents(
    documents: Places, sizes: Places, counts: NDArray[np.integer], norms: Norms
) -> tuple[Places, Scores]:
    """Return which of some documents have windows that hold a term, by their places, and how well.

    `sizes` are how many such windows each has, `counts` how often these hold it, document by
    document.
    """
    held = np.flatnonzero(sizes)
    if not len(held):
        return held, np.zeros(0)
    sizes = sizes.take(held)
    totals = np.add.reduceat(counts.astype(np.float64), np.cumsum(sizes) - sizes)
    return held, norms.of_documents(documents.take(held), totals)


def _found(asked: Numbers, numbers: Numbers, values: NDArray[V]) -> tuple[Places, NDArray[V]]:
    """Return which of the numbers that are asked for are there, by their places, and the values."""
    if not len(numbers):
        return np.zeros(0, np.intp), values
    at = numbers.searchsorted(asked)
    held = np.flatnonzero(numbers.take(at, mode="clip") == asked)
    return held, values.take(at.take(held))
