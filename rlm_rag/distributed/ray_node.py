"""What runs on a node of a Ray cluster: one shard, in an actor's process."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_rag import kept
from rlm_rag.corpus import Corpus
from rlm_rag.distributed.part_loading import MOST_KEPT_BYTES, Loaded, PlaceSource, load_part
from rlm_rag.distributed.shard import Shard
from rlm_rag.errors import RlmRagError
from rlm_rag.indexes.holdings import OwnHoldings
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.indexes.store import SegmentStore
from rlm_rag.packed import PackedCorpus
from rlm_rag.packing import PackedWriter
from rlm_rag.scratch import ScratchFolder

_PACKED = "shard.packed"
_GARBLED = "the documents arrived otherwise than they were sent"
_CHANGED = "its documents have changed since they were loaded"


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a request was not answered; errors of this package cannot be pickled as they are."""

    message: str
    hint: str | None


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a node is to hold: its documents have these numbers, and together this digest.

    `origin` is what it is kept under in the node's cache folder, which `kept_root` is where
    it is not the default; with an empty one it is kept only as long as the actor lives. It is the
    shard `at` of `count`. Where there is a `source`, its documents are loaded from that, before
    it is known which they are the first time (then `digest` is empty); else they are sent.
    """

    origin: str
    kept_root: str
    numbers: array[int]
    digest: bytes
    at: int = 0
    count: int = 1
    source: PlaceSource | None = None


class ShardHost:
    """Holds one shard on a node: its text in a file of the node, its index beside that."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._scratch: ScratchFolder | None = None
        self._folder = self._made()
        self._writer: PackedWriter | None = None
        self._loaded: Corpus | None = None
        self._shard: Shard | None = None

    def version(self) -> bytes:
        """Return the stamp of this node's analysis, which must be the same on all of them."""
        return stamp_of(Weights())

    def begin(self) -> bool | Failed:
        """Open what the node has kept of the shard, or can load.

        False where its documents are to be added; `Failed` where they cannot be loaded.
        """
        source = self._assignment.source
        if source is not None:
            failed = self._load(source)
            return True if failed is None else failed
        if self._opened(self._folder / _PACKED, _CHANGED) is None:
            return True
        # None yet, or of no use.
        self._writer = PackedWriter(self._folder / _PACKED)
        return False

    def loaded(self) -> Loaded:
        """Tell of what was loaded."""
        assert self._loaded is not None
        return Loaded.of(self._loaded)

    def assign(self, assignment: Assignment) -> Failed | None:
        """Open what was loaded as the shard that it is assigned to be."""
        assert self._loaded is not None
        self._assignment = assignment
        return self._opened(self._loaded.packed_path, _CHANGED)

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
        except RlmRagError as error:
            return Failed(error.message, error.hint)
        return self._opened(self._folder / _PACKED, _GARBLED)

    def answer(self, request: Callable[[Shard], Any]) -> Any:
        """Return what a request gives, or `Failed`."""
        assert self._shard is not None
        try:
            return request(self._shard)
        except RlmRagError as error:
            return Failed(error.message, error.hint)

    def _load(self, source: PlaceSource) -> Failed | None:
        mine = self._assignment
        is_known = bool(mine.digest)
        try:
            if not is_known:
                # Later the documents themselves tell whether it is the same folder.
                source.check()
            self._loaded = load_part(source, mine.at, mine.count, self._kept_root())
        except RlmRagError as error:
            return Failed(error.message, error.hint)
        return self._opened(self._loaded.packed_path, _CHANGED) if is_known else None

    def _opened(self, path: Path, otherwise: str) -> Failed | None:
        """Open a packed file as the shard; say so `otherwise`, where its documents are others."""
        try:
            corpus = PackedCorpus.open(path)
        except RlmRagError as error:
            return Failed(error.message, error.hint)
        if digest_of(corpus, range(len(corpus))) != self._assignment.digest:
            corpus.close()
            return Failed(otherwise, None)
        self._open(corpus, path)
        return None

    def _kept_root(self) -> Path | None:
        mine = self._assignment
        if not mine.origin:
            return None
        return Path(mine.kept_root) if mine.kept_root else kept.default_kept_folder()

    def _made(self) -> Path:
        root = self._kept_root()
        if root is not None:
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

    def _open(self, corpus: PackedCorpus, path: Path) -> None:
        store = SegmentStore(
            self._folder,
            stamp=self.version(),
            origin=self._assignment.origin,
            max_bytes=MOST_KEPT_BYTES,
        )
        holdings = OwnHoldings(corpus, store=store, packed_path=path)
        self._shard = Shard(corpus, holdings, self._assignment.numbers)


def digest_of(corpus: PackedCorpus, numbers: Sequence[int]) -> bytes:
    """Return what stands for documents in this order, paths and contents."""
    digest = hashlib.sha256()
    for number in numbers:
        digest.update(corpus.digest(number))
    return digest.digest()
