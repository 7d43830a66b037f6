"""The stretches of windows that follow one another, and the rows of words that these hold.

A window is three stretches, and shares its first with the window before it and its third with the
one after it. So words are sorted once for their stretches, and what a stretch has of a word is
told of both windows that it lies in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.runs import spread
from rlm_rag.indexes.segment import MAX_COUNT
from rlm_rag.indexes.windows import STRIDE_LINES, WINDOW_LINES, window_count

Numbers = NDArray[np.uint32]

_8, _16, _32 = np.uint64(8), np.uint32(16), np.uint64(32)
_MOST_OF_16_BITS = (1 << 16) - 1


@dataclass(frozen=True, slots=True)
class Stretches:
    """Stretches between borders, where documents have two more borders than two for each window.

    `places` are how many words lie before each border, `begins` which borders windows begin at.
    Of what follows each border, `first` and `last` are the windows that it lies in.
    """

    places: NDArray[np.int64]
    begins: NDArray[np.int64]
    first: Numbers
    last: Numbers

    @classmethod
    def of(cls, windows: NDArray[np.int64], places: NDArray[np.int64]) -> Stretches:
        """Tell of documents that have so many windows each, at least one."""
        # For each document one more, which begins with the stretch that ends its last window.
        each = windows + 1
        own = spread(np.zeros(len(each), np.int64), each)
        base = np.repeat(np.cumsum(windows) - windows, each)
        most = np.repeat(windows - 1, each)
        last = np.repeat((base + np.minimum(own, most)).astype(np.uint32), 2)
        first = last.copy()
        first[::2] = base + np.maximum(own - 1, 0)
        return cls(places, 2 * np.flatnonzero(own <= most), first, last)

    def window_sums(self, values: NDArray[np.integer]) -> NDArray[np.int64]:
        """Add up, for each window, the values of its words."""
        totals = np.zeros(len(values) + 1, np.int64)
        np.cumsum(values, out=totals[1:])
        sums: NDArray[np.int64] = totals[self.places[self.begins + 3]]
        sums -= totals[self.places[self.begins]]
        return sums

    def rows(self, words: Numbers, windows: range) -> NDArray[np.uint64]:
        """Return sorted rows, `word << 32 | window << 8 | count`, of the words of some windows.

        Of a word and a window there may be several, which follow one another.
        """
        begin, end = int(self.begins[windows.start]), int(self.begins[windows.stop - 1]) + 3
        places = self.places[begin : end + 1]
        held = words[places[0] : places[-1]]
        stretches = np.repeat(np.arange(begin, end, dtype=np.uint32), np.diff(places))
        order = _order(held)
        held, stretches = held[order], stretches[order]
        del order
        is_new = np.ones(len(held), np.bool_)
        np.not_equal(held[1:], held[:-1], out=is_new[1:])
        is_new[1:] |= stretches[1:] != stretches[:-1]
        starts = np.flatnonzero(is_new)
        counts = np.minimum(np.diff(starts, append=len(held)), MAX_COUNT)
        stretches = stretches[starts]
        first = np.maximum(self.first[stretches], np.uint32(windows.start))
        rows = held[starts].astype(np.uint64) << _32
        rows |= first.astype(np.uint64) << _8
        rows |= counts.astype(np.uint64)
        is_twice = np.minimum(self.last[stretches], np.uint32(windows.stop - 1)) > first
        again = np.flatnonzero(is_twice)
        rows = np.repeat(rows, is_twice + np.int64(1))
        again += np.arange(1, len(again) + 1)
        rows[again] += np.uint64(1 << 8)
        return rows


def windows_of_lines(
    lines: NDArray[np.int64], line_count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for lines of a document, the first window that holds each, and how many do."""
    first = np.maximum(0, (lines - WINDOW_LINES + STRIDE_LINES - 1) // STRIDE_LINES)
    last = np.minimum((lines - 1) // STRIDE_LINES, window_count(line_count) - 1)
    return first, last - first + 1


def _order(words: Numbers) -> NDArray[np.int64]:
    """Return what sorts numbers, equal ones in the order in which they come.

    By 16 bits at a time numpy sorts in as many steps as there are numbers.
    """
    order = np.argsort(words.astype(np.uint16), kind="stable")
    if len(words) and words.max() > _MOST_OF_16_BITS:
        high = (words >> _16).astype(np.uint16)
        order = order[np.argsort(high[order], kind="stable")]
    return order
