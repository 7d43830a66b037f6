"""What runs on a node of a Ray cluster: one shard, in an actor's process."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_rag import kept
from rlm_rag.distributed.shard import Shard
from rlm_rag.errors import RlmRagError
from rlm_rag.indexes.holdings import OwnHoldings
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.indexes.store import SegmentStore
from rlm_rag.packed import PackedCorpus
from rlm_rag.packing import PackedWriter
from rlm_rag.scratch import ScratchFolder

# A shard's index is not in the way of those of other sources, whatever it takes.
_NO_LIMIT_BYTES = 1 << 62
_PACKED = "shard.packed"


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a request was not answered; errors of this package cannot be pickled as they are."""

    message: str
    hint: str | None


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a node is to hold: its documents have these numbers, and together this digest.

    `origin` is what it is kept under in the node's cache folder, which `kept_root` is where
    it is not the default; with an empty one it is kept only as long as the actor lives.
    """

    origin: str
    kept_root: str
    numbers: array[int]
    digest: bytes


class ShardHost:
    """Holds one shard on a node: its text in a file of the node, its index beside that."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._scratch: ScratchFolder | None = None
        self._folder = self._made()
        self._writer: PackedWriter | None = None
        self._shard: Shard | None = None

    def version(self) -> bytes:
        """Return the stamp of this node's analysis, which must be the same on all of them."""
        return stamp_of(Weights())

    def begin(self) -> bool:
        """Open what the node has kept of the shard; False where its documents are to be added."""
        corpus = self._kept()
        if corpus is None:
            self._writer = PackedWriter(self._folder / _PACKED)
            return False
        self._open(corpus)
        return True

    def add(self, documents: Sequence[tuple[str, bytes, str | None]]) -> Failed | None:
        """Add documents, each its path, its text as UTF-8, and its encoding."""
        assert self._writer is not None
        try:
            for path, data, encoding in documents:
                self._writer.add(path, data.decode("utf-8", "surrogatepass"), encoding=encoding)
        except RlmRagError as error:
            return Failed(error.message, error.hint)
        return None

    def finish(self) -> Failed | None:
        """Open the shard, all of whose documents were added."""
        assert self._writer is not None
        try:
            self._writer.close()
            corpus = PackedCorpus.open(self._folder / _PACKED)
        except RlmRagError as error:
            return Failed(error.message, error.hint)
        if digest_of(corpus, range(len(corpus))) != self._assignment.digest:
            return Failed("the documents arrived otherwise than they were sent", None)
        self._open(corpus)
        return None

    def answer(self, request: Callable[[Shard], Any]) -> Any:
        """Return what a request gives, or `Failed`."""
        assert self._shard is not None
        try:
            return request(self._shard)
        except RlmRagError as error:
            return Failed(error.message, error.hint)

    def _kept(self) -> PackedCorpus | None:
        try:
            corpus = PackedCorpus.open(self._folder / _PACKED)
        except RlmRagError:
            # None yet, or of no use.
            return None
        if digest_of(corpus, range(len(corpus))) == self._assignment.digest:
            return corpus
        corpus.close()
        return None

    def _made(self) -> Path:
        own = self._assignment.kept_root
        root = Path(own) if own else kept.default_kept_folder()
        if self._assignment.origin and root is not None:
            folder = kept.folder_of(root, self._assignment.origin)
            try:
                kept.prepare(folder, self._assignment.origin)
            except OSError:
                # Where nothing can be kept, it lives as long as this process.
                pass
            else:
                return folder
        self._scratch = ScratchFolder()
        return self._scratch.path

    def _open(self, corpus: PackedCorpus) -> None:
        store = SegmentStore(
            self._folder,
            stamp=self.version(),
            origin=self._assignment.origin,
            max_bytes=_NO_LIMIT_BYTES,
        )
        path = self._folder / _PACKED
        holdings = OwnHoldings(corpus, store=store, packed_path=path)
        self._shard = Shard(corpus, holdings, self._assignment.numbers)


def digest_of(corpus: PackedCorpus, numbers: Sequence[int]) -> bytes:
    """Return what stands for documents in this order, paths and contents."""
    digest = hashlib.sha256()
    for number in numbers:
        digest.update(corpus.digest(number))
    return digest.digest()
