"""Joining the segments of a document's shares to the one segment that the document would have.

What comes of it is byte for byte what `build_segment` makes of the whole; memory grows with the
number of distinct words alone, since all else is read and written piece by piece.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.common import common_table
from rlm_rag.indexes.postings import counted
from rlm_rag.indexes.runs import run_starts
from rlm_rag.indexes.sections import SpooledSections
from rlm_rag.indexes.segment import COMMON, DEFINED, SEQUENCE, TERMS, WORDS, number_bytes
from rlm_rag.indexes.shares import Share
from rlm_rag.indexes.spooled import SpooledSegment
from rlm_rag.indexes.tables import BytesLike
from rlm_rag.indexes.windows import OVERLAP_LINES, STRIDE_LINES, window_count, windows_of_line

Numbers = NDArray[np.uint32]
Rows = NDArray[np.uint64]

# How many keys of one share, and how many values of all, are held at a time.
_HELD_KEYS = 1 << 14
_HELD_VALUES = 1 << 20
_8, _32 = np.uint64(8), np.uint64(32)


def join(
    shares: Sequence[Share],
    parts: Sequence[SpooledSegment],
    *,
    digest: bytes,
    kind: int,
    joined: SpooledSections,
) -> None:
    """Write the sections of a document's segment, whose shares have these segments, in order.

    Raises:
        OSError: a file cannot be read or written.
    """
    bases = [_first_window(share) for share in shares]
    windows = window_count(shares[0].total_lines)
    joined["digests"].write(digest)
    joined["kinds"].write(bytes([kind]))
    joined["window_counts"].write(array("I", [windows]).tobytes())
    lengths = np.zeros(windows, np.int64)
    for base, part in zip(bases, parts, strict=True):
        own = part.numbers("window_lengths")
        lengths[base : base + len(own)] += own
    joined["window_lengths"].write(lengths.astype(np.uint32).tobytes())
    joined["document_lengths"].write(array("I", [int(lengths.sum())]).tobytes())
    ranks = _join_keys(WORDS, parts, joined)
    shifts = [base << 8 for base in bases]
    _join_values(WORDS, parts, ranks, joined, [_Shifted(shift) for shift in shifts])
    _join_values(
        TERMS, parts, _join_keys(TERMS, parts, joined), joined, [_Renamed(own) for own in ranks]
    )
    _join_values(
        DEFINED, parts, _join_keys(DEFINED, parts, joined), joined, [_Shifted(one) for one in bases]
    )
    _join_texts(shares, bases, parts, ranks, joined)
    for name, data in common_table(_table(WORDS, joined), _table(TERMS, joined), [windows]).items():
        joined[f"{COMMON}.{name}"].write(data)


@dataclass(frozen=True, slots=True)
class _Shifted:
    """What turns a share's values to those of the document: all are greater by so much."""

    by: int

    def __call__(self, values: Numbers) -> Rows:
        return values + np.uint64(self.by)


@dataclass(frozen=True, slots=True)
class _Renamed:
    """What turns a share's numbers of words to those of the document."""

    ranks: Numbers

    def __call__(self, values: Numbers) -> Rows:
        return self.ranks[values].astype(np.uint64)


def _first_window(share: Share) -> int:
    return windows_of_line(share.first_line + 1 - share.begins_within, share.total_lines).start


def _table(name: str, joined: SpooledSections) -> dict[str, BytesLike]:
    parts = ("keys", "key_ends", "value_ends", "values")
    return {part: joined.mapped(f"{name}.{part}") for part in parts}


class _Keys:
    """The keys of a table of one share, some of them held at a time."""

    def __init__(self, part: SpooledSegment, name: str) -> None:
        self._part, self._name = part, name
        self._count = part.count(f"{name}.key_ends")
        self._read = self._place = 0
        self.held: list[bytes] = []
        self.ranks = np.zeros(self._count, np.uint32)
        self._done = 0

    @property
    def has_more(self) -> bool:
        return self._read < self._count

    def fill(self) -> None:
        """Hold as many as are held at a time, or all that are left."""
        if len(self.held) >= _HELD_KEYS // 2 or not self.has_more:
            return
        end = min(self._count, self._read + _HELD_KEYS)
        ends = self._part.numbers(f"{self._name}.key_ends", self._read, end).tolist()
        first, last = self._place, ends[-1]
        data = self._part.data(f"{self._name}.keys", first, last)
        bounds = [0, *(one - first for one in ends)]
        self.held += [data[begin:end] for begin, end in pairwise(bounds)]
        self._read, self._place = end, last

    def take(self, last: bytes | None) -> list[bytes]:
        """Return the held keys to the last, that included, which are held no more."""
        end = len(self.held) if last is None else bisect_right(self.held, last)
        taken, self.held = self.held[:end], self.held[end:]
        return taken

    def rank(self, ranks: Sequence[int]) -> None:
        """Note the numbers that the next keys have in the document's table."""
        self.ranks[self._done : self._done + len(ranks)] = ranks
        self._done += len(ranks)


def _join_keys(
    name: str, parts: Sequence[SpooledSegment], joined: SpooledSections
) -> list[Numbers]:
    """Write the keys of a table; return the number that each key of each share has there."""
    sources = [_Keys(part, name) for part in parts]
    count = size_bytes = 0
    while True:
        for source in sources:
            source.fill()
        if not any(source.held for source in sources):
            break
        # No share has a key that is not held, and comes before the first of these.
        last = min((source.held[-1] for source in sources if source.has_more), default=None)
        taken = [source.take(last) for source in sources]
        keys = sorted(set().union(*taken))
        numbers = dict(zip(keys, range(count, count + len(keys)), strict=True))
        for source, own in zip(sources, taken, strict=True):
            source.rank([numbers[key] for key in own])
        ends = array("I", accumulate(map(len, keys), initial=size_bytes))
        joined[f"{name}.keys"].write(b"".join(keys))
        joined[f"{name}.key_ends"].write(ends[1:].tobytes())
        count, size_bytes = count + len(keys), ends[-1]
    # Each is written, though no share has a key.
    joined[f"{name}.keys"].write(b"")
    joined[f"{name}.key_ends"].write(b"")
    return [source.ranks for source in sources]


def _join_values(
    name: str,
    parts: Sequence[SpooledSegment],
    ranks: Sequence[Numbers],
    joined: SpooledSections,
    turned: Sequence[_Shifted | _Renamed],
) -> None:
    """Write the values of a table's keys, whose numbers are given for each share's own."""
    ends = [part.numbers(f"{name}.value_ends").astype(np.int64) for part in parts]
    total = 0
    for first, last in _batches(ranks, ends):
        rows = [np.zeros(0, np.uint64)]
        for part, own, own_ends, turn in zip(parts, ranks, ends, turned, strict=True):
            # Of their own type: for any other, all of them are converted first, at each batch.
            begin, end = own.searchsorted(np.array([first, last], own.dtype)).tolist()
            if begin < end:
                start = int(own_ends[begin - 1]) if begin else 0
                values = part.numbers(f"{name}.values", start, int(own_ends[end - 1]))
                sizes = np.diff(own_ends[begin:end], prepend=start)
                keys = np.repeat(own[begin:end].astype(np.uint64) - np.uint64(first), sizes)
                rows.append(keys << _32 | turn(values))
        keys, sizes, values = _merged(name, np.concatenate(rows))
        counts = np.zeros(last - first, np.int64)
        counts[keys] = sizes
        joined[f"{name}.value_ends"].write((np.cumsum(counts) + total).astype(np.uint32).tobytes())
        joined[f"{name}.values"].write(values.tobytes())
        total += len(values)
    joined[f"{name}.value_ends"].write(b"")
    joined[f"{name}.values"].write(b"")


def _merged(name: str, rows: Rows) -> tuple[Numbers, NDArray[np.int64], Numbers]:
    """Return the keys of rows, `key << 32 | value`, how many values each has, and those.

    Values that a key has of several shares are one: of words, what they count is added up.
    """
    if name == WORDS:
        found = counted(rows)
        return found.words, found.counts, found.postings
    rows.sort()
    rows = rows[run_starts(rows)]
    keys = (rows >> _32).astype(np.uint32)
    firsts = run_starts(keys)
    return keys[firsts], np.diff(firsts, append=len(keys)), rows.astype(np.uint32)


def _batches(
    ranks: Sequence[Numbers], ends: Sequence[NDArray[np.int64]]
) -> Iterator[tuple[int, int]]:
    """Yield from which key to before which other there are as many values as are held at a time."""
    keys = max((int(own[-1]) + 1 for own in ranks if len(own)), default=0)
    totals = np.zeros(keys, np.int64)
    for own, own_ends in zip(ranks, ends, strict=True):
        totals[own] += np.diff(own_ends, prepend=0)
    np.cumsum(totals, out=totals)
    first = done = 0
    while first < keys:
        last = max(first + 1, int(totals.searchsorted(done + _HELD_VALUES, side="right")))
        yield first, last
        first, done = last, int(totals[last - 1])


def _join_texts(
    shares: Sequence[Share],
    bases: Sequence[int],
    parts: Sequence[SpooledSegment],
    ranks: Sequence[Numbers],
    joined: SpooledSections,
) -> None:
    """Write the words of the text in their order, and where each window's stretches begin."""
    count = max(int(own[-1]) + 1 if len(own) else 0 for own in ranks)
    width = f"u{number_bytes(count)}"
    done = 0
    for share, base, part, own, borders in zip(
        shares, bases, parts, ranks, _own_borders(shares), strict=True
    ):
        first, last = borders.start - 2 * base, borders.stop - 2 * base
        firsts = part.numbers("sequence_firsts")
        joined["sequence_firsts"].write((firsts[first:last] + np.uint32(done)).tobytes())
        joined["stretch_offsets"].write(part.numbers("stretch_offsets", first, last).tobytes())
        numbers = np.concatenate(([0], own + np.uint32(1))).astype(width)
        # A line that goes on does not end there.
        left = int(firsts[-1]) - share.ends_within
        done += left
        for piece in part.sequence(most=_HELD_VALUES):
            joined[SEQUENCE].write(numbers.take(piece[:left]).tobytes())
            left -= min(left, len(piece))
    joined["sequence_firsts"].write(array("I", [done]).tobytes())


def _own_borders(shares: Sequence[Share]) -> list[range]:
    """Return which beginnings of stretches, two of each window, are in each share."""
    total = 2 * window_count(shares[0].total_lines)
    firsts = [min(total, _borders_before(share.first_line)) for share in shares[1:]]
    return [range(first, last) for first, last in pairwise((0, *firsts, total))]


def _borders_before(line: int) -> int:
    """Return how many stretches, two of each window, begin before a line, counted from 0."""
    windows, rest = divmod(line, STRIDE_LINES)
    return 2 * windows + (rest > 0) + (rest > OVERLAP_LINES)
