"""Where in a text matches of a pattern may be, told by numpy from a few of their characters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.steps import Run, Step, rarest

Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Places = NDArray[np.intp]

# What the nearest cache holds beside its results.
_CHUNK_BYTES = 1 << 16
_FIRST_WIDE = 0x80
# Two cases of an ASCII letter differ in this bit.
_CASE = 0x20
# Where more places than one of so many bytes are found, looking at each costs more than it saves.
_LEAST_BYTES = 100


class Screen:
    """Looks for runs of steps, of which every match has one."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._tests = [[(at, _test(run[at])) for at in rarest(run)] for run in runs]
        self._wide = any(step.wide for run in runs for step in run)
        self._longest = max(map(len, runs))

    def places(self, text: bytes) -> Places | None:
        """Return, ascending, all places where a match may be near; None where they are too many.

        A match that is not among them has none of the runs. A place is in the line of the match.
        """
        values = np.frombuffer(text, np.uint8)
        found: list[Places] = []
        count = 0
        wide = self._wide and not text.isascii()
        for begin in range(0, len(values), _CHUNK_BYTES):
            chunk = values[begin : begin + _CHUNK_BYTES + self._longest - 1]
            size = min(_CHUNK_BYTES, len(values) - begin)
            places = np.flatnonzero(self._near(chunk, size, wide=wide))
            if len(places):
                count += len(places)
                if count * _LEAST_BYTES > len(values):
                    return None
                places += begin
                found.append(places)
        return np.concatenate(found) if found else np.zeros(0, np.intp)

    def _near(self, chunk: Bytes, size: int, *, wide: bool) -> Bools:
        near = chunk[:size] >= _FIRST_WIDE if wide else np.zeros(size, np.bool_)
        for tests in self._tests:
            fits: Bools | None = None
            for at, test in tests:
                other = test(chunk[at : at + size])
                # Near the end of a text, what would be beyond it fits nothing.
                fits = other if fits is None else fits[: len(other)] & other[: len(fits)]
                if not fits.any():
                    break
            if fits is not None:
                near[: len(fits)] |= fits
        return near


def _test(step: Step) -> Callable[[Bytes], Bools]:
    """Return what says which bytes a step fits."""
    members = step.members
    first, last = members[0], members[-1]
    if len(members) == last - first + 1:
        if first == last:
            return lambda values: np.equal(values, first)
        low, count = np.uint8(first), last - first + 1
        return lambda values: np.less(values - low, count)
    if len(members) == 2 and last - first == _CASE and not first & _CASE:
        return lambda values: np.equal(values | np.uint8(_CASE), last)
    table = np.zeros(256, np.bool_)
    table[list(members)] = True
    return lambda values: table.take(values)
