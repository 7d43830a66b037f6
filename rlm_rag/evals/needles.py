"""RULER's needles in a haystack: one or several keys, values and queries, and its kinds of hay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from random import Random
from typing import Literal

from rlm_rag.evals.generated import GeneratedTask, Made, rng_of
from rlm_rag.evals.lengths import fitted
from rlm_rag.evals.scorers.judge import WANTS_ALL
from rlm_rag.evals.scorers.texts import ruler_all
from rlm_rag.evals.words import number, sentences, uuid4, word_key
from rlm_rag.models.tokens import count_tokens

Hay = Literal["noise", "prose", "needles"]
Kind = Literal["words", "numbers", "uuids"]

NOISE = "The road goes on. The wind is low. Birds sit on the wall. Here it turns. So it goes again."
_VALUES: dict[Kind, Callable[[Random], str]] = {
    "words": word_key,
    "numbers": number,
    "uuids": uuid4,
}
_SINGULAR: dict[Kind, str] = {"words": "word", "numbers": "number", "uuids": "uuid"}
_SENTENCES_PER_LINE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Needles:
    """How the needles of a task are made: RULER's parameters (scripts/synthetic.yaml).

    `keys` keys with `values` values each lie in the hay, and `queries` of them are asked for.
    """

    hay: Hay = "prose"
    key: Kind = "words"
    value: Kind = "numbers"
    keys: int = 1
    values: int = 1
    queries: int = 1


# The names and parameters of RULER; its essays, which may not be passed on, are prose here.
NEEDLES = {
    "niah_single_1": Needles(hay="noise"),
    "niah_single_2": Needles(),
    "niah_single_3": Needles(value="uuids"),
    "niah_multikey_1": Needles(keys=4),
    "niah_multikey_2": Needles(hay="needles"),
    "niah_multikey_3": Needles(hay="needles", key="uuids", value="uuids"),
    "niah_multivalue": Needles(values=4),
    "niah_multiquery": Needles(keys=4, queries=4),
}


def needle_task(name: str, needles: Needles) -> GeneratedTask:
    """Return the task of such needles, scored as RULER scores them."""
    return GeneratedTask(name=name, scorer=ruler_all, make=partial(_make, needles))


def _make(needles: Needles, key: str, tokens: int) -> Made:
    rng = rng_of(key, "needles")
    names = _different(rng, needles.key, needles.keys)
    values = {name: _different(rng, needles.value, needles.values) for name in names}
    asked = rng.sample(names, needles.queries)
    lines = [_needle(needles.value, name, value) for name in names for value in values[name]]
    rng.shuffle(lines)
    gold = [value for name in asked for value in values[name]]
    return Made(
        question=_question(needles, asked, many=len(gold) > 1),
        gold=gold,
        text=partial(_text, needles, key, tokens, lines, frozenset(names)),
        meta={
            "keys": needles.keys,
            "values": needles.values,
            "queries": needles.queries,
            WANTS_ALL: True,
        },
    )


def _different(rng: Random, kind: Kind, count: int) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        found[_VALUES[kind](rng)] = None
    return list(found)


def _needle(kind: Kind, name: str, value: str) -> str:
    return f"The secret {_SINGULAR[kind]} of {name} is: {value}."


def _question(needles: Needles, asked: Sequence[str], *, many: bool) -> str:
    what = needles.value if many else _SINGULAR[needles.value]
    names = asked[0] if len(asked) == 1 else f"{', '.join(asked[:-1])} and {asked[-1]}"
    if not many:
        return f"What is the secret {what} of {names} that the text mentions? Give the {what}."
    return f"What are all the secret {what} of {names} that the text mentions? Give every one."


def _text(
    needles: Needles, key: str, tokens: int, lines: Sequence[str], names: frozenset[str]
) -> str:
    rng = rng_of(key, "hay")
    prose = needles.hay == "prose"
    separator = " " if prose else "\n"
    room = tokens - count_tokens(separator.join(lines))
    hay = fitted(_hay(needles, rng, names), room, separator=separator)
    hidden = hide(hay, lines, rng)
    return in_lines(hidden) if prose else "\n".join(hidden)


def _hay(needles: Needles, rng: Random, names: frozenset[str]) -> Iterator[str]:
    if needles.hay == "prose":
        yield from sentences(rng)
    while needles.hay == "noise":
        yield NOISE
    while True:
        name = _VALUES[needles.key](rng)
        # Another value for a key that is asked for would be a second right answer.
        if name not in names:
            yield _needle(needles.value, name, _VALUES[needles.value](rng))


def hide(hay: Sequence[str], lines: Sequence[str], rng: Random) -> list[str]:
    """Return the hay with each line put at a random place, the lines in their order."""
    places = sorted(rng.choices(range(len(hay) + 1), k=len(lines)))
    hidden: list[str] = []
    before = 0
    for place, line in zip(places, lines, strict=True):
        hidden += hay[before:place]
        hidden.append(line)
        before = place
    return [*hidden, *hay[before:]]


def in_lines(found: Sequence[str]) -> str:
    """Return sentences as a text, five a line."""
    rest = iter(found)
    lines: list[str] = []
    while line := list(islice(rest, _SENTENCES_PER_LINE)):
        lines.append(" ".join(line))
    return "\n".join(lines)
