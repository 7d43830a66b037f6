"""Dated records of users whose label has to be inferred: what OOLONG aggregates over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from itertools import accumulate
from random import Random

from rlm_rag.evals.generated import rng_of
from rlm_rag.evals.lengths import fitted
from rlm_rag.evals.words import ADJECTIVES, NOUNS

LABELS = (
    "abbreviation",
    "description and abstract concept",
    "entity",
    "human being",
    "location",
    "numeric value",
)
FIRST_DAY = date(2022, 10, 1)
LAST_DAY = date(2023, 9, 30)
PATH = "records.txt"
# At 1M tokens of OOLONG's questions there are 34,000 records of 7,500 users.
_RECORDS_PER_USER = 4.5
_TOKENS_PER_RECORD = 35
_LEAST_USERS = 4
_BEFORE_VOWEL = re.compile(r"\ba(?= [aeiou])")

# In the words of a question each label is plain: it is inferred from meaning, not from a keyword.
_FORMS = {
    "abbreviation": (
        "What does {abc} stand for?",
        "{abc} is short for what?",
        "How is the acronym {abc} spelled out?",
        "What is the full form of {abc}?",
    ),
    "description and abstract concept": (
        "What does it mean to be {adjective}?",
        "Why does a {noun} wear out?",
        "How does one repair a {adjective} {noun}?",
        "What is the reason for painting a {noun}?",
        "How is a {noun} made?",
    ),
    "entity": (
        "What animal sleeps in a {noun}?",
        "Which colour suits a {adjective} {noun}?",
        "What food is kept in a {noun}?",
        "Which instrument sounds most {adjective}?",
        "What material is a {noun} built of?",
    ),
    "human being": (
        "Who invented the {noun}?",
        "Which painter is known for the {adjective} {noun}?",
        "Whose daughter owned the {noun}?",
        "Name the captain who lost a {noun}.",
        "Who was the first to sell a {noun}?",
    ),
    "location": (
        "Where does the {adjective} {noun} stand?",
        "Which country exports the {noun}?",
        "What city is called the {adjective} {noun}?",
        "On which continent is a {noun} found?",
        "Which river flows past the {noun}?",
    ),
    "numeric value": (
        "How many parts has a {noun}?",
        "In what year was the {adjective} {noun} finished?",
        "How tall is the {noun}?",
        "What percentage of people own a {noun}?",
        "How much does a {adjective} {noun} cost?",
    ),
}


@dataclass(frozen=True, slots=True)
class Record:
    """One line: a day, a user, a question, and the label that the line does not say."""

    day: date
    user: int
    label: str
    text: str

    @property
    def line(self) -> str:
        return f"Date: {_written(self.day)} || User: {self.user} || Instance: {self.text}"


@cache
def _written(day: date) -> str:
    return f"{day:%b %d, %Y}"


def records(key: str, tokens: int) -> list[Record]:
    """Return as many records as `tokens` hold, equal ones for an equal key.

    Labels and users are drawn with weights of their own in each haystack, days evenly.
    """
    made: list[Record] = []

    def lines() -> Iterator[str]:
        for record in _endless(rng_of(key, "records"), tokens):
            made.append(record)
            yield record.line

    # Lines are fitted in blocks, so that more may have been made than fit.
    return made[: len(fitted(lines(), tokens))]


def _endless(rng: Random, tokens: int) -> Iterator[Record]:
    users = _users(rng, max(_LEAST_USERS, round(tokens / _TOKENS_PER_RECORD / _RECORDS_PER_USER)))
    user_weights = list(accumulate(rng.uniform(1, 4) for _ in users))
    label_weights = list(accumulate(rng.uniform(1, 3) for _ in LABELS))
    days = (LAST_DAY - FIRST_DAY).days + 1
    while True:
        label = rng.choices(LABELS, cum_weights=label_weights)[0]
        user = rng.choices(users, cum_weights=user_weights)[0]
        day = FIRST_DAY + timedelta(days=rng.randrange(days))
        yield Record(day, user, label, _text(rng, label))


def _users(rng: Random, count: int) -> list[int]:
    digits = max(5, len(str(count * 2)))
    return rng.sample(range(10 ** (digits - 1), 10**digits), count)


def _text(rng: Random, label: str) -> str:
    abc = "".join(rng.choices("ABCDEFGHIKLMNOPRSTUVW", k=rng.choice((3, 4))))
    form = rng.choice(_FORMS[label])
    text = form.format(adjective=rng.choice(ADJECTIVES), noun=rng.choice(NOUNS), abc=abc)
    return _BEFORE_VOWEL.sub("an", text)
