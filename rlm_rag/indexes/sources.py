"""A segment as part of an index: its postings by term, and its texts word by word."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.common import own_word
from rlm_rag.indexes.runs import spread
from rlm_rag.indexes.segment import (
    COMMON,
    COMMON_DOCUMENTS,
    COMMON_WINDOWS,
    PAGE_BYTES,
    PAGE_VALUES,
    SEQUENCE,
    TERMS,
    WORDS,
    Segment,
    SegmentError,
)

Numbers = NDArray[np.uint32]
Longs = NDArray[np.int64]

GONE = np.uint32(0xFFFFFFFF)
"""What stands for the number of a window that is in a segment, and not in the corpus."""

_KNOWN_TERMS = 4096
# What the number of a word takes in `Source.words`.
_NUMBER_BYTES = 4
_FEW_TERMS = 7
_BITS = np.left_shift(np.uint64(1), np.arange(64, dtype=np.uint64))


class Source:
    """A segment: `windows` has the corpus's number of each of its windows, or `GONE`.

    Raises:
        SegmentError: the segment is damaged.
    """

    def __init__(self, segment: Segment, windows: Numbers) -> None:
        self.segment = segment
        # By term, the numbers of the words that stand for it, as 32-bit numbers.
        self._words: dict[bytes, bytes] = {}
        self.windows = windows
        # Of a segment whose windows all follow each other, the first; then theirs need no table.
        self.first = _first_of_run(windows)
        common = segment.table(COMMON)
        self._common = {common.key(number): number for number in range(common.count)}
        self._held = [segment.numbers(name) for name in (COMMON_WINDOWS, COMMON_DOCUMENTS)]
        ends = np.frombuffer(segment.table(WORDS).value_ends, np.uint32)
        self._bounds: Longs = np.concatenate((np.zeros(1, np.int64), ends), dtype=np.int64)
        self._values = np.frombuffer(segment.all_values(WORDS), np.uint32)
        self._sequence = _array_of(segment.sequence())
        firsts = np.frombuffer(segment.numbers("sequence_firsts"), np.uint32)
        self._sequence_firsts: Longs = firsts.astype(np.int64)
        if int(self._sequence_firsts.max(initial=0)) > len(self._sequence):
            raise SegmentError("its words end before its windows do")
        self._unchecked_sequence = np.frombuffer(segment.unchecked(SEQUENCE), np.uint8)
        self._marks: NDArray[np.uint64] | None = None
        self._unchecked = np.frombuffer(segment.unchecked(WORDS), np.uint8)

    def common(self, term: bytes) -> Numbers | None:
        """Return the postings of a term that has many, which were gathered when they were written.

        They are in order; of a window there may be several whose counts do not fit into one.
        None of any other term.

        Raises:
            SegmentError: the segment is damaged.
        """
        number = self._common.get(term)
        if number is None:
            return None
        return np.frombuffer(self.segment.values(COMMON, number), np.uint32)

    def common_held(self, term: bytes) -> tuple[int, int] | None:
        """Return how many windows, and how many documents, hold a term that has many postings."""
        number = self._common.get(term)
        return None if number is None else (self._held[0][number], self._held[1][number])

    def only(self, term: bytes) -> Numbers | None:
        """Return the postings of a term that one word alone stands for, as they lie there.

        They are in order, one for each window.

        Raises:
            SegmentError: the segment is damaged.
        """
        words = self.words(term)
        if len(words) != _NUMBER_BYTES:
            return None
        number = int.from_bytes(words, sys.byteorder)
        return np.frombuffer(self.segment.values(WORDS, number), np.uint32)

    def gathered(self, groups: Sequence[bytes]) -> tuple[Numbers, Longs]:
        """Return the postings of groups of words, one word after the other, and how many each has.

        Words are given as `words` gives them, none of the groups empty.

        Raises:
            SegmentError: the segment is damaged.
        """
        words = np.frombuffer(b"".join(groups), np.uint32).astype(np.intp)
        firsts, lasts = self._bounds.take(words), self._bounds.take(words + 1)
        doubtful = _doubtful(self._unchecked, firsts // PAGE_VALUES, (lasts - 1) // PAGE_VALUES)
        self.segment.check_pages(WORDS, doubtful)
        sizes = lasts - firsts
        counts = [len(group) // _NUMBER_BYTES for group in groups]
        of_groups = np.add.reduceat(sizes, [0, *accumulate(counts[:-1])])
        postings: Numbers = self._values.take(spread(firsts, sizes))
        return postings, of_groups

    def windows_of(self, postings: Numbers) -> Numbers:
        """Return the corpus's numbers of the windows that postings are of, or `GONE`."""
        own = postings >> np.uint32(8)
        if self.first is None:
            return self.windows.take(own)
        own += self.first
        return own

    def words(self, term: bytes) -> bytes:
        """Return the numbers, of 32 bits, of the raw words that stand for a term."""
        found = self._words.get(term)
        if found is None:
            if len(self._words) >= _KNOWN_TERMS:
                self._words.clear()
            found = self._words[term] = _words_of_term(self.segment, term)
        return found

    def sequence(self, stretches: Longs, ends: Longs) -> tuple[NDArray[np.unsignedinteger], Longs]:
        """Return the words of runs of stretches, from one of these numbers to before the other.

        They are as in `Segment.sequence`; then how many each run has.

        Raises:
            SegmentError: the segment is damaged.
        """
        firsts, lasts = self._sequence_firsts[stretches], self._sequence_firsts[ends]
        page_words = PAGE_BYTES // self._sequence.itemsize
        unchecked = self._unchecked_sequence
        doubtful = _doubtful(unchecked, firsts // page_words, (lasts - 1) // page_words)
        self.segment.check_pages(SEQUENCE, doubtful)
        runs = zip(firsts.tolist(), lasts.tolist(), strict=True)
        return np.concatenate([self._sequence[first:last] for first, last in runs]), lasts - firsts

    def marked(
        self, sequence: NDArray[np.unsignedinteger], terms: Sequence[bytes]
    ) -> tuple[NDArray[np.unsignedinteger], int]:
        """Return for each word of a sequence which of at most 63 terms it stands for, as bits.

        And the bit, the highest, that ends of lines have.
        """
        if self._marks is None:
            self._marks = np.zeros(len(self._bounds), np.uint64)
        # All are 0, whatever the size; small ones are read fastest.
        marks: NDArray[np.unsignedinteger] = self._marks
        if len(terms) <= _FEW_TERMS:
            marks = self._marks.view(np.uint8)[: len(self._bounds)]
        end_bit = 1 << (8 * marks.itemsize - 1)
        found = [self.words(term) for term in terms]
        # A sequence has 0 for the end of a line.
        words = np.frombuffer(b"".join(found), np.uint32).astype(np.intp) + 1
        bits = _BITS[: len(found)].astype(marks.dtype)
        bits = bits.repeat([len(one) // _NUMBER_BYTES for one in found])
        # A term has a word once, so that what is added up is what is set.
        np.add.at(marks, words, bits)
        marks[0] = end_bit
        marked = marks.take(sequence)
        marks[words] = 0
        marks[0] = 0
        return marked, end_bit


def _doubtful(unchecked: NDArray[np.uint8], first: Longs, last: Longs) -> list[int]:
    """Return which pages were not checked of runs of them, from the first to the last."""
    pages = spread(first, last - first + 1)
    return list(dict.fromkeys(pages[unchecked.take(pages) > 0].tolist()))


def _first_of_run(windows: Numbers) -> np.uint32 | None:
    """Return the first of numbers that all follow each other, None of any others."""
    if not len(windows):
        return np.uint32(0)
    if windows[0] == GONE:
        return None
    follow = np.arange(windows[0], int(windows[0]) + len(windows), dtype=np.uint32)
    return windows[0] if np.array_equal(windows, follow) else None


def _words_of_term(segment: Segment, term: bytes) -> bytes:
    number = segment.table(TERMS).find(term)
    others = bytes(segment.values(TERMS, number)) if number >= 0 else b""
    itself = own_word(term, segment.table(WORDS))
    return others if itself < 0 else others + itself.to_bytes(_NUMBER_BYTES, sys.byteorder)


def _array_of(numbers: memoryview) -> NDArray[np.unsignedinteger]:
    return np.frombuffer(numbers, f"u{numbers.itemsize}")
