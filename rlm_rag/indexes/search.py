"""Answering search requests: ranked windows with their snippets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import merge
from itertools import chain, islice

import numpy as np

from rlm_rag.indexes.candidates import SCORE_DIGITS
from rlm_rag.indexes.enclosing import NamedDefinitions
from rlm_rag.indexes.finding import Finder
from rlm_rag.indexes.landmarks import Survey
from rlm_rag.indexes.languages import language_of
from rlm_rag.indexes.parts import Candidate, Counts, Held, Parts, Question, R, Rarity, Totals, order
from rlm_rag.indexes.query import STOP_WORDS, Query, parse_query
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.requests import Hit
from rlm_rag.indexes.showing import Showing, Shown
from rlm_rag.indexes.snippets import Snippets

# Candidates asked for, so that k mostly remain when neighbours are left out.
_CANDIDATES_PER_HIT = 3
# And where these are too few, so many times more of them.
_MORE = 16
_MOST_COMPARED = 1000
# Windows that are read to see how near the query's words are: 30 gain little more.
_MOST_READ = 20
# Of these, windows whose definitions are looked at: 20 gain .005 of MRR, and cost 0.2 ms.
_MOST_NAMED = 10
# Of more no line holds a good part.
_MOST_TERMS_NEAR = 40


@dataclass(frozen=True, slots=True)
class _Asked:
    """What windows that were read are held against."""

    snippets: Snippets
    names: NamedDefinitions


class Searcher:
    """Searches a corpus, whole or in parts: the hits are the same."""

    def __init__(self, parts: Parts, *, weights: Weights, survey: Survey | None = None) -> None:
        """Without a `survey` definitions are only scanned for, around the best windows."""
        self._parts = parts
        self._weights = weights
        self._survey = survey
        self._totals: Totals | None = None
        self.is_late = False
        """Whether the last search went without definitions that were not parsed in time."""

    def search(
        self, query: str, *, k: int, allowed: Callable[[str], bool] | None = None
    ) -> tuple[Hit, ...]:
        """Return the `k` best windows, best first; ties by path, then line.

        A hit has 40 lines at most: those of its window, or, where the definition that holds the
        best of them begins up to 39 lines before it, the lines from there. `allowed` says which
        paths may be in it. A window whose best line a better one shows, or that has the same
        lines as one, is left out while others are to be had.
        """
        return tuple(hit for _, hit in self.placed(query, k=k, allowed=allowed))

    def placed(
        self, query: str, *, k: int, allowed: Callable[[str], bool] | None = None
    ) -> list[tuple[Candidate, Hit]]:
        """Return what `search` does, each hit with the window that it is of."""
        parsed = parse_query(query, weights=self._weights)
        totals = self._known_totals()
        rarity = Rarity.of(totals, self.counts(parsed, totals))
        question = Question(parsed, totals, rarity, allowed)
        asked = _asked(parsed, rarity)
        showing = Showing(self._parts, asked.snippets)
        ranked = self._ranked(question, max(_CANDIDATES_PER_HIT * k, _MOST_READ))
        head = list(islice(ranked, _MOST_READ))
        showing.look_at(head)
        if self._survey is not None:
            paths = [one.path for one in head[:_MOST_NAMED]]
            showing.landmarks, done = self._survey.of(paths)
            self.is_late = not done
        lifted = self._lifted(head, asked, showing)
        rest = _read_on(ranked, max(_MOST_READ, k), showing)
        chosen = _apart(chain(lifted, rest), k, showing)
        return [(one, showing.hit(one)) for one in chosen]

    def counts(self, query: Query, totals: Totals | None = None) -> Counts:
        """Return how many windows and documents hold what a query asks for."""
        request = partial(Finder.counts, query=query, totals=totals or self._known_totals())
        return Counts.of(list(self._ask_all(request)))

    def times(self, candidate: Candidate, terms: Sequence[bytes]) -> list[int]:
        """Return how often each of the terms is in a window."""
        request = partial(Finder.times, window=candidate.window, terms=terms)
        found = self._parts.ask({candidate.part: request})
        return found.get(candidate.part, [0] * len(terms))

    def _known_totals(self) -> Totals:
        if self._totals is not None:
            return self._totals
        found = list(self._ask_all(Finder.totals))
        totals = Totals.of(found)
        # A part that is lost may come back.
        if len(found) == len(self._parts.numbers()):
            self._totals = totals
        return totals

    def _ask_all(self, request: Callable[[Finder], R]) -> Iterable[R]:
        return self._parts.ask(dict.fromkeys(self._parts.numbers(), request)).values()

    def _ranked(self, question: Question, count: int) -> Iterator[Candidate]:
        """Yield the windows of all parts, best first, asked for `count` at first, then for more."""
        given: set[tuple[int, int]] = set()
        while True:
            best = partial(Finder.best, question=question, count=count)
            numbers = self._parts.numbers()
            parts = self._parts.ask({part: partial(best, part=part) for part in numbers}).values()
            found = chain(*parts) if len(parts) < 2 else merge(*parts, key=order)
            are_all = all(len(part) < count for part in parts)
            for one in found if are_all else islice(found, count):
                if (one.part, one.window) not in given:
                    given.add((one.part, one.window))
                    yield one
            if are_all:
                return
            count *= _MORE

    def _lifted(
        self, candidates: list[Candidate], asked: _Asked, showing: Showing
    ) -> Iterable[Candidate]:
        """Raise those of the best windows that hold the query's words in one line, or in a name."""
        weights = self._weights
        if not weights.near or not 1 < len(asked.snippets.terms) <= _MOST_TERMS_NEAR:
            return candidates
        factors = []
        for place, one in enumerate(candidates):
            held = showing.held(one)
            if not held:
                factors.append(1.0)
                continue
            is_named = weights.near_name and place < _MOST_NAMED
            named = _named(one, held, asked.names, showing) if is_named else 0.0
            nearness = asked.snippets.nearness(held)
            factors.append(1 + (weights.near * nearness**2 + weights.near_name * named))
        scores = np.array([one.score for one in candidates])
        ranks = np.round(scores * factors, SCORE_DIGITS).tolist()
        ranked = sorted(
            zip(ranks, candidates, strict=True),
            key=lambda pair: (-pair[0], pair[1].path, pair[1].first),
        )
        return (one if rank == one.rank else one.ranked(rank) for rank, one in ranked)


def _named(one: Candidate, held: Held, names: NamedDefinitions, showing: Showing) -> float:
    """Return how much of the query a name holds that a window defines in a line with its words."""
    landmarks = showing.landmarks.get(one.path)
    if landmarks is not None:
        found = landmarks.between(one.first, one.last)
        return max((names.of_name(*name) for line, name in found if line in held), default=0.0)
    language = language_of(one.path)
    if language is None:
        return 0.0
    return names.share(showing.text(one), [line - one.first for line in held], language)


def _asked(query: Query, rarity: Rarity) -> _Asked:
    # In a line, common words count only where there are no others.
    telling = query.terms.keys() - STOP_WORDS or query.terms.keys()
    worth = {term: query.terms[term] * rarity.windows.get(term, 0.0) for term in sorted(telling)}
    forms = {form: weight * rarity.windows.get(form, 0.0) for form, weight in query.forms.items()}
    return _Asked(Snippets(worth), NamedDefinitions(worth, forms))


def _read_on(ranked: Iterator[Candidate], count: int, showing: Showing) -> Iterator[Candidate]:
    """Yield candidates, so many of them read at once."""
    while batch := list(islice(ranked, count)):
        showing.look_at(batch)
        yield from batch


def _apart(ranked: Iterable[Candidate], k: int, showing: Showing) -> list[Candidate]:
    """Take the best: first none whose best line is shown, and no two of the same lines."""
    chosen: list[tuple[int, Candidate]] = []
    left: list[tuple[int, Candidate]] = []
    taken: defaultdict[str, list[Shown]] = defaultdict(list)
    # Only windows of as many words are worth a comparison.
    alike: defaultdict[int, list[Candidate]] = defaultdict(list)
    for place, one in enumerate(ranked):
        beside, same = taken[one.path], alike[one.length]
        if _is_told(one, beside, showing) or _has_copy(one, same, showing):
            if len(left) < k:
                left.append((place, one))
            continue
        same.append(one)
        chosen.append((place, one))
        beside.append(showing.shown(one))
        if len(chosen) == k:
            break
    # Where there are not enough of these, the best of the others too.
    chosen = sorted([*chosen, *left[: k - len(chosen)]], key=lambda placed: placed[0])
    return [one for _, one in chosen]


def _is_told(one: Candidate, beside: Sequence[Shown], showing: Showing) -> bool:
    if not beside:
        return False
    best = showing.shown(one).best
    return any(better.first <= best <= better.last for better in beside)


def _has_copy(one: Candidate, others: Sequence[Candidate], showing: Showing) -> bool:
    # Of a great many copies some are not recognised: each has to be read.
    if not others or showing.read_count >= _MOST_COMPARED:
        return False
    text = showing.text(one)
    return any(text == showing.text(other) for other in others)
