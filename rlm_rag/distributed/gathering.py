"""Answers about a corpus in shards: the same as about one that is held whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from rlm_rag.distributed.placement import owner_of
from rlm_rag.distributed.shard import Matching, Shard, Shards, ShardsLost
from rlm_rag.errors import PackedCorpusError, RetrievalError
from rlm_rag.holes import Holes
from rlm_rag.indexes.answering import Answerer
from rlm_rag.indexes.definition_cache import Outlined
from rlm_rag.indexes.holdings import Allowed
from rlm_rag.indexes.landmarks import Landmarks
from rlm_rag.indexes.paths import resolve
from rlm_rag.indexes.requests import (
    AnyRequest,
    GrepRequest,
    GrepResult,
    HoldResult,
    IndexResult,
    LoadRequest,
    LoadResult,
    ReadRequest,
    Result,
    SymbolsRequest,
    TextResult,
    joined_notes,
)
from rlm_rag.indexes.symbols import MAX_SYMBOLS, LookedUp
from rlm_rag.packed import PackedCorpus

if TYPE_CHECKING:
    from rlm_rag.indexes.finding import Finder
    from rlm_rag.indexes.leaning import Told, Uses

R = TypeVar("R")

# Of texts that are asked for at once; one may be larger.
_BATCH_BYTES = 8 << 20


class GatheringAnswerer:
    """Answers requests about a corpus whose documents lie in shards.

    Where a shard was lost, what the others have is given, and the note begins with `partial:`
    and names the lost ones; of a grep it is the `error` as well, since its counts are partial.
    The texts of a corpus with holes are fetched from the shards into `holes`. `loaded` is what
    was told where the source was loaded.
    """

    def __init__(
        self,
        corpus: PackedCorpus,
        shards: Shards,
        *,
        holes: Holes | None = None,
        loaded: LoadResult | None = None,
    ) -> None:
        self._shards = shards
        self._holes = holes
        self._loaded = loaded or LoadResult()
        self._answerer = Answerer(corpus, GatheredHoldings(corpus, shards, holes))

    def answer(self, request: AnyRequest) -> Result:
        """Answer one request.

        Raises:
            RetrievalError: as `Answerer.answer`; the shard of a document asked for is lost.
        """
        if isinstance(request, LoadRequest):
            return self._loaded
        # Not while it is answered: a part of the answer would be without them, and not say so.
        self._shards.renew()
        while True:
            try:
                result = self._answerer.answer(request)
            except ShardsLost:
                # Once for each shard at most: of the lost nothing more is asked.
                continue
            return self._named(result)

    def go_on(self, seconds: float) -> bool:
        """Parse documents that a request left for lack of time; return whether more are left."""
        try:
            return self._answerer.go_on(seconds)
        except ShardsLost:
            return True

    def close(self) -> None:
        """End the shards, and unmap the corpus."""
        self._answerer.close()
        if self._holes is not None:
            self._holes.close()

    def _named(self, result: Result) -> Result:
        lost = self._shards.lost()
        if not lost:
            return result
        named = ", ".join(f"shard {number} ({why})" for number, why in sorted(lost.items()))
        said = f"partial: without {named} of {len(self._shards)} shards"
        if isinstance(result, GrepResult) and result.error is None:
            return replace(result, error=said, error_kind="partial", truncated=True)
        return replace(result, note=joined_notes(said, result.note))


class GatheredHoldings:
    """What is held of a corpus, in its shards; `corpus` tells its paths, and its texts unless
    they are fetched into `holes`.
    """

    def __init__(self, corpus: PackedCorpus, shards: Shards, holes: Holes | None = None) -> None:
        self._corpus = corpus
        self._shards = shards
        self._holes = holes
        self.note: str | None = None
        if holes is not None:
            corpus.source = self._fetched

    @property
    def parts(self) -> GatheredHoldings:
        """The shards, as parts that are searched."""
        return self

    def numbers(self) -> Sequence[int]:
        """Return the numbers of the shards."""
        return range(len(self._shards))

    def ask(self, requests: Mapping[int, Callable[[Finder], R]]) -> Mapping[int, R]:
        """Return what requests of a search give."""
        asked = {number: partial(Shard.find, request=one) for number, one in requests.items()}
        return self._shards.ask(asked)

    def outlined(self, number: int) -> Outlined:
        """Return the definitions of a document.

        Raises:
            RetrievalError: its shard is lost.
        """
        return self._of_owner(number, partial(Shard.outlined, number=number))

    def several(self, numbers: Sequence[int]) -> tuple[list[Outlined], bool]:
        """Return the definitions of documents, none where their shard is lost."""
        outlined, done = self._of_owners(numbers, Shard.several)
        return [outlined.get(number, Outlined(())) for number in numbers], done

    def surveyed(
        self, numbers: Sequence[int], seconds: float
    ) -> tuple[list[Landmarks | None], bool]:
        """Return the landmarks of documents, None where their shard is lost."""
        found, done = self._of_owners(numbers, partial(Shard.surveyed, seconds=seconds))
        return [found.get(number) for number in numbers], done

    def outlined_text(self, path: str, data: bytes) -> Outlined:
        """Return the definitions of a text, read as `path` names it."""
        lost = self._shards.lost()
        left = next((number for number in self.numbers() if number not in lost), None)
        if left is None:
            raise RetrievalError("all shards of the corpus are lost")
        return self._shards.ask({left: partial(Shard.outlined_text, path=path, data=data)})[left]

    def read(self, request: ReadRequest) -> TextResult:
        """Return lines of a document.

        Raises:
            RetrievalError: no such document or lines; its shard is lost.
        """
        number = resolve(self._corpus, request.path)
        asked = replace(request, path=self._corpus.path(number))
        return self._of_owner(number, partial(Shard.read, request=asked))

    def matching(self, request: GrepRequest, allowed: Allowed) -> GrepResult:
        """Return the lines that match, in the corpus's order; counts are those of all shards."""
        # What `within` says `allowed` tells, too.
        asked = replace(request, within=None)
        found = self._all(partial(Shard.matching, request=asked, allowed=allowed))
        return _joined(found, request.k)

    def looked_up(
        self, request: SymbolsRequest, allowed: Allowed, case: int, seconds: float
    ) -> LookedUp:
        """Return where a name is defined or used, in the corpus's order."""
        asked = replace(request, within=None)
        parts = self._all(
            partial(Shard.looked_up, request=asked, allowed=allowed, case=case, seconds=seconds)
        )
        found = sorted(chain.from_iterable(part.found for part in parts), key=_number)
        said = sorted(chain.from_iterable(part.said for part in parts), key=_number)
        if len(found) > MAX_SYMBOLS:
            # What one index would not have met any more is not told of.
            said = [one for one in said if one[0] <= found[MAX_SYMBOLS][0]]
        texts = {text: number for number, text in reversed(said)}
        # Where one shard found the name, what the others doubt is not doubted of the whole.
        doubts = () if found else chain.from_iterable(part.doubts for part in parts)
        return LookedUp(
            tuple(found[: MAX_SYMBOLS + 1]),
            tuple(sorted((number, text) for text, number in texts.items())),
            any(part.late for part in parts),
            tuple(sorted(doubts, key=_number)),
        )

    def told(self) -> Told:
        """Return the definitions that a map of the corpus tells of."""
        from rlm_rag.indexes.leaning import Told

        parts = self._all(Shard.told)
        of = sorted(chain.from_iterable(part.of for part in parts), key=_number)
        return Told(of, all(part.complete for part in parts))

    def uses(self, names: Set[bytes]) -> Uses:
        """Return which documents use these names."""
        parts = self._all(partial(Shard.uses, names=frozenset(names)))
        return sorted(chain.from_iterable(parts), key=_number)

    def described(self, *, verify: bool) -> IndexResult:
        """Bring the search indexes up to date, and describe them as one."""
        parts = self._all(partial(Shard.described, verify=verify))
        return IndexResult(
            documents=sum(part.documents for part in parts),
            windows=sum(part.windows for part in parts),
            segments=sum(part.segments for part in parts),
            size_bytes=sum(part.size_bytes for part in parts),
            added=sum(part.added for part in parts),
            damaged=sum(part.damaged for part in parts),
            note=joined_notes(*dict.fromkeys(part.note for part in parts)),
            shards=len(self._shards),
        )

    def hold(self, numbers: Sequence[int]) -> HoldResult:
        """Fetch the texts of documents from their shards; those of lost ones stay lacking."""
        lacking: list[int] = []
        why: str | None = None
        for batch in self._batches(numbers):
            found = self._shards.ask(
                {owner: partial(Shard.texts, numbers=mine) for owner, mine in batch.items()}
            )
            for owner, mine in batch.items():
                texts: Sequence[bytes | None] = found.get(owner) or [None] * len(mine)
                for number, data in zip(mine, texts, strict=True):
                    wrong = self._filled(number, data)
                    if wrong is not None:
                        lacking.append(number)
                        why = why or wrong
        return HoldResult(tuple(lacking), why)

    def _filled(self, number: int, data: bytes | None) -> str | None:
        """Put a text that came, or None from a lost shard, in its place; return what is wrong."""
        assert self._holes is not None
        if data is None:
            return self._is_lost(number).message
        try:
            self._holes.fill(number, data)
        except PackedCorpusError as error:
            return str(error)
        return None

    def _batches(self, numbers: Sequence[int]) -> Iterator[dict[int, list[int]]]:
        """Yield the documents that are not here by their shards, so much text at a time."""
        batch: defaultdict[int, list[int]] = defaultdict(list)
        left = _BATCH_BYTES
        for number in numbers:
            if self._corpus.holds(number):
                continue
            batch[self._owner(number)].append(number)
            left -= self._corpus.size(number)
            if left < 0:
                yield batch
                batch, left = defaultdict(list), _BATCH_BYTES
        if batch:
            yield batch

    def _fetched(self, number: int, itself: bool) -> bytes:
        """Return a text, which is in the packed file from then on."""
        assert self._holes is not None
        (data,) = self._of_owner(number, partial(Shard.texts, numbers=[number]))
        self._holes.fill(number, data)
        return data

    def go_on(self, seconds: float) -> bool:
        """Parse documents that a request left for lack of time; return whether more are left."""
        return any(self._all(partial(Shard.go_on, seconds=seconds)))

    def close(self) -> None:
        """End the shards."""
        self._shards.close()

    def _owner(self, number: int) -> int:
        return owner_of(self._corpus.path(number), len(self._shards))

    def _of_owner(self, number: int, request: Callable[[Shard], R]) -> R:
        owner = self._owner(number)
        found = self._shards.ask({owner: request})
        if owner not in found:
            raise self._is_lost(number)
        return found[owner]

    def _of_owners(
        self, numbers: Sequence[int], request: Callable[..., tuple[list[R], bool]]
    ) -> tuple[dict[int, R], bool]:
        """Return what shards give of documents, asked at once, and whether all were done."""
        by_owner: defaultdict[int, list[int]] = defaultdict(list)
        for number in numbers:
            by_owner[self._owner(number)].append(number)
        requests = {owner: partial(request, numbers=mine) for owner, mine in by_owner.items()}
        found: dict[int, R] = {}
        done = True
        for owner, (given, all_done) in self._shards.ask(requests).items():
            found.update(zip(by_owner[owner], given, strict=True))
            done = done and all_done
        return found, done

    def _is_lost(self, number: int) -> RetrievalError:
        path, owner = self._corpus.path(number), self._owner(number)
        return RetrievalError(f"{path} lies in shard {owner}, which is lost")

    def _all(self, request: Callable[[Shard], R]) -> list[R]:
        found = self._shards.ask(dict.fromkeys(self.numbers(), request))
        return [part for _, part in sorted(found.items(), key=_number)]


def _number(one: tuple[int, object]) -> int:
    return one[0]


def _joined(parts: Sequence[Matching], k: int) -> GrepResult:
    rows = sorted(
        (number, path, count)
        for part in parts
        for number, (path, count) in zip(part.numbers, part.result.counts.items(), strict=True)
    )
    place = {path: number for number, path, _ in rows}
    hits = sorted(
        chain.from_iterable(part.result.hits for part in parts),
        key=lambda hit: (place[hit.path], hit.line),
    )
    total = sum(part.result.total for part in parts)
    failed = next((part.result for part in parts if part.result.error is not None), None)
    return GrepResult(
        tuple(hits[:k]),
        {path: count for _, path, count in rows},
        total,
        failed is not None or total > k,
        error=failed.error if failed else None,
        error_kind=failed.error_kind if failed else None,
    )
