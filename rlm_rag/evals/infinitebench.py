"""InfiniteBench's retrieval: a pass key, a string of digits, the value of a key among thousands.

Without data the haystacks are generated, at any length; with it they are the benchmark's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from random import Random
from types import MappingProxyType

from rlm_rag.evals.base import Haystack, Sample, Scorer, TaskOptions
from rlm_rag.evals.data import Row, asked_for, held, one_of, read_rows, required_data
from rlm_rag.evals.generated import PATH, GeneratedTask, Made, rng_of
from rlm_rag.evals.lengths import fitted
from rlm_rag.evals.needles import NOISE, hide
from rlm_rag.evals.scorers.infinitebench import key_value, number
from rlm_rag.evals.words import number as random_number
from rlm_rag.evals.words import uuid4
from rlm_rag.models.tokens import count_tokens

FORM = (
    "InfiniteBench: passkey.jsonl, number_string.jsonl, kv_retrieval.jsonl, each line with "
    '"context", "input" and "answer".'
)
# As the benchmark's program makes them: five digits; ten, of which neighbours often are equal.
_KEY_DIGITS = 5
_STRING_DIGITS = 10


def _passkey(key: str, tokens: int) -> Made:
    secret = random_number(rng_of(key, "key"), _KEY_DIGITS)
    line = f"The pass key is {secret}. Keep it in mind: {secret} is the pass key."
    return Made(
        question="What is the pass key that the text mentions? Give the number alone.",
        gold=secret,
        text=partial(_hidden, key, tokens, line),
    )


def _number_string(key: str, tokens: int) -> Made:
    rng = rng_of(key, "key")
    digits = list(random_number(rng, _STRING_DIGITS // 2))
    while len(digits) < _STRING_DIGITS:
        at = rng.randrange(len(digits))
        digits.insert(at, digits[at])
    secret = "".join(digits)
    line = f"The string of digits is {secret}. Keep it in mind: {secret} is the string of digits."
    return Made(
        question="What is the string of digits that the text mentions? Give the digits alone.",
        gold=secret,
        text=partial(_hidden, key, tokens, line),
    )


def _hidden(key: str, tokens: int, line: str) -> str:
    hay = fitted(repeat(NOISE), tokens - count_tokens(line))
    return "\n".join(hide(hay, [line], rng_of(key, "place")))


def _key_value(key: str, tokens: int) -> Made:
    rng = rng_of(key, "pair")
    asked, value = uuid4(rng), uuid4(rng)
    return Made(
        question=(
            f"Which value does the JSON object have for the key {json.dumps(asked)}? Give the "
            "value alone."
        ),
        gold=value,
        text=partial(_object, key, tokens, asked, value),
    )


def _object(key: str, tokens: int, asked: str, value: str) -> str:
    rng = rng_of(key, "others")
    room = tokens - count_tokens("{\n}" + _pair(asked, value))
    pairs = hide(fitted(_pairs(rng), room), [_pair(asked, value)], rng)
    return "{\n" + "\n".join(pairs).removesuffix(",") + "\n}"


def _pairs(rng: Random) -> Iterator[str]:
    while True:
        yield _pair(uuid4(rng), uuid4(rng))


def _pair(key: str, value: str) -> str:
    return f'"{key}": "{value}",'


@dataclass(frozen=True, slots=True)
class _Kind:
    make: Callable[[str, int], Made]
    scorer: Scorer


KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        "passkey": _Kind(_passkey, number),
        "number_string": _Kind(_number_string, number),
        "kv_retrieval": _Kind(_key_value, key_value),
    }
)


@dataclass(frozen=True, slots=True)
class InfiniteBenchTask:
    """One of `KINDS`, scored as the benchmark scores it."""

    name: str
    kind: str
    ranking: Scorer | None = None

    @property
    def scorer(self) -> Scorer:
        return KINDS[self.kind].scorer

    def samples(self, options: TaskOptions) -> Iterator[Sample]:
        """Yield the rows of the data, or else generated samples.

        Raises:
            UsageError: a length is below 1k or above 10M tokens.
            BenchmarkDataError: a row has no context, input or answer.
        """
        if options.data is None:
            kind = KINDS[self.kind]
            made = GeneratedTask(name=self.name, scorer=kind.scorer, make=kind.make)
            yield from made.samples(options)
            return
        folder = required_data(options, FORM)
        rows = read_rows(one_of(folder, (f"{self.kind}.jsonl",), FORM), FORM)
        found = (_sample(self.name, row, at) for at, row in enumerate(rows))
        yield from asked_for(found, options)


def _sample(name: str, row: Row, number: int) -> Sample:
    context = row.text("context")
    return Sample(
        id=row.text("id", str(number)),
        question=row.text("input"),
        haystack=Haystack(f"{name}/{number}", held(PATH, context)),
        gold=_only(row.texts("answer")),
        length_tokens=count_tokens(context),
    )


def _only(answers: Sequence[str]) -> str:
    # A list has one answer; the benchmark's program reads the first.
    return answers[0]
