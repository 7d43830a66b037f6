"""The corpus that a server answers about: loaded again when its sources have changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from rlm_rag.api import SearchableCorpus
from rlm_rag.engine.threads import in_thread
from rlm_rag.mcp.readers import Readers

LOOK_AGAIN_SECONDS = 2.0
OLDEST_SECONDS = 30.0
# Looking at a large source takes a while: it is done for no more than this share of the time,
# as long as nothing gets too old by that.
_LOOKING_SHARE = 0.1


class Edition:
    """The sources as they were at one moment."""

    def __init__(self, corpus: SearchableCorpus) -> None:
        self.corpus = corpus
        self.readers = Readers(corpus)
        self.users = 0
        self.is_past = False

    async def aclose(self) -> None:
        """End what answers about it, and close the corpus."""
        await self.readers.aclose()
        await in_thread(self.corpus.close)


class Editions:
    """Loads the sources when first asked, and again when they may have changed.

    A request that comes `LOOK_AGAIN_SECONDS` or more after the last look has the sources looked
    at again, where looking takes long up to `OLDEST_SECONDS` after it: files whose size, times
    and inode are the same are not read. With `looks_again` False they are loaded once. An edition
    stays whole while somebody uses it. To be used within one event loop.
    """

    def __init__(self, load: Callable[[], SearchableCorpus], *, looks_again: bool = True) -> None:
        self._load = load
        self._looks_again = looks_again
        self._current: Edition | None = None
        self._looking: asyncio.Task[None] | None = None
        self._looks_next = 0.0
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def current(self) -> AsyncIterator[Edition]:
        """Give the edition of now.

        Raises:
            SourceError, EmptyCorpusError, UsageError, PackedCorpusError: as `load_sources`; the
                next request tries again.
        """
        await self.look()
        edition = self._current
        assert edition is not None
        edition.users += 1
        try:
            yield edition
        finally:
            edition.users -= 1
            self._close_if_unused(edition)

    async def look(self) -> None:
        """Load the sources if that is due, together with whoever else waits for it.

        Raises:
            RlmRagError: as `current`.
        """
        if self._looking is None and self._is_due():
            self._looking = asyncio.create_task(self._look())
            self._looking.add_done_callback(_heard)
        if self._looking is not None:
            # It goes on for the others, should this caller be cancelled.
            await asyncio.shield(self._looking)

    async def aclose(self) -> None:
        """Close every edition, whoever uses it; a load under way is left to itself."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        if self._current is not None:
            await self._current.aclose()
        await asyncio.gather(*self._closing)

    def _is_due(self) -> bool:
        if self._current is None:
            return True
        return self._looks_again and time.monotonic() >= self._looks_next

    async def _look(self) -> None:
        began, is_first = time.monotonic(), self._current is None
        try:
            await self._take(await in_thread(self._load))
        finally:
            self._looking = None
        ended = time.monotonic()
        # The first time everything may have been read.
        rest = 0.0 if is_first else (ended - began) / _LOOKING_SHARE
        self._looks_next = ended + min(max(LOOK_AGAIN_SECONDS, rest), OLDEST_SECONDS)

    async def _take(self, corpus: SearchableCorpus) -> None:
        before = self._current
        if before is not None and before.corpus.fingerprint == corpus.fingerprint:
            await in_thread(corpus.close)
            return
        self._current = Edition(corpus)
        if before is not None:
            before.is_past = True
            self._close_if_unused(before)

    def _close_if_unused(self, edition: Edition) -> None:
        if not edition.is_past or edition.users:
            return
        task = asyncio.create_task(edition.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _heard(looking: asyncio.Task[None]) -> None:
    # All who waited for it may be gone.
    if not looking.cancelled():
        looking.exception()
