"""From ranked places to figures: hit@k, all@10, MRR with its standard error, snippets."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

from benchmarks.locate.questions import Question
from benchmarks.locate.rankers import Place
from benchmarks.locate.tests_of import is_test

# Ranks beyond this count as not found.
DEPTH = 100
_ALL_AT = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a ranker did on one question: the rank of the first right place, 0 where none came.

    `all_found` says whether every right file was among the first ten.
    """

    name: str
    rank: int
    all_found: bool


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a ranker over the outcomes of a set."""

    questions: int
    hit_1: float
    hit_5: float
    hit_10: float
    all_10: float
    mrr: float
    mrr_error: float


def by_file(question: Question, places: Iterable[Place], *, tests_count: bool) -> Outcome:
    """Judge distinct files, each at its best place."""
    paths = dict.fromkeys(place.path for place in places)
    counted = [path for path in paths if tests_count or not is_test(path)][:DEPTH]
    rank = next((at for at, path in enumerate(counted, 1) if path in question.files), 0)
    return Outcome(question.name, rank, question.files <= set(counted[:_ALL_AT]))


def by_window(question: Question, places: Sequence[Place]) -> Outcome:
    """Judge windows: one is right that holds the question's line."""
    rank = next((at for at, place in enumerate(places[:DEPTH], 1) if holds(question, place)), 0)
    return Outcome(question.name, rank, 0 < rank <= _ALL_AT)


def holds(question: Question, place: Place) -> bool:
    """Whether a place holds the line that is asked for."""
    line = question.line or 0
    return place.path in question.files and place.first <= line <= place.last


def figures(outcomes: Sequence[Outcome]) -> Figures:
    """Summarise the outcomes, of which there must be some."""
    total = len(outcomes)

    def within(k: int) -> float:
        return sum(0 < outcome.rank <= k for outcome in outcomes) / total

    reciprocal = [1 / outcome.rank if outcome.rank else 0.0 for outcome in outcomes]
    error = statistics.stdev(reciprocal) / sqrt(total) if total > 1 else 0.0
    return Figures(
        total,
        within(1),
        within(5),
        within(10),
        sum(outcome.all_found for outcome in outcomes) / total,
        statistics.fmean(reciprocal),
        error,
    )


def ratio_error(outcomes: Sequence[Outcome], base: Sequence[Outcome]) -> float:
    """Return the standard error of the ratio of two MRRs over the same questions."""
    own = [1 / outcome.rank if outcome.rank else 0.0 for outcome in outcomes]
    other = [1 / outcome.rank if outcome.rank else 0.0 for outcome in base]
    mean = statistics.fmean(other)
    if not mean or len(own) < 2:
        return 0.0
    ratio = statistics.fmean(own) / mean
    residuals = [mine - ratio * theirs for mine, theirs in zip(own, other, strict=True)]
    return statistics.stdev(residuals) / mean / sqrt(len(own))
