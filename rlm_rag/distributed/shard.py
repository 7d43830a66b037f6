"""A shard: some documents of a corpus, with all that is held of them, in one process."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from rlm_rag.indexes.definition_cache import Outlined
from rlm_rag.indexes.holdings import Allowed, OwnHoldings
from rlm_rag.indexes.landmarks import Landmarks
from rlm_rag.indexes.requests import (
    GrepRequest,
    GrepResult,
    IndexResult,
    ReadRequest,
    SymbolsRequest,
    TextResult,
)
from rlm_rag.indexes.symbols import LookedUp
from rlm_rag.packed import PackedCorpus

if TYPE_CHECKING:
    from rlm_rag.indexes.finding import Finder
    from rlm_rag.indexes.leaning import Told

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Matching:
    """The lines of a shard that match, with the number of each document that `counts` has."""

    result: GrepResult
    numbers: tuple[int, ...]


class Shard:
    """What is asked of some documents; all numbers are those that they have in the whole corpus.

    `numbers` are theirs, ascending.
    """

    def __init__(self, corpus: PackedCorpus, holdings: OwnHoldings, numbers: Sequence[int]) -> None:
        self._corpus = corpus
        self._holdings = holdings
        self._numbers = numbers

    def find(self, request: Callable[[Finder], R]) -> R:
        """Return what a request of a search gives; the index is built when first needed."""
        return self._holdings.find(request)

    def outlined(self, number: int) -> Outlined:
        """Return the definitions of a document, however long it takes to parse it."""
        return self._holdings.outlined(self._own(number))

    def several(self, numbers: Sequence[int]) -> tuple[list[Outlined], bool]:
        """Return the definitions of documents; and False where some had to be scanned in time."""
        return self._holdings.several([self._own(number) for number in numbers])

    def surveyed(
        self, numbers: Sequence[int], seconds: float
    ) -> tuple[list[Landmarks | None], bool]:
        """Return the landmarks of documents; and False where some were not parsed in time."""
        return self._holdings.surveyed([self._own(number) for number in numbers], seconds)

    def outlined_text(self, path: str, data: bytes) -> Outlined:
        """Return the definitions of a text, read as `path` names it."""
        return self._holdings.outlined_text(path, data)

    def texts(self, numbers: Sequence[int]) -> list[bytes]:
        """Return the texts of documents as UTF-8."""
        return [bytes(self._corpus.content_bytes(self._own(number))) for number in numbers]

    def read(self, request: ReadRequest) -> TextResult:
        """Return lines of a document."""
        return self._holdings.read(request)

    def matching(self, request: GrepRequest, allowed: Allowed) -> Matching:
        """Return the lines that match."""
        result = self._holdings.matching(request, allowed)
        own = [self._corpus.index_of(path) for path in result.counts]
        return Matching(result, tuple(self._numbers[at] for at in own if at is not None))

    def looked_up(
        self, request: SymbolsRequest, allowed: Allowed, case: int, seconds: float
    ) -> LookedUp:
        """Return where a name is defined or used."""
        found = self._holdings.looked_up(request, allowed, case, seconds)
        return replace(
            found,
            found=tuple((self._numbers[at], symbol) for at, symbol in found.found),
            said=tuple((self._numbers[at], text) for at, text in found.said),
            doubts=tuple((self._numbers[at], text) for at, text in found.doubts),
        )

    def told(self) -> Told:
        """Return the definitions that a map of the corpus tells of."""
        told = self._holdings.told()
        return replace(told, of=[(self._numbers[at], found) for at, found in told.of])

    def uses(self, names: Set[bytes]) -> list[tuple[int, Sequence[bytes]]]:
        """Return which documents use these names."""
        return [(self._numbers[at], used) for at, used in self._holdings.uses(names)]

    def described(self, verify: bool) -> IndexResult:
        """Bring the search index up to date, and describe it."""
        return self._holdings.described(verify=verify)

    def go_on(self, seconds: float) -> bool:
        """Parse documents that were left for lack of time; return whether more are left."""
        return self._holdings.go_on(seconds)

    def close(self) -> None:
        """Unmap the documents, and end what works on them."""
        self._holdings.close()
        self._corpus.close()

    def _own(self, number: int) -> int:
        return bisect_left(self._numbers, number)


class Shards(Protocol):
    """The shards of a corpus, by number, wherever they are."""

    def ask(self, requests: Mapping[int, Callable[[Shard], R]]) -> Mapping[int, R]:
        """Return what each request gives where it meets its shard, all of them at once.

        Requests and what they give can be pickled. Nothing comes of shards that were known to
        be lost.

        Raises:
            ShardsLost: others were lost meanwhile; who asks again is answered by those left.
            RetrievalError: a request cannot be answered.
        """
        ...

    def lost(self) -> Mapping[int, str]:
        """Return the shards that are lost, each with the reason; until `renew` none comes back."""
        ...

    def renew(self) -> None:
        """Have lost shards tried again whose time has come."""
        ...

    def __len__(self) -> int:
        """Return how many there are, the lost ones too."""
        ...

    def close(self) -> None:
        """End them; idempotent."""
        ...


class ShardsLost(Exception):
    """Shards were lost while they were asked; it never leaves `distributed`."""
