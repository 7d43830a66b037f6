"""How well windows, or documents, hold single terms, and what that adds up to for several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.runs import run_starts

Numbers = NDArray[np.uint32]
Scores = NDArray[np.float64]
Places = NDArray[np.intp]

# Where a term is in more than one of so many, adding a whole column is faster than its places.
_DENSE = 8


@dataclass(frozen=True, slots=True)
class Column:
    """How well each holds a term: the numbered things alone, or, without numbers, all.

    `count` of them hold it at all.
    """

    numbers: Numbers | None
    scores: Scores
    count: int

    @classmethod
    def of(cls, numbers: Numbers, scores: Scores, total: int) -> Column:
        """Return the column of things with these numbers, of so many in all."""
        if len(numbers) * _DENSE < total:
            # Copies: these may be a small part of an array that nothing else needs.
            return cls(numbers.copy(), scores.copy(), len(numbers))
        dense = np.zeros(total)
        # Places of another size take three times as long.
        dense[numbers.astype(np.intp)] = scores
        return cls(None, dense, len(numbers))

    @property
    def size_bytes(self) -> int:
        """How much memory it takes."""
        return self.scores.nbytes + (0 if self.numbers is None else self.numbers.nbytes)

    def hold(self, numbers: Places) -> NDArray[np.bool_]:
        """Say which of these have a score."""
        if self.numbers is None:
            return self.scores.take(numbers) > 0
        if not len(self.numbers):
            return np.zeros(len(numbers), np.bool_)
        places = np.searchsorted(self.numbers, numbers.astype(np.uint32))
        return np.equal(self.numbers.take(places, mode="clip"), numbers)


def added(weighted: Iterable[tuple[Column, float]], total: int) -> Scores:
    """Return, for each of `total` things, the sum of its weighted scores, in the order given."""
    totals: Scores | None = None
    for column, weight in weighted:
        if not column.count:
            continue
        scores = weight * column.scores
        if column.numbers is None:
            totals = scores if totals is None else np.add(totals, scores, out=totals)
            continue
        if totals is None:
            totals = np.zeros(total)
        # By numbers of another size numpy adds several times as slowly.
        np.add.at(totals, column.numbers.astype(np.intp), scores)
    return np.zeros(total) if totals is None else totals


def distinct(numbers: Places) -> Places:
    """Return numbers, ascending, each once."""
    numbers = np.sort(numbers)
    return numbers.take(run_starts(numbers))


def raised(numbers: Places, scores: Scores, those: Places, gain: float) -> tuple[Places, Scores]:
    """Return numbered scores, some of them, new ones among them, with a gain; all ascending."""
    places = numbers.searchsorted(those)
    new = numbers.take(places, mode="clip") != those if len(numbers) else np.ones(len(those), bool)
    if new.any():
        scores = np.insert(scores, places[new], 0.0)
        numbers = np.insert(numbers, places[new], those[new])
        places = numbers.searchsorted(those)
    scores[places] += gain
    return numbers, scores
