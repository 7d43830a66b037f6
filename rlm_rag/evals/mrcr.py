"""MRCR-style recall: repeat one of several alike answers of a long conversation, word for word.

Without data the conversations are generated, at any length; with it they are those of openai/mrcr.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from random import Random
from string import ascii_letters, digits

from rlm_rag.evals.base import Haystack, Sample, Scorer, TaskOptions, length_label
from rlm_rag.evals.data import Row, asked_for, read_all, required_data
from rlm_rag.evals.generated import DEFAULT_COUNT, checked_lengths, rng_of
from rlm_rag.evals.lengths import fitted
from rlm_rag.evals.scorers.texts import mrcr
from rlm_rag.evals.words import ADJECTIVES, NOUNS, sentences
from rlm_rag.loaders.source import Source
from rlm_rag.models.tokens import count_tokens

FORM = (
    'openai/mrcr: Parquet or JSON lines with "prompt" (JSON of messages with "role" and '
    '"content"), "answer" and "random_string_to_prepend".'
)
# openai/mrcr has 2, 4 and 8 needles, and prefixes of ten characters.
NEEDLES = 4
_PREFIX_CHARS = 10
_FORMS = ("poem", "riddle", "letter", "short story", "news item", "song", "speech", "diary entry")
_ORDINALS = ("first", "second", "third", "fourth")
_SENTENCES = (4, 9)

Turn = tuple[str, str]


@dataclass(frozen=True, slots=True)
class MrcrTask:
    """Each turn of a conversation is a document, numbered in its order; the last turn asks."""

    name: str = "mrcr"
    scorer: Scorer = mrcr
    ranking: Scorer | None = None

    def samples(self, options: TaskOptions) -> Iterator[Sample]:
        """Yield the rows of the data that are no longer than the longest length, or generated ones.

        Raises:
            UsageError: a length is below 1k or above 10M tokens.
            BenchmarkDataError: the data is not in the published format.
        """
        if options.data is None:
            yield from _generated(options)
            return
        rows = read_all(required_data(options, FORM), ("*.jsonl", "*.parquet"), FORM)
        found = (_sample(row, at) for at, row in enumerate(rows))
        yield from asked_for(found, options)


def _sample(row: Row, number: int) -> Sample:
    *turns, last = _turns(row)
    if last[0] != "user":
        row.refuse(f"the last message is of the {last[0]}, not of the user")
    prefix, answer = row.text("random_string_to_prepend"), row.text("answer")
    if not answer.startswith(prefix):
        row.refuse("'answer' does not begin with 'random_string_to_prepend'")
    return Sample(
        id=str(number),
        question=last[1],
        haystack=Haystack(f"mrcr/{number}", partial(_documents, turns)),
        gold={"answer": answer, "prefix": prefix},
        length_tokens=sum(count_tokens(text) for _, text in turns),
        meta={"needles": row.values.get("n_needles")},
    )


def _turns(row: Row) -> list[Turn]:
    try:
        messages = json.loads(row.text("prompt"))
    except ValueError:
        row.refuse("'prompt' is no JSON")
    if not isinstance(messages, list) or len(messages) < 2:
        row.refuse("'prompt' is no list of messages")
    rows = Row({"prompt": messages}, row.where, row.form).rows("prompt")
    return [(one.text("role"), one.text("content")) for one in rows]


def _documents(turns: Sequence[Turn]) -> Source:
    width = len(str(len(turns)))
    return [(f"{at:0{width}}-{role}.txt", text) for at, (role, text) in enumerate(turns, 1)]


def _generated(options: TaskOptions) -> Iterator[Sample]:
    for tokens in checked_lengths(options):
        label = length_label(tokens)
        for number in range(DEFAULT_COUNT if options.count is None else options.count):
            key = f"mrcr/{label}/{options.seed}/{number}"
            yield _generate(key, f"{label}/{options.seed}/{number}", tokens)


def _generate(key: str, name: str, tokens: int) -> Sample:
    rng = rng_of(key, "needles")
    asked = f"{rng.choice(_FORMS)} about {_topic(rng)}"
    answers = [_piece(rng) for _ in range(NEEDLES)]
    wanted = rng.randrange(NEEDLES)
    prefix = "".join(rng.choices(ascii_letters + digits, k=_PREFIX_CHARS))
    return Sample(
        id=name,
        question=(
            f"Repeat the {_ORDINALS[wanted]} {asked} that the assistant wrote, word for word, with "
            f"{prefix} put directly before it. Give nothing else: no quotes and no citation."
        ),
        haystack=Haystack(key, partial(_conversation, key, tokens, asked, answers)),
        gold={"answer": prefix + answers[wanted], "prefix": prefix},
        length_tokens=tokens,
        meta={"needles": NEEDLES, "wanted": wanted + 1},
    )


def _topic(rng: Random) -> str:
    return f"a {rng.choice(ADJECTIVES)} {rng.choice(NOUNS)}"


def _piece(rng: Random) -> str:
    return " ".join(islice(sentences(rng), rng.randint(*_SENTENCES)))


def _conversation(key: str, tokens: int, asked: str, answers: Sequence[str]) -> Source:
    rng = rng_of(key, "conversation")
    own = [_exchange(asked, answer) for answer in answers]
    room = tokens - count_tokens("".join(own))
    others = fitted(_others(rng, asked), room, separator="")
    places = sorted(rng.choices(range(len(others) + 1), k=len(own)))
    for place, exchange in zip(reversed(places), reversed(own), strict=True):
        others.insert(place, exchange)
    return _documents([turn for exchange in others for turn in _apart(exchange)])


# An exchange is one text while its length is counted; no generated text holds the mark.
_MARK = "\0"


def _exchange(asked: str, answer: str) -> str:
    return f"Write a {asked}.{_MARK}{answer}"


def _apart(exchange: str) -> tuple[Turn, Turn]:
    question, _, answer = exchange.partition(_MARK)
    return ("user", question), ("assistant", answer)


def _others(rng: Random, asked: str) -> Iterator[str]:
    while True:
        other = f"{rng.choice(_FORMS)} about {_topic(rng)}"
        if other != asked:
            yield _exchange(other, _piece(rng))
