"""A common term of a large index, whose postings are read where they lie in its segments."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rlm_rag.indexes.columns import Numbers, Places, Scores
from rlm_rag.indexes.common import held_by
from rlm_rag.indexes.held_terms import Impacts, LooseTerm, of_documents
from rlm_rag.indexes.live import Run, together
from rlm_rag.indexes.norms import Norms
from rlm_rag.indexes.segment import MAX_COUNT

MOST_LOOSE = 1 << 15
"""Terms of more postings are read where they lie; fewer are looked up faster in one array."""

# A look in twenty runs takes as long as loading so many postings.
_LOADED_PER_LOOK = 1 << 14
# A window's number and its count.
_LOADED_BYTES = 5

_SHIFT, _COUNT, _ONE = np.uint32(8), np.uint32(MAX_COUNT), np.uint32(1)


class StoredTerm:
    """A term that runs of postings hold, one for each window, in the order of their windows.

    How well windows hold it is worked out of all or of some, a run at a time, which a processor
    has at hand: the same to the last bit.
    """

    __slots__ = (
        "_firsts",
        "_loaded",
        "_looked_up",
        "_norms",
        "_runs",
        "document_count",
        "window_count",
    )

    def __init__(self, runs: Sequence[Run], norms: Norms) -> None:
        self._runs = runs
        self._norms = norms
        self._firsts = np.array([run.first for run in runs], np.intp)
        self._loaded: LooseTerm | None = None
        self._looked_up = 0
        held = [_held(run, norms) for run in runs]
        self.window_count = sum(windows for windows, _ in held)
        self.document_count = sum(documents for _, documents in held)

    @property
    def is_whole(self) -> bool:
        """Whether each window has one posting: what is often in one may have several."""
        return self.window_count == sum(len(run.postings) for run in self._runs)

    @property
    def size_bytes(self) -> int:
        """How much memory it takes at most, beside that of the segments: where it is loaded."""
        return _LOADED_BYTES * self.window_count

    def impacts(self) -> Impacts:
        """Return how well all hold it."""
        found = []
        for run in self._runs:
            windows = run.postings >> _SHIFT
            windows += np.uint32(run.first)
            found.append(Impacts.of(windows, run.postings & _COUNT, self._norms))
        return Impacts.joined(found)

    def in_windows(self, windows: Places) -> tuple[Places, Scores]:
        """Return which of some windows, ascending, hold it, by their places, and how well."""
        loaded = self._often_asked()
        if loaded is not None:
            return loaded.in_windows(windows)
        borders = [*windows.searchsorted(self._firsts).tolist(), len(windows)]
        asked = windows.astype(np.uint32)
        found = np.zeros(len(windows), np.uint32)
        for run, (begin, end) in zip(self._runs, pairwise(borders), strict=True):
            if begin == end:
                continue
            asked[begin:end] -= np.uint32(run.first)
            asked[begin:end] <<= _SHIFT
            if len(run.postings):
                at = run.postings.searchsorted(asked[begin:end])
                run.postings.take(at, mode="clip", out=found[begin:end])
        # Of the same window the count is left, which is not 0; all else is larger.
        found ^= asked
        held = np.flatnonzero(found - _ONE < _COUNT)
        counts = found.take(held).astype(np.float64)
        return held, self._norms.of_windows(windows.take(held), counts)

    def in_documents(
        self, documents: Places, firsts: Numbers, ends: Numbers
    ) -> tuple[Places, Scores]:
        """Return which of some documents, ascending, hold it, by their places, and how well.

        Their windows are those from `firsts` to before `ends`.
        """
        loaded = self._often_asked()
        if loaded is not None:
            return loaded.in_documents(documents, firsts, ends)
        borders = [*firsts.searchsorted(self._firsts).tolist(), len(firsts)]
        found: list[Numbers] = [np.zeros(0, np.uint32)]
        sizes = np.zeros(len(firsts), np.intp)
        for run, (begin, end) in zip(self._runs, pairwise(borders), strict=True):
            if begin < end and len(run.postings):
                bounds = np.stack((firsts[begin:end], ends[begin:end])) - np.uint32(run.first)
                places = run.postings.searchsorted(bounds << _SHIFT)
                sizes[begin:end] = places[1] - places[0]
                found += [run.postings[one:other] for one, other in places.T.tolist()]
        return of_documents(documents, sizes, np.concatenate(found) & _COUNT, self._norms)

    def _often_asked(self) -> LooseTerm | None:
        """Load all of it once it was looked up so often that this would have cost less."""
        self._looked_up += 1
        if self._loaded is None and self._looked_up * _LOADED_PER_LOOK > self.window_count:
            all_of_it = together([self._runs])
            self._loaded = LooseTerm(
                all_of_it.windows,
                all_of_it.counts,
                self._norms,
                document_count=self.document_count,
            )
        return self._loaded


def _held(run: Run, norms: Norms) -> tuple[int, int]:
    if run.held is not None:
        return run.held
    return held_by(run.postings, norms.numbers_of[run.first :])
