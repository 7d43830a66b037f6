"""How sure a mean or a difference is: bootstrap over clusters, and McNemar's test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

RESAMPLES = 4_000
CONFIDENCE = 0.95
_Z = 1.959963984540054
_BATCH = 1 << 22


class Interval(NamedTuple):
    """A mean with its 95 % interval, whose ends are None where there is one cluster alone."""

    mean: float
    low: float | None
    high: float | None


def mean_interval(values: Sequence[float], clusters: Sequence[str]) -> Interval:
    """Return the mean of values that lie between 0 and 1, clusters being drawn with replacement.

    Percentiles of `RESAMPLES` (4,000) draws with a fixed seed, so that equal values have equal
    intervals. Where all values are 0, or all 1, no draw differs; the interval is Wilson's then,
    of as many trials as there are clusters.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no values, no mean")
    found = _bootstrap(values, clusters)
    if found.low is not None and len(set(values)) == 1 and values[0] in (0.0, 1.0):
        return wilson(values[0], len(set(clusters)))
    return found


def difference_interval(differences: Sequence[float], clusters: Sequence[str]) -> Interval:
    """Return the mean of paired differences, clusters being drawn with replacement.

    Raises:
        ValueError: there are none.
    """
    if not differences:
        raise ValueError("no pairs, no difference")
    return _bootstrap(differences, clusters)


def wilson(share: float, trials: int) -> Interval:
    """Return a share with Wilson's score interval (Wilson 1927)."""
    spread = _Z * _Z / trials
    middle = (share + spread / 2) / (1 + spread)
    half = _Z * math.sqrt(share * (1 - share) / trials + spread / (4 * trials)) / (1 + spread)
    return Interval(share, max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half)))


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the exact two-sided p of McNemar's test.

    `only_first` pairs were right in the first alone, `only_second` in the second alone.
    """
    pairs = only_first + only_second
    if not pairs:
        return 1.0
    fewer = min(only_first, only_second)
    tail = sum(math.comb(pairs, k) for k in range(fewer + 1))
    return min(1.0, 2 * tail / (1 << pairs))


def percentile(values: Sequence[float], share: float) -> float:
    """Return a percentile, interpolated between neighbours.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no values, no percentile")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _bootstrap(values: Sequence[float], clusters: Sequence[str]) -> Interval:
    import numpy as np

    mean = math.fsum(values) / len(values)
    sums: dict[str, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        sums.setdefault(cluster, []).append(value)
    if len(sums) < 2:
        return Interval(mean, None, None)
    totals = np.array([math.fsum(each) for each in sums.values()])
    sizes = np.array([len(each) for each in sums.values()], dtype=float)
    means = np.sort(np.concatenate(list(_draws(totals, sizes))))
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(mean, float(low), float(high))


def _draws(totals: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
    """Means of `RESAMPLES` draws of clusters, in batches that fit in memory."""
    import numpy as np

    count = len(totals)
    random = np.random.default_rng(0)
    rows = max(1, min(RESAMPLES, _BATCH // count))
    means = []
    for done in range(0, RESAMPLES, rows):
        drawn = random.integers(0, count, size=(min(rows, RESAMPLES - done), count))
        means.append(totals[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
    return means
