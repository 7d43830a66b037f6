"""Which windows can be among the best, found without working out the final score of all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rlm_rag.indexes.columns import Places, Scores

SCORE_DIGITS = 4
# Of equal ranks the first path is the best; and sums in another order differ in their last bits.
SLACK = 10.0**-SCORE_DIGITS + 1e-9
# Less than all, so that of equals the one that is no test comes first.
_MOST_LIFTED = 0.9
_GROUP_WINDOWS = 64

Windows = Places


class Found:
    """The windows a query found, ascending, their scores before discounts, and their kinds.

    `discounts` are by kind. `shares` says how much of the query windows hold, 0 to 1: a window
    that holds all that is asked for is what was meant, whatever its file, and its discount is
    lifted: by the fourth power of the share, little until nearly all is there.
    """

    def __init__(
        self,
        windows: Windows,
        scores: Scores,
        kinds: Places,
        discounts: Scores,
        shares: Callable[[Windows], Scores],
    ) -> None:
        self._windows = windows
        self._scores = scores
        self._kinds = kinds
        self._discounts = discounts
        self._shares = shares

    def best(self, count: int) -> tuple[Windows, Scores]:
        """Return windows, ascending, and their scores: the best `count`, their equals, and more."""
        discounted = self._scores * (1 - self._discounts).take(self._kinds)
        least = max(reached(discounted, count) - 10.0**-SCORE_DIGITS, 0.0)
        places = np.flatnonzero(self._scores > least)
        lifted = 1 - (1 - _MOST_LIFTED) * self._discounts.take(self._kinds.take(places))
        places = places[self._scores.take(places) * lifted > least]
        windows, scores = self._windows.take(places), self._scores.take(places)
        discounts = self._discounts.take(self._kinds.take(places))
        less = np.flatnonzero(discounts != 0)
        if len(less):
            # By products: a machine's own power may differ from another's in the last bit.
            squared = self._shares(windows[less]) ** 2
            missing = 1 - _MOST_LIFTED * squared * squared
            scores[less] *= 1 - discounts[less] * missing
        return windows, scores


def reached(scores: Scores, count: int) -> float:
    """Return what at least `count` of the scores reach: 0 where there are no more than those."""
    size = min(_GROUP_WINDOWS, len(scores) // (2 * count + 1))
    if size > 1:
        # The best of each of many groups: fewer than all, and nearly as good.
        groups = len(scores) // size
        scores = scores[: groups * size].reshape(size, groups).max(axis=0)
    if len(scores) <= count:
        return 0.0
    return float(np.partition(scores, len(scores) - count)[len(scores) - count])


class Groups:
    """Windows by their documents, which come one after the other in `documents`."""

    def __init__(self, documents: Places) -> None:
        begins = np.ones(len(documents), bool)
        begins[1:] = documents[1:] != documents[:-1]
        self._starts = np.flatnonzero(begins)
        self._group_of = np.cumsum(begins) - 1

    def second_best(self, scores: Scores) -> Scores:
        """Return, for each window, the second best score of its document: 0 where it is alone."""
        if not len(self._starts):
            return scores.copy()
        best = np.maximum.reduceat(scores, self._starts)
        is_best = scores == best.take(self._group_of)
        others = np.maximum.reduceat(np.where(is_best, 0.0, scores), self._starts)
        seconds = np.where(np.add.reduceat(is_best, self._starts, dtype=np.intp) > 1, best, others)
        return seconds.take(self._group_of)
