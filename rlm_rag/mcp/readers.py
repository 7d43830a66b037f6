"""Index processes over one corpus, so that no request waits for another."""

from __future__ import annotations

import asyncio
from collections import Counter

from rlm_rag.api import SearchableCorpus
from rlm_rag.engine.loop_thread import loop_thread
from rlm_rag.indexes.requests import AnyRequest, Result, SearchRequest
from rlm_rag.indexes.retriever import ProcessRetriever

MOST_PROCESSES = 4


class Readers:
    """Answers retrieval requests about a corpus, each in an index process that is idle.

    One process where requests come one after the other, at most `MOST_PROCESSES`. To be used
    within one event loop.
    """

    def __init__(self, corpus: SearchableCorpus) -> None:
        self._corpus = corpus
        self._asked: Counter[ProcessRetriever] = Counter()
        self._is_indexed = False
        self._indexing = asyncio.Lock()

    async def retrieve(self, request: AnyRequest) -> Result:
        """Answer one request; a cancelled one is left to its process, which then is not idle.

        Raises:
            RetrievalError: as `ProcessRetriever.retrieve`.
        """
        if self._is_indexed or not isinstance(request, SearchRequest):
            return await self._retrieve(request)
        # The first search may have an index to build, which the others then find.
        async with self._indexing:
            result = await self._retrieve(request)
            self._is_indexed = True
            return result

    async def aclose(self) -> None:
        """End the processes; requests under way fail. Idempotent."""
        for each in list(self._asked):
            await loop_thread().awaited(each.aclose())

    async def _retrieve(self, request: AnyRequest) -> Result:
        retriever = self._idle()
        self._asked[retriever] += 1
        try:
            return await loop_thread().awaited(retriever.retrieve(request))
        finally:
            self._asked[retriever] -= 1

    def _idle(self) -> ProcessRetriever:
        best = min(self._asked, key=self._load_of, default=None)
        # One process has all the shards of a corpus that lies in some.
        most = MOST_PROCESSES if self._corpus.cluster is None else 1
        if best is None or (self._load_of(best) and len(self._asked) < most):
            best = self._corpus.new_retriever()
        return best

    def _load_of(self, retriever: ProcessRetriever) -> int:
        # What was asked just now has not reached it; what was given up keeps it busy all the same.
        return max(self._asked[retriever], retriever.waiting)
