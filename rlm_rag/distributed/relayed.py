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
        why = await asyncio.gather(*(self._lacking(number, holes) for number in numbers))
        said = [one for one in why if one is not None]
        lacking = (number for number, one in zip(numbers, why, strict=True) if one is not None)
        return HoldResult(tuple(lacking), said[0] if said else None)

    async def _lacking(self, number: int, holes: Holes) -> str | None:
        """Fetch a text; return why that cannot be."""
        try:
            data = await self._node.ask(HoldRequest((number,)))
            await asyncio.to_thread(holes.fill, number, data)
        except (RetrievalError, PackedCorpusError) as error:
            return str(error)
        return None

    async def aclose(self) -> None:
        """Nothing of it is open here."""


async def text_for(request: HoldRequest, view: View) -> bytes:
    """Return the text of the one document that a node asks for."""
    await view.hold(request.numbers)
    (number,) = request.numbers
    return encode(view.corpus[number].content)
