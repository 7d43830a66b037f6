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

from rlm_rag.indexes.common import with_itself
from rlm_rag.indexes.runs import run_starts, spread
from rlm_rag.indexes.segment import (
    COMMON,
    DEFINED,
    MAX_COUNT,
    MAX_WINDOWS,
    PAGE_VALUES,
    SEQUENCE,
    TERMS,
    WORDS,
    Segment,
)

Numbers = NDArray[np.uint32]
Longs = NDArray[np.int64]

_SHIFT, _COUNT = np.uint32(8), np.uint32(MAX_COUNT)
_KNOWN_TERMS = 4096
_BITS = np.left_shift(np.uint64(1), np.arange(64, dtype=np.uint64))
_GONE = np.uint32(0xFFFFFFFF)
_NONE: Numbers = np.zeros(0, np.uint32)


@dataclass(frozen=True, slots=True)
class Postings:
    """Where a term occurs: window numbers, ascending, and how often in each."""

    windows: Numbers
    counts: Numbers


Place = tuple[int, int]
"""A document's segment, and its number in it."""


class Source:
    """A segment: `windows` has the corpus's number of each of its windows, or `_GONE`."""

    def __init__(self, segment: Segment, windows: Numbers, is_whole: bool) -> None:
        self.segment = segment
        self._words: dict[bytes, Numbers] = {}
        self.windows = windows
        self.is_whole = is_whole
        # Of a segment whose windows all follow each other, the first; then theirs need no table.
        self.first = _first_of_run(windows)
        ends = np.frombuffer(segment.table(WORDS).value_ends, np.uint32)
        self._bounds: Longs = np.concatenate((np.zeros(1, np.int64), ends), dtype=np.int64)
        self._values = np.frombuffer(segment.all_values(WORDS), np.uint32)
        self._sequence = _array_of(segment.sequence())
        self._sequence_firsts = _numbers(segment, "sequence_firsts").astype(np.int64)
        self._unchecked_sequence = np.frombuffer(segment.unchecked(SEQUENCE), np.uint8)
        self._marks: NDArray[np.uint64] | None = None
        self._unchecked = np.frombuffer(segment.unchecked(WORDS), np.uint8)

    def gathered(self, term: bytes) -> Numbers:
        """Return the postings of all words that stand for a term, one word after the other."""
        common = self.segment.table(COMMON).find(term)
        if common >= 0:
            return np.frombuffer(self.segment.values(COMMON, common), np.uint32)
        words = self.words(term)
        if len(words) < 2:
            number = int(words[0]) if len(words) else -1
            return self._values[:0] if number < 0 else self._of_word(number)
        firsts, lasts = self._bounds[words], self._bounds[words + 1]
        if self._unchecked.any():
            self._check(words, firsts, lasts)
        gathered: Numbers = self._values[spread(firsts, lasts - firsts)]
        return gathered

    def windows_of(self, postings: Numbers) -> Numbers:
        """Return the corpus's numbers of the windows that postings are of, or `_GONE`."""
        own = postings >> _SHIFT
        if self.first is None:
            return self.windows.take(own)
        own += self.first
        return own

    def words(self, term: bytes) -> Numbers:
        """Return the numbers of the raw words that stand for a term."""
        found = self._words.get(term)
        if found is None:
            if len(self._words) >= _KNOWN_TERMS:
                self._words.clear()
            found = self._words[term] = _words_of_term(self.segment, term)
        return found

    def sequence(self, stretches: Longs, ends: Longs) -> tuple[NDArray[np.unsignedinteger], Longs]:
        """Return the words of runs of stretches, from one of these numbers to before the other.

        They are as in `Segment.sequence`; then how many each run has.
        """
        firsts, lasts = self._sequence_firsts[stretches], self._sequence_firsts[ends]
        if self._unchecked_sequence.any():
            for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
                self.segment.check_sequence(first, last)
        sizes = lasts - firsts
        return self._sequence.take(spread(firsts, sizes)), sizes

    def marked(
        self, sequence: NDArray[np.unsignedinteger], terms: Sequence[bytes]
    ) -> NDArray[np.uint64]:
        """Return for each word of a sequence which of at most 64 terms it stands for, as bits."""
        if self._marks is None:
            self._marks = np.zeros(len(self._bounds), np.uint64)
        # A sequence has 0 for the end of a line.
        marks = self._marks[1:]
        found = [self.words(term) for term in terms]
        words = np.concatenate(found) if found else _NONE
        bits = np.repeat(_BITS[: len(found)], list(map(len, found)))
        # A term has a word once, so that what is added up is what is set.
        np.add.at(marks, words, bits)
        marked = self._marks.take(sequence)
        marks[words] = 0
        return marked

    def _of_word(self, number: int) -> Numbers:
        return np.frombuffer(self.segment.values(WORDS, number), np.uint32)

    def _check(self, words: Numbers, firsts: Longs, lasts: Longs) -> None:
        first_pages, last_pages = firsts // PAGE_VALUES, (lasts - 1) // PAGE_VALUES
        doubtful = (last_pages > first_pages + 1) | (
            self._unchecked[first_pages] | self._unchecked[last_pages] > 0
        )
        for number in words[doubtful].tolist():
            self.segment.values(WORDS, number)


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
        for number, segment in enumerate(segments):
            mine = owner == number
            counts[mine] = _numbers(segment, "window_counts")[local[mine]]
            lengths[mine] = _numbers(segment, "document_lengths")[local[mine]]
        firsts = np.cumsum(counts) - counts
        window_lengths = np.zeros(int(counts.sum()), np.uint32)
        own_firsts = np.zeros(len(places), np.int64)
        self._sources: list[Source] = []
        for number, segment in enumerate(segments):
            mine = owner == number
            own_counts = _numbers(segment, "window_counts").astype(np.int64)
            own_firsts[mine] = (np.cumsum(own_counts) - own_counts)[local[mine]]
            windows = _renumbered(own_counts, local[mine], firsts[mine] - own_firsts[mine])
            kept = windows != _GONE
            window_lengths[windows[kept]] = _numbers(segment, "window_lengths")[kept]
            self._sources.append(Source(segment, windows, bool(kept.all())))
        self._in_order = sorted(self._sources, key=_first_window)
        self._owners, self._own_firsts, self._counts = owner, own_firsts, counts
        self.window_documents = _array(np.repeat(np.arange(len(places)), counts))
        self.window_lengths = _array(window_lengths)
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
        packed = [source.gathered(term) for source in self._in_order]
        found = zip(self._in_order, packed, strict=True)
        windows = _concatenated([source.windows_of(one) for source, one in found])
        counts = _concatenated(packed) & _COUNT
        if not all(source.is_whole for source in self._sources):
            kept = windows != _GONE
            windows, counts = windows[kept], counts[kept]
        if len(windows) and not (windows[1:] > windows[:-1]).all():
            # Sorted together, which is faster than finding their order.
            keys = windows if self.window_count <= MAX_WINDOWS else windows.astype(np.uint64)
            keys = keys << _SHIFT | counts
            keys.sort()
            windows = keys >> _SHIFT
            starts = run_starts(windows)
            windows, counts = windows[starts], np.add.reduceat(keys & _COUNT, starts)
        return Postings(windows.astype(np.uint32), counts.astype(np.uint32))

    def defining(self, name: bytes) -> Sequence[int]:
        """Return the windows in which a name, given as a term, is defined, ascending.

        Raises:
            SegmentError: a segment is damaged.
        """
        found = []
        for source in self._sources:
            number = source.segment.table(DEFINED).find(name)
            if number >= 0:
                windows = np.frombuffer(source.segment.values(DEFINED, number), np.uint32)
                found.append(source.windows[windows])
        windows = np.unique(_concatenated(found))
        return _array(windows[windows != _GONE])

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


def _first_of_run(windows: Numbers) -> np.uint32 | None:
    """Return the first of numbers that all follow each other, None of any others."""
    if not len(windows) or windows[0] == _GONE:
        return None
    follow = np.arange(windows[0], int(windows[0]) + len(windows), dtype=np.uint32)
    return windows[0] if np.array_equal(windows, follow) else None


def _first_window(source: Source) -> int:
    return int(source.windows[0]) if len(source.windows) else 0


def _words_of_term(segment: Segment, term: bytes) -> Numbers:
    """Return the numbers of the raw words that stand for a term."""
    number = segment.table(TERMS).find(term)
    others = np.frombuffer(segment.values(TERMS, number), np.uint32) if number >= 0 else _NONE
    return with_itself(term, others, segment.table(WORDS))


def _renumbered(counts: Longs, documents: Longs, shifts: Longs) -> Numbers:
    """Return, for each window of a segment, its number in the corpus, or `_GONE`.

    `counts` are how many windows its documents have. Those of these documents are here, and their
    numbers greater by `shifts`.
    """
    shifted = np.zeros(len(counts), np.int64)
    kept = np.zeros(len(counts), bool)
    shifted[documents] = shifts
    kept[documents] = True
    windows = np.arange(counts.sum()) + np.repeat(shifted, counts)
    return np.where(np.repeat(kept, counts), windows, _GONE).astype(np.uint32)


def _array_of(numbers: memoryview) -> NDArray[np.unsignedinteger]:
    return np.frombuffer(numbers, f"u{numbers.itemsize}")


def _numbers(segment: Segment, name: str) -> Numbers:
    return np.frombuffer(segment.numbers(name), np.uint32)


def _concatenated(parts: Sequence[Numbers]) -> Numbers:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else _NONE


def _array(numbers: NDArray[np.integer]) -> array[int]:
    return array("I", numbers.astype(np.uint32).tobytes())
