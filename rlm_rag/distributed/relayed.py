"""What a node that has children asks of the machine where their root runs."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlm_rag.corpus import Corpus
from rlm_rag.distributed.work import Node
from rlm_rag.engine.view import View
from rlm_rag.errors import PackedCorpusError, RetrievalError
from rlm_rag.holes import Holes
from rlm_rag.indexes.requests import HoldRequest, HoldResult, Request, Result
from rlm_rag.packed import encode

# Of texts that are sent at once; one may be larger.
_BATCH_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of the documents that a node asked for, each None where `why` says why."""

    found: tuple[bytes | None, ...]
    why: str | None = None


class Arrivals:
    """The texts that come to a node's copy of a corpus: each once, however many wait for it."""

    def __init__(self, path: Path) -> None:
        """Fill the holes of the copy at `path`.

        Raises:
            PackedCorpusError: it has none, or cannot be written.
        """
        self._holes = Holes(path)
        self._coming: dict[int, asyncio.Future[None]] = {}

    async def hold(self, numbers: Sequence[int], node: Node) -> HoldResult:
        """Have the texts of documents come by `node`, 8 MB at a time."""
        left = list(numbers)
        lacking: list[int] = []
        why: str | None = None
        while left:
            coming = self._coming.get(left[0])
            asked: Collection[int] = ()
            if coming is None:
                asked = self._batch(left)
                came, said = await self._fetched(asked, node)
                lacking += (number for number in asked if number not in came)
                why = why or said
            else:
                # What does not come by it is asked for here: who asked may have been stopped.
                await asyncio.wait([coming])
            holds, done = self._holes.corpus.holds, frozenset(asked)
            left = [number for number in left if number not in done and not holds(number)]
        return HoldResult(tuple(lacking), why)

    def close(self) -> None:
        """Close the copy."""
        self._holes.close()

    def _batch(self, numbers: Sequence[int]) -> list[int]:
        """Return the first of `numbers`, and what may be asked for with it."""
        batch: list[int] = []
        room = _BATCH_BYTES
        for number in numbers:
            if number in self._coming:
                continue
            room -= self._holes.corpus.size(number)
            if batch and room < 0:
                break
            batch.append(number)
        return batch

    async def _fetched(
        self, numbers: Sequence[int], node: Node
    ) -> tuple[Collection[int], str | None]:
        """Fetch texts; return the numbers of those that came, and why others did not."""
        coming: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._coming |= dict.fromkeys(numbers, coming)
        try:
            texts: Texts = await node.ask(HoldRequest(tuple(numbers)))
            return await asyncio.to_thread(self._filled, numbers, texts)
        except (RetrievalError, PackedCorpusError) as error:
            return (), str(error)
        finally:
            for number in numbers:
                del self._coming[number]
            coming.set_result(None)

    def _filled(self, numbers: Sequence[int], texts: Texts) -> tuple[Collection[int], str | None]:
        came, why = set(), texts.why
        for number, data in zip(numbers, texts.found, strict=True):
            if data is None:
                continue
            try:
                self._holes.fill(number, data)
            except PackedCorpusError as error:
                why = why or str(error)
            else:
                came.add(number)
        return came, why


class RelayedRetriever:
    """Has requests answered where the root runs, by the index that is there.

    Texts that are asked for come from there by `arrivals`, where this node's copy has holes.
    """

    def __init__(self, node: Node, arrivals: Arrivals | None) -> None:
        self._node = node
        self._arrivals = arrivals

    async def retrieve(self, request: Request) -> Result:
        """Answer one request.

        Raises:
            RetrievalError: as the index there.
        """
        if isinstance(request, HoldRequest) and self._arrivals is not None:
            return await self._arrivals.hold(request.numbers, self._node)
        result: Result = await self._node.ask(request)
        return result

    async def aclose(self) -> None:
        """Nothing of it is open here."""


async def texts_for(request: HoldRequest, view: View) -> Texts:
    """Return the texts of the documents that a node asks for, fetched from where they lie."""
    why: str | None = None
    try:
        await view.hold(request.numbers)
    except RetrievalError as error:
        why = str(error)
    return await asyncio.to_thread(_texts, request.numbers, view.corpus, why)


def _texts(numbers: Sequence[int], corpus: Corpus, why: str | None) -> Texts:
    lost = frozenset(corpus.lacking(numbers)) if why else frozenset()
    found: list[bytes | None] = []
    for number in numbers:
        try:
            found.append(None if number in lost else encode(corpus[number].content))
        except PackedCorpusError as error:
            found.append(None)
            why = why or str(error)
    return Texts(tuple(found), why)
