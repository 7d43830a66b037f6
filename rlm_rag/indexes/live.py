"""The postings of a corpus, as its segments have them.

Windows and documents have the numbers that they would have in one segment of the whole corpus,
so that nothing above this sees in which order documents were indexed, or what was there before.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, repeat

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.runs import run_starts, sums
from rlm_rag.indexes.segment import DEFINED, MAX_COUNT, Segment
from rlm_rag.indexes.sources import GONE, Source

Numbers = NDArray[np.uint32]
Longs = NDArray[np.int64]

_SHIFT, _COUNT = np.uint32(8), np.uint32(MAX_COUNT)
# What stands above a posting, and above a window of 32 bits with its count.
_GROUP, _TERM = np.uint64(32), np.uint64(40)
_NONE: Numbers = np.zeros(0, np.uint32)


@dataclass(frozen=True, slots=True)
class Postings:
    """Where a term occurs: window numbers, ascending, and how often in each."""

    windows: Numbers
    counts: Numbers


@dataclass(frozen=True, slots=True)
class Several:
    """Where terms occur, one after the other: those of term n end before `borders[n + 1]`.

    They begin at `borders[n]`: window numbers, ascending for each term, and how often in each.
    """

    windows: Numbers
    counts: Numbers
    borders: Longs

    @property
    def are_apart(self) -> bool:
        """Whether no window comes twice with a term, and all are in order."""
        follow = self.windows[1:] > self.windows[:-1]
        borders = self.borders[1:-1]
        follow[borders[(borders > 0) & (borders < len(self.windows))] - 1] = True
        return bool(follow.all())

    def merged(self) -> Several:
        """Return them in order, how often a term is in one window added up."""
        terms = np.arange(len(self.borders), dtype=np.uint64) << _TERM
        keys = np.repeat(terms[:-1], np.diff(self.borders))
        keys |= self.windows.astype(np.uint64) << _SHIFT
        keys |= self.counts
        # They are nearly in order.
        keys.sort(kind="stable")
        starts = run_starts(keys >> _SHIFT)
        counts = np.add.reduceat((keys & _COUNT).astype(np.uint32), starts)
        keys = keys.take(starts)
        windows = (keys >> _SHIFT).astype(np.uint32)
        return Several(windows, counts, keys.searchsorted(terms))


@dataclass(frozen=True, slots=True)
class Run:
    """Postings of windows that follow each other, counted from the `first`, in order.

    `held` are how many windows, and how many documents, have them, where that is known.
    """

    postings: Numbers
    first: int
    held: tuple[int, int] | None


Place = tuple[int, int]
"""A document's segment, and its number in it."""


@dataclass(frozen=True, slots=True)
class Homes:
    """Windows, those of one source after the other, with the sources and how many are in each.

    Of each there is its place among those that were asked for, its number in its document, the
    source's number of that document's first window, and how many windows that has.
    """

    places: Longs
    numbers: Longs
    firsts: Longs
    counts: Longs
    sources: tuple[tuple[Source, int], ...]


class LivePostings:
    """Postings of all windows, with their lengths in terms and the documents they are of.

    `places` say, for each document of the corpus, in which of the segments it is.
    """

    def __init__(self, segments: Sequence[Segment], places: Sequence[Place]) -> None:
        owner, local = np.array(places, np.int64).reshape(-1, 2).T
        counts = np.zeros(len(places), np.int64)
        lengths = np.zeros(len(places), np.uint32)
        self.document_kinds = np.zeros(len(places), np.uint8)
        for number, segment in enumerate(segments):
            mine = owner == number
            counts[mine] = _numbers(segment, "window_counts")[local[mine]]
            lengths[mine] = _numbers(segment, "document_lengths")[local[mine]]
            kinds = np.frombuffer(segment.kinds(), np.uint8)
            self.document_kinds[mine] = kinds[local[mine]]
        firsts = np.cumsum(counts) - counts
        window_lengths = np.zeros(int(counts.sum()), np.uint32)
        stretch_offsets = np.zeros((len(window_lengths), 2), np.uint32)
        own_firsts = np.zeros(len(places), np.int64)
        self._sources: list[Source] = []
        for number, segment in enumerate(segments):
            mine = owner == number
            own_counts = _numbers(segment, "window_counts").astype(np.int64)
            own_firsts[mine] = (np.cumsum(own_counts) - own_counts)[local[mine]]
            windows = _renumbered(own_counts, local[mine], firsts[mine] - own_firsts[mine])
            kept = windows != GONE
            window_lengths[windows[kept]] = _numbers(segment, "window_lengths")[kept]
            offsets = _numbers(segment, "stretch_offsets").reshape(-1, 2)
            stretch_offsets[windows[kept]] = offsets[kept]
            self._sources.append(Source(segment, windows))
        # Without a window it would begin where another does, and nothing be found in that one; one
        # that two processes built at a time is there twice.
        held = (source for source in self._sources if (source.windows != GONE).any())
        self._in_order = sorted(held, key=_first_window)
        self._owners, self._own_firsts, self._counts = owner, own_firsts, counts
        self.window_documents = _array(np.repeat(np.arange(len(places)), counts))
        self.window_lengths = _array(window_lengths)
        # Of the first two stretches of each window, as `Segment.numbers` has them.
        self.stretch_offsets = _array(stretch_offsets)
        self.first_windows = _array(firsts)
        self.document_lengths = _array(lengths)

    @property
    def window_count(self) -> int:
        """How many windows there are."""
        return len(self.window_documents)

    @property
    def document_count(self) -> int:
        """How many documents there are, those without a line included."""
        return len(self.first_windows)

    def postings(self, term: bytes) -> Postings:
        """Return where a term occurs, whatever raw words stand for it.

        Raises:
            SegmentError: a segment is damaged.
        """
        found = self.several((term,))
        return Postings(found.windows, found.counts)

    def several(self, terms: Sequence[bytes]) -> Several:
        """Return where terms occur, whatever raw words stand for them.

        Raises:
            SegmentError: a segment is damaged.
        """
        found = self._gathered(terms)
        firsts = [source.first for source in self._in_order]
        if None not in firsts:
            return _together(found, firsts * len(terms), len(terms))
        sizes = np.array(list(map(len, found)), np.int64)
        pairs = zip(self._in_order * len(terms), found, strict=True)
        windows = _concatenated([source.windows_of(postings) for source, postings in pairs])
        kept = windows != GONE
        counts = _concatenated(found)[kept] & _COUNT
        return _several(windows[kept], counts, sums(kept, sizes), len(terms))

    def runs(self, terms: Sequence[bytes]) -> list[list[Run]] | None:
        """Return where terms occur, each in runs that follow each other.

        A window may have several postings of a term whose counts do not fit into one. None where
        the windows of a segment do not follow each other.

        Raises:
            SegmentError: a segment is damaged.
        """
        firsts = [source.first for source in self._in_order]
        if None in firsts:
            return None
        numbers = np.array(firsts, np.int64).tolist()
        found = self._gathered(terms)
        count = len(numbers)
        return [
            [
                Run(postings, first, source.common_held(term))
                for source, postings, first in zip(
                    self._in_order, found[place * count : (place + 1) * count], numbers, strict=True
                )
            ]
            for place, term in enumerate(terms)
        ]

    def _gathered(self, terms: Sequence[bytes]) -> list[Numbers]:
        """Return the postings of each term in each of the sources, in order, one term's together.

        A window may have several whose counts do not fit into one.
        """
        count = len(self._in_order)
        found = [_NONE] * (count * len(terms))
        loose: list[tuple[Numbers, NDArray[np.uint64]]] = []
        places: list[int] = []
        for number, source in enumerate(self._in_order):
            words, those = [], []
            for place, term in enumerate(terms):
                common = source.common(term)
                if common is not None:
                    found[place * count + number] = common
                elif (alone := source.only(term)) is not None:
                    found[place * count + number] = alone
                elif of_term := source.words(term):
                    words.append(of_term)
                    those.append(place * count + number)
            if words:
                postings, sizes = source.gathered(words)
                loose.append((postings, np.repeat(np.array(those, np.uint64) << _GROUP, sizes)))
                places += those
        if loose:
            keys = _added_up(*map(np.concatenate, zip(*loose, strict=True)))
            groups = np.array(places, np.uint64)
            begins = keys.searchsorted(groups << _GROUP).tolist()
            ends = keys.searchsorted(groups + np.uint64(1) << _GROUP).tolist()
            postings = keys.astype(np.uint32)
            for place, first, end in zip(places, begins, ends, strict=True):
                found[place] = postings[first:end]
        return found

    def defining(self, name: bytes) -> Sequence[int]:
        """Return the windows in which a name, given as a term, is defined, ascending.

        Raises:
            SegmentError: a segment is damaged.
        """
        found = []
        for source in self._in_order:
            number = source.segment.table(DEFINED).find(name)
            if number >= 0:
                windows = np.frombuffer(source.segment.values(DEFINED, number), np.uint32)
                found.append(source.windows.take(windows))
        if not found:
            return ()
        # No two sources have the same, and each has its own once.
        windows = np.sort(_concatenated(found))
        return _array(windows[windows != GONE])

    def place(self, window: int) -> tuple[int, int]:
        """Return a window's document, and its number within that document."""
        document = self.window_documents[window]
        return document, window - self.first_windows[document]

    def homes(self, windows: Sequence[int]) -> Homes:
        """Return where in the sources windows lie."""
        asked = np.array(windows, np.int64)
        documents = np.frombuffer(self.window_documents, np.uint32).take(asked)
        owners = self._owners.take(documents)
        places = owners.argsort(kind="stable")
        documents = documents.take(places)
        numbers = asked.take(places) - np.frombuffer(self.first_windows, np.uint32).take(documents)
        held = np.bincount(owners, minlength=len(self._sources)).tolist()
        return Homes(
            places,
            numbers,
            self._own_firsts.take(documents),
            self._counts.take(documents),
            tuple((one, count) for one, count in zip(self._sources, held, strict=True) if count),
        )


class Defined:
    """The windows that define a name, by its joined term, as a mapping's `get` gives them."""

    def __init__(self, postings: LivePostings) -> None:
        self._postings = postings
        self._known: dict[bytes, Sequence[int]] = {}

    def get(self, name: bytes, default: Sequence[int] = ()) -> Sequence[int]:
        """Return the windows, ascending, or `default`."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = self._postings.defining(name)
        return found or default


def places_of(segments: Sequence[Segment]) -> dict[bytes, Place]:
    """Return where each digest is, in the first segment that has it."""
    known: dict[bytes, Place] = {}
    for number in reversed(range(len(segments))):
        known.update(zip(segments[number].digests(), zip(repeat(number), count()), strict=False))
    return known


def together(terms: Sequence[Sequence[Run]]) -> Several:
    """Return where terms occur that have these runs."""
    postings = [run.postings for runs in terms for run in runs]
    return _together(postings, [run.first for runs in terms for run in runs], len(terms))


def _together(postings: Sequence[Numbers], firsts: Sequence[object], terms: int) -> Several:
    sizes = np.array(list(map(len, postings)), np.int64)
    packed = _concatenated(postings)
    windows = packed >> _SHIFT
    windows += np.repeat(np.array(firsts, np.uint32), sizes)
    return _several(windows, packed & _COUNT, sizes, terms)


def _several(windows: Numbers, counts: Numbers, sizes: Longs, terms: int) -> Several:
    """Return where terms occur, each in as many runs, which have these sizes."""
    of_terms = sizes.reshape(terms, -1).sum(axis=1)
    several = Several(windows, counts, np.concatenate(([0], np.cumsum(of_terms))))
    return several if several.are_apart else several.merged()


def _first_window(source: Source) -> int:
    return int(source.windows[0])


def _renumbered(counts: Longs, documents: Longs, shifts: Longs) -> Numbers:
    """Return, for each window of a segment, its number in the corpus, or `GONE`.

    `counts` are how many windows its documents have. Those of these documents are here, and their
    numbers greater by `shifts`.
    """
    shifted = np.zeros(len(counts), np.int64)
    kept = np.zeros(len(counts), bool)
    shifted[documents] = shifts
    kept[documents] = True
    windows = np.arange(counts.sum()) + np.repeat(shifted, counts)
    return np.where(np.repeat(kept, counts), windows, GONE).astype(np.uint32)


def _numbers(segment: Segment, name: str) -> Numbers:
    return np.frombuffer(segment.numbers(name), np.uint32)


def _added_up(postings: Numbers, groups: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return postings with their groups, in order, counts of one window added up if all fit."""
    keys = groups | postings
    # The words of a group have theirs in order already.
    keys.sort(kind="stable")
    cells = keys >> _SHIFT
    starts = run_starts(cells)
    if len(starts) == len(keys):
        return keys
    totals = np.add.reduceat(keys & _COUNT, starts)
    if int(totals.max()) > MAX_COUNT:
        return keys
    return cells.take(starts) << _SHIFT | totals


def _concatenated(parts: Sequence[Numbers]) -> Numbers:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else _NONE


def _array(numbers: NDArray[np.integer]) -> array[int]:
    return array("I", numbers.astype(np.uint32).tobytes())
