"""A corpus searched in parts: what each is asked, and what of their answers adds up.

A score depends on the whole corpus by a few sums alone. Parts count, the counts are added, and
each part scores its own windows by what came of it: so parts rank as one index would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import log
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from rlm_rag.indexes.query import Query

if TYPE_CHECKING:
    from rlm_rag.indexes.finding import Finder

R = TypeVar("R")

# Of lines that hold terms, ascending: bit n is set for term n.
Held = Mapping[int, int]

# A name that so many files have tells them apart no more.
_MOST_NAMESAKES = 20


class Parts(Protocol):
    """The parts of a corpus, by number; every document is in one of them, in the corpus's order."""

    def ask(self, requests: Mapping[int, Callable[[Finder], R]]) -> Mapping[int, R]:
        """Return what each request gives where it meets its part; a part that is lost gives none.

        Requests can be pickled.
        """
        ...

    def numbers(self) -> Sequence[int]:
        """Return the numbers of all parts, the lost ones too."""
        ...


@dataclass(frozen=True, slots=True)
class Totals:
    """How many windows and documents there are, and the terms in all of each."""

    windows: int = 0
    window_terms: int = 0
    documents: int = 0
    document_terms: int = 0

    @classmethod
    def of(cls, parts: Iterable[Totals]) -> Totals:
        """Return the sums."""
        rows = [(one.windows, one.window_terms, one.documents, one.document_terms) for one in parts]
        return cls(*map(sum, zip(*rows, strict=True)))


@dataclass(frozen=True, slots=True)
class Counts:
    """How many hold what a query asks for.

    By term: the `windows`, the `documents`, and the documents whose file name does (`stems`). By
    identifier: the windows that define it. By file name: the documents that end in it, then in
    what is left of it without its first folder, and so on, to the first of these that has some.
    """

    windows: Mapping[bytes, int]
    documents: Mapping[bytes, int]
    stems: Mapping[bytes, int]
    defining: Mapping[bytes, int]
    endings: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, parts: Sequence[Counts]) -> Counts:
        """Return the sums."""
        if len(parts) == 1:
            return parts[0]
        endings: dict[str, tuple[int, ...]] = {}
        for part in parts:
            for name, counts in part.endings.items():
                both = zip_longest(counts, endings.get(name, ()), fillvalue=0)
                endings[name] = tuple(map(sum, both))
        return cls(
            _added(part.windows for part in parts),
            _added(part.documents for part in parts),
            _added(part.stems for part in parts),
            _added(part.defining for part in parts),
            endings,
        )


@dataclass(frozen=True, slots=True)
class Ending:
    """The ends of a name, without so many of its first folders, that documents gain by."""

    dropped: int
    gain: float


@dataclass(frozen=True, slots=True)
class Rarity:
    """What holding a thing is worth, by how many of the whole corpus hold it.

    `windows`, `documents` and `stems` are inverse frequencies, ln(1 + (N - n + 0.5) / (n + 0.5)).
    `defining` is 1 / (1 + ln n) of the n windows that define a name. Of a file name `named` has
    the longest end that is here, of n documents, 20 at most, each of which gains 1 / (1 + ln n).
    """

    windows: Mapping[bytes, float]
    documents: Mapping[bytes, float]
    stems: Mapping[bytes, float]
    defining: Mapping[bytes, float]
    named: Mapping[str, Ending]

    @classmethod
    def of(cls, totals: Totals, counts: Counts) -> Rarity:
        """Work it out; once for all parts, since logarithms differ between machines."""
        return cls(
            {term: idf(totals.windows, count) for term, count in counts.windows.items()},
            {term: idf(totals.documents, count) for term, count in counts.documents.items()},
            {term: idf(totals.documents, count) for term, count in counts.stems.items()},
            {name: _share(count) for name, count in counts.defining.items() if count},
            dict(_named(counts.endings)),
        )


@dataclass(frozen=True, slots=True)
class Question:
    """A query with what it is worth in the whole corpus; `allowed` tells the paths of hits."""

    query: Query
    totals: Totals
    rarity: Rarity
    allowed: Callable[[str], bool] | None = None


class Candidate(NamedTuple):
    """A window that may be a hit: number `window` of its part, lines `first` to `last`.

    `length` is its terms; `rank` its score, rounded, by which windows are ordered.
    """

    part: int
    window: int
    path: str
    first: int
    last: int
    length: int
    score: float
    rank: float

    def ranked(self, rank: float) -> Candidate:
        """Return it with another rank."""
        return self._replace(rank=rank)


class Stretch:
    """The lines of a window after those in which a definition that holds it may begin.

    `first` is the number of the first, and `held` which terms they hold, and maybe some lines
    before them.
    """

    __slots__ = ("_text", "first", "held")

    def __init__(self, text: bytes | Callable[[], bytes], first: int, held: Held) -> None:
        """A text that is given by a function is read once it is needed, or pickled."""
        self._text = text
        self.first = first
        self.held = held

    @property
    def text(self) -> bytes:
        """The lines, joined by LF."""
        if not isinstance(self._text, bytes):
            self._text = self._text()
        return self._text

    def __reduce__(self) -> tuple[type[Stretch], tuple[bytes, int, Held]]:
        return Stretch, (self.text, self.first, self.held)


def order(candidate: Candidate) -> tuple[float, str, int]:
    """Return what candidates are sorted by: the best first, ties by path, then line."""
    return -candidate.rank, candidate.path, candidate.first


def idf(total: int, holding: int) -> float:
    """Return the inverse frequency of what so many of all hold."""
    return log(1 + (total - holding + 0.5) / (holding + 0.5))


def _added(parts: Iterable[Mapping[bytes, int]]) -> Mapping[bytes, int]:
    sums: Counter[bytes] = Counter()
    for part in parts:
        sums.update(part)
    return sums


def _share(count: int) -> float:
    return 1 / (1 + log(count))


def _named(endings: Mapping[str, tuple[int, ...]]) -> Iterable[tuple[str, Ending]]:
    for name, counts in endings.items():
        dropped, found = next(
            ((at, count) for at, count in enumerate(counts) if count), (len(counts), 0)
        )
        if 0 < found <= _MOST_NAMESAKES:
            yield name, Ending(dropped, _share(found))
