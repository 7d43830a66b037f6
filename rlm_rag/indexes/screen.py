"""Where in a text matches of a pattern may be, told by numpy from a few of their characters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.steps import Run, Step, rarest

Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Places = NDArray[np.intp]

# What a nearer cache holds beside its results; each look at one has a cost of its own.
_CHUNK_BYTES = 1 << 18
_FIRST_WIDE = 0x80
# Two cases of an ASCII letter differ in this bit.
_CASE = 0x20
# Where more places than one of so many bytes are found, looking at each costs more than it saves.
_LEAST_BYTES = 100
# So many tests look at all bytes; the others at what is left, where it is less than one of these.
_DENSE_TESTS = 1
_FEW_BYTES = 150
_NOWHERE: Places = np.zeros(0, np.intp)


class Told(NamedTuple):
    """Places at which a run begins, and those where something beyond ASCII may be one; ascending.

    All steps of a run were looked at, unless it is longer than `MOST_TESTS`.
    """

    sure: Places
    doubtful: Places

    @property
    def places(self) -> Places:
        """All of them, ascending."""
        return np.union1d(*self) if len(self.doubtful) else self.sure


class Screen:
    """Looks for runs of steps, of which every match has one."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._plans = [_Plan(run) for run in runs]
        self._folds = any(plan.folds for plan in self._plans)
        self._wide = any(step.wide for run in runs for step in run)
        same = {character for run in runs for step in run for character in step.same}
        self._same = [] if self._wide else [_Plan(run) for run in _runs_beyond_ascii(same)]
        self.longest = max(map(len, runs))

    def told(self, text: bytes | memoryview) -> Told | None:
        """Return all places where a match may be near; None where they are too many.

        A match that is not among them has none of the runs. A place is in the line of the match.
        """
        values = np.frombuffer(text, np.uint8)
        sure: list[Places] = []
        doubtful: list[Places] = []
        left = len(values) // _LEAST_BYTES
        for begin in range(0, len(values), _CHUNK_BYTES):
            chunk = values[begin : begin + _CHUNK_BYTES + self.longest - 1]
            folded = chunk | np.uint8(_CASE) if self._folds else chunk
            size = min(_CHUNK_BYTES, len(values) - begin)
            found = [plan.places(chunk, folded, size) + begin for plan in self._plans]
            others = [plan.places(chunk, folded, size) + begin for plan in self._same]
            if self._wide:
                others.append(np.flatnonzero(chunk[:size] >= _FIRST_WIDE) + begin)
            sure += found
            doubtful += others
            left -= sum(map(len, (*found, *others)))
            if left < 0:
                return None
        return Told(_ascending(sure), _ascending(doubtful))


class _Test(NamedTuple):
    """What says which bytes a step fits: as they are, or with `folds`, all letters small."""

    at: int
    fits: Callable[[Bytes], Bools]
    folds: bool


class _Plan:
    """Looks for one run."""

    def __init__(self, run: Run) -> None:
        self._length = len(run)
        self._tests = [_test(at, run[at]) for at in rarest(run)]
        self.folds = any(test.folds for test in self._tests)

    def places(self, chunk: Bytes, folded: Bytes, size: int) -> Places:
        """Return the places among the first `size` at which the run begins."""
        size = min(size, len(chunk) - self._length + 1)
        if size <= 0:
            return _NOWHERE
        fits: Bools = np.ones(0, np.bool_)
        done = 0
        for number, (at, test, folds) in enumerate(self._tests):
            few = number >= _DENSE_TESTS and np.count_nonzero(fits) * _FEW_BYTES < size
            if few:
                break
            looked_at = (folded if folds else chunk)[at : at + size]
            fits = np.logical_and(fits, test(looked_at), out=fits) if number else test(looked_at)
            done = number + 1
        places = np.flatnonzero(fits)
        for at, test, folds in self._tests[done:]:
            if not len(places):
                break
            places = places[test((folded if folds else chunk)[places + at])]
        return places


def _test(at: int, step: Step) -> _Test:
    members = step.members
    first, last = members[0], members[-1]
    if len(members) == last - first + 1:
        if first == last:
            return _Test(at, lambda values: np.equal(values, first), False)
        low, count = np.uint8(first), last - first + 1
        return _Test(at, lambda values: np.less(values - low, count), False)
    if len(members) == 2 and last - first == _CASE and not first & _CASE:
        return _Test(at, lambda values: np.equal(values, last), True)
    table = np.zeros(256, np.bool_)
    table[list(members)] = True
    return _Test(at, lambda values: table.take(values), False)


def _ascending(found: Sequence[Places]) -> Places:
    some = [places for places in found if len(places)]
    if len(some) < 2:
        return some[0] if some else _NOWHERE
    return np.unique(np.concatenate(some))


def _runs_beyond_ascii(characters: set[str]) -> list[Run]:
    """Return runs of bytes that each character has one of, and others perhaps."""
    encoded: dict[int, list[bytes]] = {}
    for character in characters:
        data = character.encode()
        encoded.setdefault(data[0], []).append(data)
    return [
        tuple(Step(bytes(sorted(set(column))), False) for column in zip(*alike, strict=False))
        for alike in encoded.values()
    ]
