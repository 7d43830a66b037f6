"""The haystacks of a run, each loaded once for the samples that share it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from rlm_rag.api import SearchableCorpus, load
from rlm_rag.evals.base import Haystack


@dataclass(slots=True)
class _Held:
    loading: asyncio.Task[SearchableCorpus]
    users: int = 0


class Corpora:
    """Loads haystacks as they are asked for, and closes those that nobody uses any more.

    Samples that share one come one after another, so the latest is kept until another comes.
    """

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}
        self._latest: str | None = None

    @asynccontextmanager
    async def use(self, haystack: Haystack) -> AsyncIterator[SearchableCorpus]:
        """Give the loaded haystack, which stays open for the body.

        Raises:
            RlmRagError: as `rlm_rag.load`, and what the haystack's source raises.
        """
        held = self._held.get(haystack.key)
        if held is None:
            held = _Held(asyncio.create_task(asyncio.to_thread(_loaded, haystack)))
            self._held[haystack.key] = held
        self._latest = haystack.key
        held.users += 1
        try:
            # One sample's end must not end the load that others wait for.
            yield await asyncio.shield(held.loading)
        finally:
            held.users -= 1
            await self._close_idle()

    async def aclose(self) -> None:
        """Close them all."""
        self._latest = None
        await self._close_idle()

    async def _close_idle(self) -> None:
        idle = [key for key, held in self._held.items() if not held.users and key != self._latest]
        for held in [self._held.pop(key) for key in idle]:
            await asyncio.wait([held.loading])
            if not held.loading.cancelled() and held.loading.exception() is None:
                await asyncio.to_thread(held.loading.result().close)


def _loaded(haystack: Haystack) -> SearchableCorpus:
    return load(haystack.source())
