"""The 20 questions of OOLONG-Pairs: every pair of users that meets a condition, over records."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from rlm_rag.evals.aggregation import haystack
from rlm_rag.evals.base import Sample, Scorer, TaskOptions, length_label
from rlm_rag.evals.generated import checked_lengths
from rlm_rag.evals.records import LABELS, Record, records
from rlm_rag.evals.scorers.pairs import pair_count, pair_f1

_ABBREVIATION, _DESCRIPTION, _ENTITY, _HUMAN, _LOCATION, _NUMBER = LABELS
_LOWER_ID = "the lower id first"


@dataclass(frozen=True, slots=True)
class Times:
    """How often a user has a label: exactly so often, or at least."""

    label: str
    least: int = 1
    exactly: bool = False

    def holds(self, counts: Mapping[str, int]) -> bool:
        own = counts[self.label]
        return own == self.least if self.exactly else own >= self.least

    def said(self) -> str:
        how = "exactly" if self.exactly else "at least"
        number = {1: "one question", 2: "two questions"}[self.least]
        return f"{how} {number} with the label '{self.label}'"


@dataclass(frozen=True, slots=True)
class Dated:
    """All of a user's questions with a label are after, or before, a day."""

    label: str
    side: Literal["after", "before"]
    day: date

    def holds(self, days: Sequence[date]) -> bool:
        return all(day > self.day if self.side == "after" else day < self.day for day in days)


@dataclass(frozen=True, slots=True)
class Condition:
    """What the users of a pair have to meet: both `either` (and `dated`), or one each of two.

    With `either`, both users have one of the two labels. Without, one user meets all of `one`
    and the other all of `other`.
    """

    either: tuple[str, str] | None = None
    dated: Dated | None = None
    one: tuple[Times, ...] = ()
    other: tuple[Times, ...] = ()


def _at_least(*labels: str) -> tuple[Times, ...]:
    return tuple(Times(label) for label in labels)


def _exactly(label: str, times: int = 1) -> Times:
    return Times(label, times, exactly=True)


# The conditions of the paper on recursive language models, appendix D.1, in its order.
CONDITIONS = (
    Condition(either=(_NUMBER, _LOCATION)),
    Condition(either=(_ENTITY, _HUMAN)),
    Condition(either=(_DESCRIPTION, _ABBREVIATION)),
    Condition(either=(_HUMAN, _LOCATION), dated=Dated(_HUMAN, "after", date(2023, 1, 6))),
    Condition(either=(_ENTITY, _NUMBER), dated=Dated(_ENTITY, "before", date(2023, 3, 15))),
    Condition(either=(_LOCATION, _ABBREVIATION)),
    Condition(either=(_DESCRIPTION, _NUMBER), dated=Dated(_NUMBER, "after", date(2023, 2, 1))),
    Condition(either=(_HUMAN, _DESCRIPTION)),
    Condition(either=(_ENTITY, _LOCATION), dated=Dated(_LOCATION, "after", date(2023, 4, 10))),
    Condition(
        either=(_NUMBER, _ABBREVIATION), dated=Dated(_ABBREVIATION, "before", date(2023, 5, 20))
    ),
    Condition(one=_at_least(_ENTITY, _ABBREVIATION), other=(_exactly(_ENTITY),)),
    Condition(one=(Times(_NUMBER, 2),), other=_at_least(_LOCATION, _HUMAN)),
    Condition(one=(_exactly(_DESCRIPTION),), other=_at_least(_ABBREVIATION, _ENTITY)),
    Condition(one=_at_least(_HUMAN, _NUMBER), other=(_exactly(_LOCATION, 2),)),
    Condition(one=_at_least(_ENTITY, _LOCATION, _ABBREVIATION), other=(_exactly(_NUMBER),)),
    Condition(
        one=_at_least(_DESCRIPTION, _HUMAN), other=(Times(_ENTITY, 2), _exactly(_ABBREVIATION))
    ),
    Condition(one=(_exactly(_NUMBER),), other=_at_least(_LOCATION, _DESCRIPTION)),
    Condition(one=(Times(_ABBREVIATION), _exactly(_HUMAN)), other=_at_least(_ENTITY, _NUMBER)),
    Condition(
        one=(Times(_LOCATION, 2), Times(_ENTITY)),
        other=(_exactly(_DESCRIPTION), _exactly(_ABBREVIATION)),
    ),
    Condition(
        one=_at_least(_NUMBER, _HUMAN),
        other=(*_at_least(_LOCATION, _ENTITY), _exactly(_ABBREVIATION)),
    ),
)


def said(condition: Condition) -> str:
    """Return the question, with the labels that there are and the form of the answer."""
    return (
        "Each line of records.txt is a question that a user asked on a day. Every one has exactly "
        "one of these labels, which the text does not say and its meaning does: "
        f"{', '.join(LABELS)}. Which pairs of different users are there, of whom {_what(condition)}"
        f"? List every pair once, {_LOWER_ID}, one a line, in the form `(id, id)`."
    )


def _what(condition: Condition) -> str:
    if condition.either is None:
        one = " and ".join(times.said() for times in condition.one)
        other = " and ".join(times.said() for times in condition.other)
        return f"one user has {one}, and the other has {other}"
    first, second = condition.either
    text = f"both have at least one question with the label '{first}' or '{second}'"
    if condition.dated is None:
        return text
    dated = condition.dated
    return (
        f"{text}, and all questions of both with the label '{dated.label}' were asked "
        f"{dated.side} {dated.day:%B} {dated.day.day}, {dated.day.year}"
    )


def right_pairs(condition: Condition, found: Sequence[Record]) -> tuple[list[int], list[int]]:
    """Return two lists of users: the right pairs are those with one user of each, as `pair_f1`
    wants its gold. Where both users have to meet the same, the lists are equal.
    """
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    days: dict[tuple[int, str], list[date]] = defaultdict(list)
    for record in found:
        counts[record.user][record.label] += 1
        days[record.user, record.label].append(record.day)
    if condition.either is not None:
        either, dated = condition.either, condition.dated
        both = [
            user
            for user, own in sorted(counts.items())
            if any(own[label] for label in either)
            and (dated is None or dated.holds(days.get((user, dated.label), ())))
        ]
        return both, both
    return _meeting(condition.one, counts), _meeting(condition.other, counts)


def _meeting(wanted: Sequence[Times], counts: Mapping[int, Counter[str]]) -> list[int]:
    return sorted(user for user, own in counts.items() if all(times.holds(own) for times in wanted))


@dataclass(frozen=True, slots=True)
class PairsTask:
    """The 20 questions of a haystack of records; more samples are asked of further ones."""

    name: str = "oolong-pairs"
    scorer: Scorer = pair_f1
    ranking: Scorer | None = None

    def samples(self, options: TaskOptions) -> Iterator[Sample]:
        """Yield `count` samples of each length, by default the 20 of 8k tokens.

        Raises:
            UsageError: a length is below 1k or above 10M tokens.
        """
        per_haystack = len(CONDITIONS)
        count = per_haystack if options.count is None else options.count
        for tokens in checked_lengths(options):
            label = length_label(tokens)
            for first in range(0, count, per_haystack):
                key = f"records/{label}/{options.seed}/{first // per_haystack}"
                found = records(key, tokens)
                for number, condition in enumerate(CONDITIONS[: count - first], 1):
                    left, right = right_pairs(condition, found)
                    yield Sample(
                        id=f"{label}/{options.seed}/{first + number}",
                        question=said(condition),
                        haystack=haystack(key, tokens),
                        gold={"left": left, "right": right},
                        length_tokens=tokens,
                        cluster=key,
                        meta={
                            "question": number,
                            "pairs": pair_count(frozenset(left), frozenset(right)),
                        },
                    )
