"""Tasks whose haystacks are written offline: each sample has one of its own, at any length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from rlm_rag.errors import UsageError
from rlm_rag.evals.base import Haystack, Sample, Scorer, TaskOptions, length_label
from rlm_rag.loaders.source import Source

DEFAULT_LENGTHS = (8 << 10,)
DEFAULT_COUNT = 20
MAX_TOKENS = 10 << 20
# Less does not hold the needles of every task.
LEAST_TOKENS = 1 << 10
PATH = "haystack.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A generated question; `text` writes the haystack, in the same words each time."""

    question: str
    gold: Any
    text: Callable[[], str]
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedTask:
    """A task whose `make` writes a question for a random state and a length in tokens.

    The haystack is one document, `haystack.txt`. Without options: 20 samples of 8k tokens.
    """

    name: str
    scorer: Scorer
    make: Callable[[str, int], Made]
    ranking: Scorer | None = None

    def samples(self, options: TaskOptions) -> Iterator[Sample]:
        """Yield `count` samples of each length.

        Raises:
            UsageError: a length is below 1k or above 10M tokens.
        """
        for tokens in checked_lengths(options):
            label = length_label(tokens)
            for number in range(DEFAULT_COUNT if options.count is None else options.count):
                key = f"{self.name}/{label}/{options.seed}/{number}"
                made = self.make(key, tokens)
                yield Sample(
                    id=f"{label}/{options.seed}/{number}",
                    question=made.question,
                    haystack=Haystack(key, partial(_documents, made.text)),
                    gold=made.gold,
                    length_tokens=tokens,
                    meta=made.meta,
                )


def checked_lengths(options: TaskOptions) -> tuple[int, ...]:
    """Return the lengths that are asked for, or 8k tokens.

    Raises:
        UsageError: one is below 1k or above 10M tokens.
    """
    for tokens in options.lengths:
        if not LEAST_TOKENS <= tokens <= MAX_TOKENS:
            raise UsageError(
                f"a haystack of {length_label(tokens)} tokens cannot be generated",
                hint=f"from {length_label(LEAST_TOKENS)} to {length_label(MAX_TOKENS)} tokens",
            )
    return tuple(dict.fromkeys(options.lengths)) or DEFAULT_LENGTHS


def rng_of(key: str, part: str) -> Random:
    """Return the random state of one part of a sample: equal for equal keys, on any machine."""
    return Random(f"{key}/{part}")


def _documents(text: Callable[[], str]) -> Source:
    return [(PATH, text())]
