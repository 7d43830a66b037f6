"""Where the definitions of a document begin and end, as its grammar tells: what a search needs."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from rlm_rag.indexes.skeleton import MINOR_KINDS, Definition

if TYPE_CHECKING:
    from rlm_rag.packed import PackedCorpus

# A search waits for such documents: what is larger is only scanned, around the best windows.
MAX_BYTES = 512 << 10
# How long one search has documents parsed; what is left is parsed while nothing is asked.
SECONDS = 2.0
LATE = "not all of the best documents are parsed yet: those left were scanned; ask again for better"

# Names that say what a value is, not what is done.
_NO_LANDMARKS = MINOR_KINDS | {"constant", "package"}
_MOST_KEPT = 200_000
# The innermost: a hostile text nests thousands.
_MOST_PARENTS = 4

_place = attrgetter("line", "depth")


Name = tuple[bytes, tuple[bytes, ...]]
"""A name, and the names that it belongs to, the innermost four."""


@dataclass(frozen=True, slots=True)
class Landmarks:
    """The definitions of a document in its order: the lines of their names and of their ends.

    And the names, each with those that it belongs to.
    """

    lines: Sequence[int]
    ends: Sequence[int]
    names: Sequence[Name]

    @classmethod
    def of(cls, definitions: Iterable[Definition]) -> Landmarks:
        """Leave out variables, fields and constants, as the scan for definitions does."""
        kept = [one for one in definitions if one.kind not in _NO_LANDMARKS]
        kept.sort(key=_place)
        # What belongs to the same says so in the same words.
        known: dict[tuple[str, ...], tuple[bytes, ...]] = {}
        names: list[Name] = []
        for one in kept:
            parents = known.get(one.parents)
            if parents is None:
                parents = known[one.parents] = tuple(map(_encoded, one.parents[-_MOST_PARENTS:]))
            names.append((_encoded(one.name), parents))
        return cls(
            tuple([one.line for one in kept]), tuple([one.end_line for one in kept]), tuple(names)
        )

    def between(self, first: int, last: int) -> Iterator[tuple[int, Name]]:
        """Yield the names that are defined from one line to another, each with its line."""
        for at in range(bisect_left(self.lines, first), bisect_right(self.lines, last)):
            yield self.lines[at], self.names[at]

    def around(self, line: int, first: int) -> int | None:
        """Return where the innermost definition begins that holds a line, not before `first`."""
        for at in range(bisect_right(self.lines, line) - 1, -1, -1):
            begins = self.lines[at]
            if begins < first:
                break
            if line <= self.ends[at]:
                return begins
        return None


class Surveyed(Protocol):
    """Tells the landmarks of the documents of a corpus, by their numbers."""

    def surveyed(
        self, numbers: Sequence[int], seconds: float
    ) -> tuple[list[Landmarks | None], bool]:
        """Return the landmarks of documents; and False where some were not parsed in time.

        None where no grammar tells, for whatever reason.
        """
        ...


class Survey:
    """The landmarks of documents by their paths, asked for once as long as there is room."""

    def __init__(self, corpus: PackedCorpus, holdings: Surveyed, *, most: int = _MOST_KEPT) -> None:
        """At most so many landmarks are kept, those used last."""
        self._corpus = corpus
        self._holdings = holdings
        self._most = most
        self._count = 0
        self._kept: OrderedDict[str, Landmarks | None] = OrderedDict()

    def of(self, paths: Sequence[str]) -> tuple[Mapping[str, Landmarks | None], bool]:
        """Return the landmarks of documents; and False where some were not parsed in time."""
        found = {path: self._kept[path] for path in paths if path in self._kept}
        for path in found:
            self._kept.move_to_end(path)
        fresh = [path for path in dict.fromkeys(paths) if path not in found]
        numbers = [number for path in fresh if (number := self._corpus.index_of(path)) is not None]
        if not numbers:
            return found, True
        asked, done = self._holdings.surveyed(numbers, SECONDS)
        for number, landmarks in zip(numbers, asked, strict=True):
            path = self._corpus.path(number)
            found[path] = landmarks
            if done or landmarks is not None:
                self._keep(path, landmarks)
        return found, done

    def _keep(self, path: str, landmarks: Landmarks | None) -> None:
        self._kept[path] = landmarks
        self._count += _size(landmarks)
        while self._count > self._most:
            _, left = self._kept.popitem(last=False)
            self._count -= _size(left)


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _size(landmarks: Landmarks | None) -> int:
    return 1 + (0 if landmarks is None else len(landmarks.lines))
