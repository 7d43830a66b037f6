"""Arithmetic on runs of numbers that lie one after the other in an array."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def run_starts(values: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return where each run of equal values begins."""
    if not len(values):
        return np.zeros(0, np.intp)
    changes = np.flatnonzero(values[1:] != values[:-1])
    starts = np.zeros(len(changes) + 1, np.intp)
    np.add(changes, 1, out=starts[1:])
    return starts


def spread(firsts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return `firsts[n]` and the numbers that follow it, `sizes[n]` in all, for each n."""
    ends = np.cumsum(sizes)
    numbers = np.repeat(firsts - (ends - sizes), sizes)
    numbers += np.arange(len(numbers))
    return numbers


def sums(values: NDArray[np.integer], sizes: NDArray[np.integer]) -> NDArray[np.int64]:
    """Add up runs of these sizes, some of which may be empty."""
    totals = np.concatenate(([0], np.cumsum(values, dtype=np.int64)))
    ends = np.cumsum(sizes)
    added: NDArray[np.int64] = totals[ends] - totals[ends - sizes]
    return added
