"""OOLONG-style questions over generated records: counts, comparisons, labels, users, dates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from random import Random

from rlm_rag.evals.base import Haystack, Sample, Scorer, TaskOptions, length_label
from rlm_rag.evals.generated import DEFAULT_COUNT, checked_lengths, rng_of
from rlm_rag.evals.records import FIRST_DAY, LABELS, LAST_DAY, PATH, Record, records
from rlm_rag.evals.scorers.oolong import synthetic
from rlm_rag.loaders.source import Source

# Asked of one haystack, so that its records are made and indexed once.
QUESTIONS_PER_HAYSTACK = 10

_ABOUT = (
    "Each line of records.txt is a question that a user asked on a day. Every one has exactly one "
    f"of these labels, which the text does not say and its meaning does: {', '.join(LABELS)}. "
)
_FORM = " End with a line that holds nothing but the answer, in the form `{form}`."


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its answer and OOLONG's name for the answer's type.

    An empty answer: two are equally right, so that it is not asked.
    """

    kind: str
    text: str
    form: str
    answer: int | str
    type: str


Asker = Callable[[Sequence[Record], Random], Asked]


def _count(found: Sequence[Record], rng: Random) -> Asked:
    label = rng.choice(LABELS)
    answer = sum(record.label == label for record in found)
    text = f"How many of the questions have the label '{label}'?"
    return Asked("count", text, "Answer: <number>", answer, "ANSWER_TYPE.NUMERIC")


def _count_of_user(found: Sequence[Record], rng: Random) -> Asked:
    user = rng.choice(found).user
    label = rng.choice([record.label for record in found if record.user == user])
    answer = sum(record.user == user and record.label == label for record in found)
    text = f"How many questions with the label '{label}' did user {user} ask?"
    return Asked("count_of_user", text, "Answer: <number>", answer, "ANSWER_TYPE.NUMERIC")


def _count_in_time(found: Sequence[Record], rng: Random) -> Asked:
    label = rng.choice(LABELS)
    day = date.fromordinal(rng.randint(FIRST_DAY.toordinal() + 30, LAST_DAY.toordinal() - 30))
    answer = sum(record.label == label and record.day < day for record in found)
    text = f"How many questions with the label '{label}' were asked before {day:%B %d, %Y}?"
    return Asked("count_in_time", text, "Answer: <number>", answer, "ANSWER_TYPE.NUMERIC")


def _comparison(found: Sequence[Record], rng: Random) -> Asked:
    one, other = rng.sample(LABELS, 2)
    counts = Counter(record.label for record in found)
    answer = "same frequency"
    if counts[one] != counts[other]:
        answer = "more common" if counts[one] > counts[other] else "less common"
    text = (
        f"Is the label '{one}' more common, less common, or of the same frequency as the label "
        f"'{other}'?"
    )
    form = "Answer: <more common, less common or same frequency>"
    return Asked("comparison", text, form, answer, "ANSWER_TYPE.COMPARISON")


def _comparison_in_time(found: Sequence[Record], rng: Random) -> Asked:
    label = rng.choice(LABELS)
    day = date.fromordinal(rng.randint(FIRST_DAY.toordinal() + 90, LAST_DAY.toordinal() - 90))
    before = [record.label == label for record in found if record.day < day]
    after = [record.label == label for record in found if record.day >= day]
    # Cross-multiplied: shares of records, compared exactly.
    left, right = sum(before) * len(after), sum(after) * len(before)
    answer = "same frequency"
    if left != right:
        answer = "more common" if left > right else "less common"
    text = (
        f"Compare the questions before {day:%B %d, %Y} with those from that day on: was the label "
        f"'{label}' more common before, less common before, or of the same frequency, as a share "
        "of all questions of the time?"
    )
    form = "Answer: <more common, less common or same frequency>"
    return Asked("comparison_in_time", text, form, answer, "ANSWER_TYPE.COMPARISON")


def _most_common_label(found: Sequence[Record], rng: Random) -> Asked:
    counts = Counter(dict.fromkeys(LABELS, 0))
    counts.update(record.label for record in found)
    if rng.random() < 0.5:
        text, label = "Which label do most of the questions have?", _only_first(counts)
    else:
        text = "Which label do the fewest questions have?"
        label = _only_first({name: -count for name, count in counts.items()})
    return Asked("label", text, "Label: <label>", label, "ANSWER_TYPE.LABEL")


def _label_of_user(found: Sequence[Record], rng: Random) -> Asked:
    user = _only_first(Counter(str(record.user) for record in found))
    own = Counter(record.label for record in found if str(record.user) == user)
    label = _only_first(own)
    text = f"Which label do most of the questions of user {user} have?"
    return Asked("label_of_user", text, "Label: <label>", label, "ANSWER_TYPE.LABEL")


def _user(found: Sequence[Record], rng: Random) -> Asked:
    label = rng.choice(LABELS)
    user = _only_first(Counter(str(record.user) for record in found if record.label == label))
    text = f"Which user asked the most questions with the label '{label}'?"
    return Asked("user", text, "User: <id>", user, "ANSWER_TYPE.USER")


def _day(found: Sequence[Record], rng: Random) -> Asked:
    label = rng.choice(LABELS)
    of_label = Counter(record.day.isoformat() for record in found if record.label == label)
    day = _only_first(of_label)
    text = f"On which day were the most questions with the label '{label}' asked?"
    return Asked("day", text, "Date: <YYYY-MM-DD>", day, "ANSWER_TYPE.DATE")


def _month(found: Sequence[Record], rng: Random) -> Asked:
    label = rng.choice(LABELS)
    month = _only_first(Counter(f"{record.day:%B %Y}" for record in found if record.label == label))
    text = f"In which month were the most questions with the label '{label}' asked?"
    return Asked("month", text, "Date: <month> <year>", month, "ANSWER_TYPE.MONTH_YEAR")


def _only_first(counts: Mapping[str, int]) -> str:
    """Return the one that leads, or nothing where two do: the question would have two answers."""
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return ""
    return ranked[0][0]


ASKERS: tuple[Asker, ...] = (
    _count,
    _comparison,
    _user,
    _day,
    _most_common_label,
    _count_of_user,
    _count_in_time,
    _month,
    _comparison_in_time,
    _label_of_user,
)


@dataclass(frozen=True, slots=True)
class AggregationTask:
    """Ten questions of a haystack, each kind once where its answer is the only one."""

    name: str = "oolong"
    scorer: Scorer = synthetic
    ranking: Scorer | None = None

    def samples(self, options: TaskOptions) -> Iterator[Sample]:
        """Yield `count` samples of each length, by default 20 of 8k tokens.

        Raises:
            UsageError: a length is below 1k or above 10M tokens.
        """
        count = DEFAULT_COUNT if options.count is None else options.count
        for tokens in checked_lengths(options):
            label = length_label(tokens)
            for first in range(0, count, QUESTIONS_PER_HAYSTACK):
                # Not the task's name: pairs of users are asked of the same records.
                key = f"records/{label}/{options.seed}/{first // QUESTIONS_PER_HAYSTACK}"
                most = min(QUESTIONS_PER_HAYSTACK, count - first)
                for number, asked in enumerate(questions(key, tokens, most), first):
                    yield Sample(
                        id=f"{label}/{options.seed}/{number}",
                        question=_ABOUT + asked.text + _FORM.format(form=asked.form),
                        haystack=haystack(key, tokens),
                        gold={"answer": asked.answer, "type": asked.type},
                        length_tokens=tokens,
                        cluster=key,
                        meta={"kind": asked.kind},
                    )


def questions(key: str, tokens: int, count: int) -> list[Asked]:
    """Return different questions of the records of a key, each with one right answer."""
    found, rng = records(key, tokens), rng_of(key, "questions")
    asked: dict[str, Asked] = {}
    number = 0
    while len(asked) < count:
        one = ASKERS[number % len(ASKERS)](found, rng)
        number += 1
        if one.answer != "":
            asked.setdefault(one.text, one)
    return list(asked.values())


def haystack(key: str, tokens: int) -> Haystack:
    """Return the haystack of the records of a key: one document, `records.txt`."""
    return Haystack(key, partial(_documents, key, tokens))


def _documents(key: str, tokens: int) -> Source:
    return [(PATH, "\n".join(record.line for record in records(key, tokens)))]
