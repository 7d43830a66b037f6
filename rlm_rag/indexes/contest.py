"""Which windows of a large index can be among the best, told without a score for all of them.

Terms are taken from the one that can add most on. Those that are left can add so much to any
score, and once that does not reach what the best have without them, windows that hold nothing
else are out (MaxScore: Turtle and Flood, 1995). Of a long query that is never so: all of its
terms are taken, in their own order, so that the sums are the scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.candidates import SLACK, reached
from rlm_rag.indexes.columns import Numbers, Places, Scores, distinct
from rlm_rag.indexes.held_terms import HeldTerm, Impacts
from rlm_rag.indexes.norms import Norms
from rlm_rag.indexes.runs import spread

# So many more than are wanted are scored to learn what the best reach, and as many at most again.
_MORE_TRIED = 64
# A look at how far it is costs as much as a term or two; what is left must have fallen to so much.
# A look at how far it is costs as much as adding to so many windows.
_WORTH_A_LOOK = 200_000
# Windows of whole documents that are looked at rather than another term taken.
_MOST_OPEN = 4096
# With more terms none is left out: half of them have to be taken in any case.
_MOST_TERMS = 40
# Fewer are scored as fast as they are sorted out.
_FEW = 512
# From one in so many on, all are set to 0 in less time than those.
_SCATTERED = 8
# So many at a time stay in a processor's own memory: all of 500,000 together take twice as long.
_CHUNK = 1 << 15

_NONE: Places = np.zeros(0, np.intp)

Exact = Callable[[Places], tuple[Places, Scores]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """How many of the best windows are wanted, and what they get beside the scores of terms.

    `gains` are by document, and `gaining` those that have one, some of them twice; `bonuses` are
    windows and what each gains; `second` is the share that a window gets of its document's second
    best score. `factors` gives what the scores of documents are multiplied by at least, `allowed`
    which of them count.
    """

    count: int
    gains: Scores
    gaining: Places
    bonuses: Sequence[tuple[Places, float]]
    second: float
    factors: Callable[[Places], Scores]
    allowed: Callable[[Places], NDArray[np.bool_]] | None


@dataclass(frozen=True, slots=True)
class Weighed:
    """A term of a query, and what scores of it count: of a window, and of a document."""

    held: Callable[[], HeldTerm]
    impacts: Callable[[], Impacts]
    of_window: float
    of_document: float


class Sums:
    """Room for a sum of scores by window, and by document; all are 0 between contests.

    The windows of document n are those from `borders[n]` to before `borders[n + 1]`; a window's
    score has `share` of its document's.
    """

    def __init__(self, norms: Norms, borders: Places, share: float) -> None:
        self.norms = norms
        self.share = share
        self.borders = borders
        self.of_windows = np.zeros(norms.window_count)
        self.of_documents = np.zeros(norms.document_count)

    def windows_of(self, documents: Places) -> Places:
        """Return the windows of documents."""
        firsts = self.borders.take(documents)
        return spread(firsts, self.borders.take(documents + 1) - firsts)

    def count_windows(self, documents: Places) -> int:
        """Return how many windows documents have together."""
        return int(np.sum(self.borders.take(documents + 1) - self.borders.take(documents)))


class Contest:
    """The contest of the windows that hold one of some terms."""

    def __init__(self, sums: Sums, terms: Sequence[Weighed], wanted: Wanted, exact: Exact) -> None:
        """`exact` gives, of windows, those that hold a term at all, and their scores."""
        self._sums = sums
        self._wanted = wanted
        self._exact = exact
        self._is_whole = wanted.second > 0 or len(terms) > _MOST_TERMS
        self._terms = (
            list(terms) if self._is_whole else sorted(terms, key=self._weight, reverse=True)
        )
        # Windows that were added to, and their sums then: of each the last is right.
        self._added: list[tuple[Numbers, Scores]] = []
        self._windows: list[Places] = []
        self._documents: list[Places] = []
        # Of those that were added first, so many, the best: those tried for what the best reach.
        self._tried_count = 0
        self._tried: Places = _NONE
        # The greatest of documents so far, and what the best of so many windows reach.
        self._most_of_document = 0.0
        self._least = 0.0
        self._gains = wanted.gains.take(wanted.gaining)
        self._most_gain = float(self._gains.max(initial=0.0))
        if wanted.allowed is not None:
            self._is_allowed = np.zeros(len(sums.of_documents), np.bool_)

    def best(self) -> tuple[Places, Scores]:
        """Return windows, ascending, and their scores: all that can be among those wanted.

        Where the second best of a document counts, all of its windows that hold a term are there.
        """
        try:
            return self._of_all() if self._is_whole else self._of_some()
        finally:
            self._clear()

    def _of_all(self) -> tuple[Places, Scores]:
        for one in self._terms:
            self._add(one)
        self._least = self._reached() - SLACK
        before = [self._sums.of_windows.take(windows) for windows, _ in self._wanted.bonuses]
        self._add_bonuses()
        windows = self._contenders(0.0, self._open_documents(0.0))
        for (those, _), sums in zip(self._wanted.bonuses, before, strict=True):
            self._sums.of_windows[those] = sums
        return self._summed(windows)

    def _of_some(self) -> tuple[Places, Scores]:
        limit = self._sums.norms.limit
        rests = [0.0]
        for one in reversed(self._terms[1:]):
            rests.append(rests[-1] + limit * self._weight(one))
        self._add_bonuses()
        rest, since = 0.0, 0
        open_documents = _NONE
        for place, one in enumerate(self._terms, start=1):
            self._add(one)
            rest = rests.pop()
            since += one.held().window_count
            if rests and since + self._terms[place].held().window_count < _WORTH_A_LOOK:
                continue
            since = 0
            self._least = max(self._least, self._reached() - SLACK)
            if rests and rest >= self._least:
                continue
            open_documents = self._open_documents(rest)
            are_few = self._sums.count_windows(open_documents) <= _MOST_OPEN
            if are_few and not (rests and self._is_dear(rest, self._terms[place])):
                break
        contenders = self._contenders(rest, open_documents)
        return self._exact(
            self._left(contenders, rest, self._terms[-len(rests) :] if rests else ())
        )

    def _is_dear(self, rest: float, following: Weighed) -> bool:
        """Whether to hold windows against what is left costs more than to take another term."""
        least = self._least - (rest + self._most_of_document)
        gain, _ = self._split(least)
        reaching = sum(int(np.count_nonzero(sums >= least - gain)) for _, sums in self._added)
        return reaching > max(_FEW, following.held().window_count)

    def _weight(self, one: Weighed) -> float:
        """Return what a term counts where a window and its document score 1 of it."""
        return one.of_window + self._sums.share * one.of_document

    def _add(self, one: Weighed) -> None:
        impacts = one.impacts()
        self._add_to_windows(impacts.windows, one.of_window, impacts.scores)
        sums, documents = self._sums.of_documents, impacts.documents
        after, new = _add_up(sums, documents, one.of_document, impacts.document_scores)
        self._touch(documents[new].astype(np.intp))
        most = self._sums.share * float(after.max(initial=0.0))
        self._most_of_document = max(self._most_of_document, most)

    def _add_bonuses(self) -> None:
        for windows, bonus in self._wanted.bonuses:
            self._add_to_windows(windows.astype(np.uint32), bonus, np.ones(len(windows)))
            self._touch(distinct(self._sums.norms.document_of.take(windows)))

    def _add_to_windows(self, windows: Numbers, weight: float, scores: Scores) -> None:
        after, new = _add_up(self._sums.of_windows, windows, weight, scores)
        self._added.append((windows, after))
        if self._is_whole:
            self._windows.append(windows[new].astype(np.intp))

    def _touch(self, documents: Places) -> None:
        self._documents.append(documents)
        if self._wanted.allowed is not None:
            self._is_allowed[documents] = self._wanted.allowed(documents)

    def _touched(self) -> Places:
        """Return the windows that hold a term, and count, once all were added."""
        return self._allowed(np.concatenate([_NONE, *self._windows]))

    def _allowed(self, windows: Places) -> Places:
        """Return those windows, all of documents that were added to, that count."""
        if self._wanted.allowed is None:
            return windows
        return windows[self._is_allowed.take(self._sums.norms.document_of.take(windows))]

    def _reaching(self, least: float) -> Places:
        """Return the windows that were added to, and count, of sums that are not less.

        Some of them are there more than once.
        """
        found = [windows[sums >= least].astype(np.intp) for windows, sums in self._added]
        return self._allowed(np.concatenate([_NONE, *found]))

    def _try_more(self, count: int) -> Places:
        """Return some windows that count, ascending, among them the best by their sums so far."""
        found = [self._tried]
        for windows, sums in self._added[self._tried_count :]:
            if self._wanted.allowed is not None:
                documents = self._sums.norms.document_of.take(windows)
                allowed = self._is_allowed.take(documents)
                windows, sums = windows[allowed], sums[allowed]
            best = windows[sums >= reached(sums, count)][: 2 * count]
            found.append(best.astype(np.intp))
        self._tried_count = len(self._added)
        tried = distinct(np.concatenate(found))
        sums = self._sums.of_windows.take(tried)
        self._tried = tried[sums >= reached(sums, count)][: 2 * count]
        return self._tried

    def _summed(self, windows: Places) -> tuple[Places, Scores]:
        """Return those of some windows that hold a term, and their scores, all terms added."""
        scores = self._sums.of_windows.take(windows)
        held = np.flatnonzero(scores)
        windows = windows.take(held)
        documents = self._sums.norms.document_of.take(windows)
        return windows, scores.take(held) + self._sums.of_documents.take(
            documents
        ) * self._sums.share

    def _reached(self) -> float:
        """Return what the best that are wanted reach at least, 0 where there are not so many."""
        wanted = self._wanted
        windows = self._try_more(wanted.count + _MORE_TRIED)
        windows, scores = self._summed(windows) if self._is_whole else self._exact(windows)
        documents = self._sums.norms.document_of.take(windows)
        scores += wanted.gains.take(documents)
        for those, bonus in wanted.bonuses:
            scores[np.isin(windows, those, assume_unique=True)] += bonus
        return reached(scores * wanted.factors(documents), wanted.count)

    def _open_documents(self, rest: float) -> Places:
        """Return the documents of which all windows can be among the best, or have to be there."""
        sums, wanted = self._sums, self._wanted
        if not (rest or wanted.second):
            # Windows that hold no term are none.
            return _NONE
        documents = _NONE
        left = self._least - (rest + self._most_of_document)
        if left <= 0 or wanted.second:
            documents = np.concatenate([_NONE, *self._documents])
            if rest + self._most_gain >= self._least:
                documents = np.concatenate([documents, wanted.gaining])
        elif self._most_gain >= left:
            # No other gains enough.
            documents = wanted.gaining[self._gains >= left]
        bounds = rest + self._of_documents(documents)
        if wanted.second:
            windows = self._touched()
            most = np.zeros(len(sums.of_documents))
            np.maximum.at(most, sums.norms.document_of.take(windows), sums.of_windows.take(windows))
            bounds = (1 + wanted.second) * (bounds + most.take(documents))
        return distinct(documents[bounds >= self._least])

    def _contenders(self, rest: float, open_documents: Places) -> Places:
        """Return the windows of open documents, and others that can be among the best."""
        found = [self._sums.windows_of(open_documents)]
        if not self._wanted.second:
            # First by what costs least to know.
            least = self._least - (rest + self._most_of_document)
            gain, gaining = self._split(least)
            windows = np.concatenate([self._reaching(least - gain), gaining])
            sums = self._sums.of_windows.take(windows)
            documents = self._sums.norms.document_of.take(windows)
            sums += self._wanted.gains.take(documents)
            left = np.flatnonzero(sums >= least)
            windows, documents = windows.take(left), documents.take(left)
            bounds = sums.take(left) + self._sums.share * self._sums.of_documents.take(documents)
            found.append(windows[bounds + rest >= self._least])
        return distinct(np.concatenate(found))

    def _split(self, least: float) -> tuple[float, Places]:
        """Return a gain, and the windows that count of the documents that gain more.

        By these few, others are held against a gain of which less is left to reach.
        """
        if self._most_gain <= least / 2:
            return self._most_gain, _NONE
        documents = self._wanted.gaining[self._gains > least / 2]
        if least <= 0 or self._sums.count_windows(documents) > _MOST_OPEN:
            return self._most_gain, _NONE
        documents = distinct(documents)
        if self._wanted.allowed is not None:
            documents = documents[self._wanted.allowed(documents)]
        return least / 2, self._sums.windows_of(documents)

    def _left(self, windows: Places, rest: float, terms: Sequence[Weighed]) -> Places:
        """Leave out more of the contenders, by the scores of terms that were not taken."""
        bounds = self._bounds(windows) + rest
        for one in terms:
            if len(windows) < _FEW:
                break
            bounds -= one.of_window * self._sums.norms.limit
            held, scores = one.held().in_windows(windows)
            bounds[held] += one.of_window * scores
            left = np.flatnonzero(bounds >= self._least)
            windows, bounds = windows.take(left), bounds.take(left)
        return windows

    def _bounds(self, windows: Places) -> Scores:
        documents = self._sums.norms.document_of.take(windows)
        return self._sums.of_windows.take(windows) + self._of_documents(documents)

    def _of_documents(self, documents: Places) -> Scores:
        """Return what windows of documents have of these, so far."""
        sums = self._sums.of_documents.take(documents)
        return self._sums.share * sums + self._wanted.gains.take(documents)

    def _clear(self) -> None:
        sums = self._sums.of_windows
        if _SCATTERED * sum(len(windows) for windows, _ in self._added) > len(sums):
            sums.fill(0)
        else:
            for windows, _ in self._added:
                sums[windows.astype(np.intp)] = 0
        for documents in self._documents:
            self._sums.of_documents[documents] = 0


def _add_up(
    sums: Scores, places: Numbers, weight: float, scores: Scores
) -> tuple[Scores, NDArray[np.bool_]]:
    """Add weighted scores to sums in places; return these sums, and which of them were 0."""
    after = np.empty(len(places))
    new = np.empty(len(places), np.bool_)
    for first in range(0, len(places), _CHUNK):
        chunk = slice(first, first + _CHUNK)
        # By numbers of another size, numpy would convert them at each use.
        those = places[chunk].astype(np.intp)
        before = sums.take(those)
        np.equal(before, 0, out=new[chunk])
        added = np.multiply(weight, scores[chunk], out=after[chunk])
        added += before
        sums[those] = added
    return after, new
