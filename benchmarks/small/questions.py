"""What the three groups of questions have in common: how one is made, and how many of each kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with its right answer, in the words of `benchmarks.small.scoring`.

    `corpus` names what it is asked of, within its group.
    """

    kind: str
    corpus: str
    text: str
    gold: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """One of a group's questions before it is drawn: which kind, of which corpus."""

    number: int
    kind: str
    corpus: str


def places(kinds: Sequence[str], corpora: Sequence[str], count: int) -> Iterator[Place]:
    """Yield `count` places; each pair of a kind and a corpus comes once before any comes twice.

    The first few have all kinds and several corpora, so that fewer are a fair sample too.
    """
    for number in range(count):
        kind = number % len(kinds)
        corpus = (number // len(kinds) + kind) % len(corpora)
        yield Place(number, kinds[kind], corpora[corpus])


def rng_of(group: str, seed: int, part: object) -> Random:
    """Return the random state of one part of a group: equal for equal arguments."""
    return Random(f"{group}/{seed}/{part}")
