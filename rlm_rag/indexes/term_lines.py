"""In which lines of windows, and just above them, terms stand, in however they are written."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.live import Homes, LivePostings, Longs
from rlm_rag.indexes.parts import Held
from rlm_rag.indexes.runs import run_starts
from rlm_rag.indexes.windows import OVERLAP_LINES, STRIDE_LINES

# A window is three stretches of words; so many before it hold all lines that may be shown with it.
_ITS_STRETCHES, _STRETCHES_ABOVE = 3, 3
# One bit more says that a line ends.
_BITS = 63
_FIRST: Longs = np.zeros(1, np.int64)


def term_lines(
    postings: LivePostings, windows: Sequence[int], terms: Sequence[bytes]
) -> list[Held]:
    """Return which terms the lines of windows, and those above them from `stretch_first`, hold.

    Lines have their numbers in their documents; of some lines further above it may be told too.

    Raises:
        SegmentError: a segment is damaged.
    """
    held: list[Held] = [{}] * len(windows)
    if not windows:
        return held
    homes = postings.homes(windows)
    found = _found(homes, terms[:_BITS])
    for base in range(_BITS, len(terms), _BITS):
        more = _found(homes, terms[base : base + _BITS])
        found = [_joined(one, two, base) for one, two in zip(found, more, strict=True)]
    for place, one in zip(homes.places.tolist(), found, strict=True):
        held[place] = one
    return held


def _found(homes: Homes, terms: Sequence[bytes]) -> list[Held]:
    """Return what the lines around each window hold of at most 63 terms."""
    above = np.maximum(2 * homes.numbers - _STRETCHES_ABOVE, 0)
    below = np.minimum(2 * homes.numbers + _ITS_STRETCHES, 2 * homes.counts)
    bits, sizes, end_bit = _marked(homes, above, below, terms)
    # The words that stand for a term, and the ends of lines: few of all.
    places = np.flatnonzero(bits != 0)
    bits = bits.take(places)
    are_ends = bits == end_bit
    ends_before = np.cumsum(are_ends)
    found = np.flatnonzero(~are_ends)
    lines = ends_before.take(found)
    starts = run_starts(lines)
    if not len(starts):
        return [{}] * len(sizes)
    lines = lines.take(starts)
    of_lines = np.bitwise_or.reduceat(bits.take(found), starts).tolist()
    before = np.concatenate((_FIRST, ends_before))
    first_lines = before.take(places.searchsorted(np.cumsum(sizes) - sizes))
    borders = [*lines.searchsorted(first_lines).tolist(), len(lines)]
    # What is added to a line of the sequence to have that of the document.
    shifts = STRIDE_LINES * (above >> 1) + OVERLAP_LINES * (above & 1) + 1 - first_lines
    numbers = (lines + shifts.repeat(np.diff(borders))).tolist()
    return [
        dict(zip(numbers[first:end], of_lines[first:end], strict=True))
        for first, end in pairwise(borders)
    ]


def _marked(
    homes: Homes, above: Longs, below: Longs, terms: Sequence[bytes]
) -> tuple[NDArray[np.unsignedinteger], Longs, int]:
    """Return the bits of all words from some stretches to others, and how many each run has.

    And the bit that stands for the end of a line.
    """
    first = 0
    bits, sizes = [], []
    end_bit = 0
    for source, count in homes.sources:
        those = slice(first, first + count)
        begins = 2 * homes.firsts[those]
        sequence, of_windows = source.sequence(begins + above[those], begins + below[those])
        marked, end_bit = source.marked(sequence, terms)
        bits.append(marked)
        sizes.append(of_windows)
        first += count
    if len(bits) == 1:
        return bits[0], sizes[0], end_bit
    return np.concatenate(bits), np.concatenate(sizes), end_bit


def _joined(one: Held, other: Held, base: int) -> Held:
    lines = sorted({*one, *other})
    return {line: one.get(line, 0) | other.get(line, 0) << base for line in lines}
