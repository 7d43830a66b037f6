"""Documents that blocks add to a run, with an index of their own."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Mapping
from types import MappingProxyType

from rlm_rag.engine.caller import Refused
from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.requests import Request, Result
from rlm_rag.indexes.retriever import ProcessRetriever
from rlm_rag.packing import PackedWriter
from rlm_rag.scratch import ScratchFolder

PREFIX = "added:/"
# A worker that was replaced is told all of them again in one message of 64 MiB, escaped.
MAX_CHARS = 8 << 20
MAX_DOCUMENTS = 10_000
MAX_PATH_CHARS = 300


class Added:
    """The documents, by paths under `added:/`; they are packed and indexed when first asked."""

    def __init__(self, documents: Mapping[str, str] | None = None) -> None:
        self._documents = dict(documents or {})
        self._chars = sum(map(len, self._documents.values()))
        self._changed = True
        self._turn = asyncio.Lock()
        self._scratch: ScratchFolder | None = None
        self._retriever: ProcessRetriever | None = None

    @property
    def documents(self) -> Mapping[str, str]:
        """Path to text, a live view."""
        return MappingProxyType(self._documents)

    def add(self, path: str, content: str) -> str:
        """Add a document, or replace the one of that path; return its path.

        Raises:
            Refused: the path cannot be one, or too much was added.
        """
        name = PREFIX + _plain(path)
        self.take(name, content)
        return name

    def take(self, path: str, content: str) -> None:
        """Add a document under a path of `added:/` as it is, or replace the one there.

        Raises:
            Refused: too much was added.
        """
        chars = self._chars + len(content) - len(self._documents.get(path, ""))
        if chars > MAX_CHARS:
            raise Refused(f"more than {MAX_CHARS:,} characters would be added to this run")
        if path not in self._documents and len(self._documents) >= MAX_DOCUMENTS:
            raise Refused(f"{MAX_DOCUMENTS:,} documents were added already")
        self._documents[path] = content
        self._chars, self._changed = chars, True

    def check_room(self, documents: Mapping[str, str]) -> None:
        """Raise before any of several documents is added, where not all of them fit.

        Raises:
            Refused: they do not.
        """
        if self._chars + sum(map(len, documents.values())) > MAX_CHARS:
            raise Refused(f"more than {MAX_CHARS:,} characters would be added to this run")
        if len(self._documents) + len(documents) > MAX_DOCUMENTS:
            raise Refused(f"more than {MAX_DOCUMENTS:,} documents would be added to this run")

    async def retrieve(self, request: Request) -> Result:
        """Answer a request about these documents alone; there must be one.

        Raises:
            RetrievalError: as the retriever of the corpus.
        """
        async with self._turn:
            if self._changed or self._retriever is None:
                self._retriever = await self._indexed()
            retriever = self._retriever
        return await retriever.retrieve(request)

    async def _indexed(self) -> ProcessRetriever:
        await self._release()
        self._changed = False
        documents = dict(self._documents)
        try:
            self._scratch = ScratchFolder()
            packed = self._scratch.path / "added.packed"
            await asyncio.to_thread(_pack, packed, documents)
        except OSError as error:
            raise RetrievalError(f"the added documents cannot be indexed: {error}") from error
        return ProcessRetriever(packed)

    async def _release(self) -> None:
        retriever, self._retriever = self._retriever, None
        scratch, self._scratch = self._scratch, None
        if retriever is not None:
            await retriever.aclose()
        if scratch is not None:
            scratch.close()

    async def aclose(self) -> None:
        """End the index process and remove its file; idempotent."""
        self._changed = True
        await self._release()


def _pack(packed: object, documents: Mapping[str, str]) -> None:
    with PackedWriter(str(packed)) as writer:
        for path, content in documents.items():
            writer.add(path, content)


def _plain(path: str) -> str:
    if len(path) > MAX_PATH_CHARS:
        raise Refused(f"a path has at most {MAX_PATH_CHARS} characters, this one {len(path):,}")
    name = posixpath.normpath(path.removeprefix(PREFIX).replace("\\", "/")).lstrip("/")
    if (
        not path.strip()
        or name in ("", ".", "..")
        or name.startswith("../")
        or not name.isprintable()
    ):
        raise Refused(f"{path!r:.80} cannot be a document's path")
    return name
