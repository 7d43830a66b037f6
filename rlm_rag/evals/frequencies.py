"""RULER's word counts: the ten most common words of a list, the three most frequent of a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from math import pi
from random import Random
from string import ascii_lowercase

from rlm_rag.evals.generated import GeneratedTask, Made, rng_of
from rlm_rag.evals.scorers.judge import WANTS_ALL
from rlm_rag.evals.scorers.texts import ruler_all
from rlm_rag.evals.words import coined_words
from rlm_rag.models.tokens import count_tokens

# RULER: ten common words; 30 times against 3, in lists below 4,096 tokens 6 times against 1.
COMMON = 10
_REPEATS = (30, 3)
_SHORT_REPEATS = (6, 1)
_SHORT_TOKENS = 4096
# RULER: coded words of six letters by a zeta law with alpha 2, the first of them being noise.
_CODED_LETTERS = 6
_ALPHA = 2
_ZETA = pi**2 / 6
_NOISE = "..."
_TOKENS_PER_CODED_WORD = 50
_WORDS_PER_LINE = 12


def common_words_task(name: str) -> GeneratedTask:
    """Return the task of the ten words that a numbered list has most often."""
    return GeneratedTask(name=name, scorer=ruler_all, make=_make_common)


def frequent_words_task(name: str) -> GeneratedTask:
    """Return the task of the three coded words that a text has most often."""
    return GeneratedTask(name=name, scorer=ruler_all, make=_make_frequent)


def _make_common(key: str, tokens: int) -> Made:
    common = list(islice(coined_words(rng_of(key, "words")), COMMON))
    return Made(
        question=(
            f"What are the {COMMON} most common words of the numbered list? Give the words alone."
        ),
        gold=common,
        text=partial(longest, partial(_list, key, tokens), tokens),
        meta={WANTS_ALL: True},
    )


def _list(key: str, tokens: int, other_words: int) -> str:
    often, seldom = _REPEATS if tokens >= _SHORT_TOKENS else _SHORT_REPEATS
    words = list(islice(coined_words(rng_of(key, "words")), COMMON + other_words))
    repeated = words[:COMMON] * often + words[COMMON:] * seldom
    rng_of(key, "order").shuffle(repeated)
    return "\n".join(f"{at}. {word}" for at, word in enumerate(repeated, 1))


def _make_frequent(key: str, tokens: int) -> Made:
    coded = _coded(rng_of(key, "coded"), max(8, tokens // _TOKENS_PER_CODED_WORD))
    return Made(
        question=(
            f"The text is made of coded words; the dots '{_NOISE}' are none. Which three of them "
            "are the most frequent? Give the words alone."
        ),
        gold=coded[1:4],
        text=partial(longest, partial(_coded_text, key, coded), tokens),
        meta={WANTS_ALL: True},
    )


def _coded(rng: Random, count: int) -> list[str]:
    words: dict[str, None] = {_NOISE: None}
    while len(words) < count:
        words["".join(rng.choices(ascii_lowercase, k=_CODED_LETTERS))] = None
    return list(words)


def _coded_text(key: str, coded: Sequence[str], words: int) -> str:
    counts = (int(words / (rank**_ALPHA * _ZETA)) for rank in range(1, len(coded) + 1))
    drawn = [word for word, count in zip(coded, counts, strict=True) for _ in range(count)]
    rng_of(key, "order").shuffle(drawn)
    lines = (drawn[at : at + _WORDS_PER_LINE] for at in range(0, len(drawn), _WORDS_PER_LINE))
    return "\n".join(" ".join(line) for line in lines)


def longest(write: Callable[[int], str], tokens: int) -> str:
    """Return the longest text that `write` gives for a size and that `tokens` hold, about.

    It is at most `tokens` long, and at least 97 % of them: a text is not proportional to its
    size, and each trial writes one.
    """
    size, step = max(1, tokens // 32), 1.0
    best = ""
    for _ in range(12):
        text = write(size)
        length = count_tokens(text)
        if length <= tokens and len(text) > len(best):
            best = text
        if 0.97 * tokens <= length <= tokens:
            return text
        # A little below the goal, so that the next trial is seldom too long.
        step = 0.99 * tokens / max(1, length)
        size = max(1, round(size * step))
    return best
