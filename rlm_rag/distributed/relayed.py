"""What a node that has children asks of the machine where their root runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rlm_rag.distributed.work import Node
from rlm_rag.engine.view import View
from rlm_rag.errors import PackedCorpusError, RetrievalError
from rlm_rag.holes import Holes
from rlm_rag.indexes.requests import HoldRequest, HoldResult, Request, Result
from rlm_rag.packed import encode


class RelayedRetriever:
    """Has requests answered where the root runs, by the index that is there.

    Texts that are asked for come from there into `holes`, where this node's copy has some.
    """

    def __init__(self, node: Node, holes: Holes | None) -> None:
        self._node = node
        self._holes = holes

    async def retrieve(self, request: Request) -> Result:
        """Answer one request.

        Raises:
            RetrievalError: as the index there.
        """
        if isinstance(request, HoldRequest) and self._holes is not None:
            return await self._held(request.numbers, self._holes)
        result: Result = await self._node.ask(request)
        return result

    async def _held(self, numbers: Sequence[int], holes: Holes) -> HoldResult:
        lacking: list[int] = []
        why: str | None = None
        for number in numbers:
            try:
                data = await self._node.ask(HoldRequest((number,)))
                await asyncio.to_thread(holes.fill, number, data)
            except (RetrievalError, PackedCorpusError) as error:
                lacking.append(number)
                why = str(error)
        return HoldResult(tuple(lacking), why)

    async def aclose(self) -> None:
        """Nothing of it is open here."""


async def text_for(request: HoldRequest, view: View) -> bytes:
    """Return the text of the one document that a node asks for."""
    await view.hold(request.numbers)
    (number,) = request.numbers
    return encode(view.corpus[number].content)
