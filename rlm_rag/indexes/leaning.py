"""Which definitions of a corpus the rest leans on: who uses whose names, and what follows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.catalogue import Catalogue
from rlm_rag.indexes.kinds import Kind, kind_of
from rlm_rag.indexes.languages import language_of, markup_of
from rlm_rag.indexes.skeleton import Definition
from rlm_rag.indexes.terms import separated
from rlm_rag.packed import PackedCorpus

# What is told of by name, and not by what holds it.
_KINDS = frozenset(
    (
        *("class", "interface", "struct", "enum", "trait", "record", "object", "protocol"),
        *("extension", "type", "function", "method", "macro", "exception", "value", "module"),
        *("table", "view"),
    )
)
_MIN_NAME_CHARS = 3
# A name with many definitions says little about each of them.
_MAX_DEFINITIONS = 10
# A plain lower-case word occurs in prose as well; a member mostly within its class.
_PLAIN_WORD = 0.05
_MEMBER = 0.5
_TEST = 0.3
_MINIFIED = ".min."
# The share of a document's rank that follows its words; the rest begins anew.
_FOLLOWED = 0.85
_ROUNDS = 30
# What a document leaves to its own definitions, so that one that nobody uses is still told of.
_OWN = 0.05
_NAMED = 10.0


@dataclass(frozen=True, slots=True)
class Ranked:
    """A definition with the number of its document; all weights of a corpus sum to about 1."""

    weight: float
    document: int
    definition: Definition


@dataclass(frozen=True, slots=True)
class Told:
    """The definitions that can be told of, by the number of their document, ascending.

    `complete` is False where there was no time for all documents to be parsed, and the others
    were scanned.
    """

    of: Sequence[tuple[int, tuple[Definition, ...]]]
    complete: bool


Uses = Iterable[tuple[int, Sequence[bytes]]]
"""The names that documents have the words of, sorted, by the documents' numbers, ascending."""


def told_in(corpus: PackedCorpus, catalogue: Catalogue) -> Told:
    """Return what can be told of in a corpus."""
    complete = catalogue.prepare(range(len(corpus)))
    find = catalogue.outlined if complete else catalogue.scanned
    of = []
    for number, path in enumerate(corpus.paths()):
        if kind_of(path) is None and _MINIFIED not in path:
            told = tuple(one for one in find(number).definitions if _is_told(one))
            if told:
                of.append((number, told))
    return Told(of, complete)


def uses_in(corpus: PackedCorpus, names: Set[bytes]) -> Uses:
    """Yield which of the names the documents of a corpus use, those of code."""
    for number, path in enumerate(corpus.paths()):
        if _family(path):
            words = set(separated(bytes(corpus.content_bytes(number))).split())
            used = sorted(words & names)
            if used:
                yield number, used


class Leaning:
    """The uses of names between the documents of a corpus, and the ranks that follow from them.

    A document uses a name when the word stands in it and it is of the same family of languages.
    Prose and tests define nothing here, nor does what was minified; uses in tests count for less.
    """

    def __init__(
        self, paths: Iterable[str], told: Told, uses: Callable[[Set[bytes]], Uses]
    ) -> None:
        """`uses` gives which documents use some names."""
        self._paths = tuple(paths)
        self._complete = told.complete
        homes: dict[str, list[int]] = defaultdict(list)
        self._definitions: list[Definition] = []
        self._document_of: list[int] = []
        for number, definitions in told.of:
            for one in definitions:
                homes[one.name].append(len(self._definitions))
                self._definitions.append(one)
                self._document_of.append(number)
        self._homes = {
            name.encode("utf-8", "surrogatepass"): places
            for name, places in homes.items()
            if len(places) <= _MAX_DEFINITIONS
        }
        self._read_uses(uses(self._homes.keys()))

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the documents, in their order."""
        return self._paths

    @property
    def is_complete(self) -> bool:
        """Whether there was time for all documents to be parsed; the others were scanned."""
        return self._complete

    def _read_uses(self, uses: Uses) -> None:
        users: list[int] = []
        used: list[int] = []
        weights: list[float] = []
        families = [_family(path) for path in self._paths]
        for number, names in uses:
            share = _TEST if kind_of(self._paths[number]) is Kind.TEST else 1.0
            for name in names:
                places = self._homes[name]
                for place in places:
                    home = self._document_of[place]
                    if home != number and families[home] == families[number]:
                        users.append(number)
                        used.append(place)
                        weights.append(share * self._weight(place) / len(places))
        self._users = np.array(users, np.int64)
        self._used = np.array(used, np.int64)
        self._weights = np.array(weights, np.float64)

    def _weight(self, place: int) -> float:
        one = self._definitions[place]
        plain = one.name.isalpha() and one.name.islower()
        return (_PLAIN_WORD if plain else 1.0) * (_MEMBER if one.depth else 1.0)

    def ranked(
        self,
        allowed: Collection[str] | None = None,
        focused: Sequence[str] | None = None,
        named: Collection[str] = (),
    ) -> list[Ranked]:
        """Return the definitions by personalised PageRank, heaviest first, ties by path and line.

        With `allowed`, only documents of these paths are seen. With `focused`, ranks begin at
        these documents, in their order; and definitions that are `named` weigh ten times more.
        """
        seen = np.array([allowed is None or path in allowed for path in self._paths], bool)
        start = self._start(seen, focused)
        if not len(self._definitions) or not start.any():
            return []
        documents = np.array(self._document_of, np.int64)
        ranks = self._ranks(seen, start, documents)
        ranked = [
            Ranked(float(weight) * (_NAMED if one.name in named else 1.0), number, one)
            for weight, number, one in zip(ranks, self._document_of, self._definitions, strict=True)
            if weight > 0
        ]
        return sorted(
            ranked,
            key=lambda one: (-one.weight, self._paths[one.document], one.definition.line),
        )

    def _start(self, seen: NDArray[np.bool_], focused: Sequence[str] | None) -> NDArray[np.float64]:
        """Return where ranks begin: everywhere alike, or at what is focused, the first most."""
        start = seen.astype(np.float64)
        if focused is not None:
            places = {path: place for place, path in enumerate(dict.fromkeys(focused))}
            shares = [1 / (1 + places[path]) if path in places else 0.0 for path in self._paths]
            start *= np.array(shares)
        total = start.sum()
        return start / total if total else start

    def _ranks(
        self, seen: NDArray[np.bool_], start: NDArray[np.float64], documents: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        count = len(self._definitions)
        both = seen[self._users] & seen[documents[self._used]]
        users, used, weights = self._users[both], self._used[both], self._weights[both]
        leaving = np.bincount(users, weights, len(self._paths))
        follows = leaving > 0
        shares = weights / leaving[users]
        defined = np.maximum(1, np.bincount(documents, minlength=len(self._paths)))
        rank: NDArray[np.float64] = start
        for _ in range(_ROUNDS):
            given = np.bincount(used, rank[users] * shares, count)
            arriving = np.bincount(documents, given, len(self._paths))
            lost = float(rank[~follows].sum())
            rank = np.multiply(start, 1 - _FOLLOWED + _FOLLOWED * lost, dtype=np.float64)
            rank = rank + _FOLLOWED * arriving
        given = np.bincount(used, rank[users] * shares, count).astype(np.float64)
        kept = np.where(seen, _OWN * rank / defined, 0.0)[documents]
        ranks: NDArray[np.float64] = np.add(given, kept)
        return ranks


def _family(path: str) -> str:
    """Return what names the languages that use each other's definitions; empty for prose."""
    language = language_of(path)
    if language is not None:
        return language.name
    return "" if markup_of(path) else path.rpartition("/")[2].rpartition(".")[2]


def _is_told(one: Definition) -> bool:
    return (
        one.kind in _KINDS
        and one.depth <= 1
        and len(one.name) >= _MIN_NAME_CHARS
        and not one.name.startswith("_")
    )
