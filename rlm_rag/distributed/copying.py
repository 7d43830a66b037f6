"""What is made of a corpus for the nodes that have children over it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from rlm_rag.corpus import Corpus, scratch_for_packed
from rlm_rag.distributed.work import Copy
from rlm_rag.holes import write_holes
from rlm_rag.scratch import ScratchFolder


class Copying:
    """What nodes have copies of for the children of one run: a corpus with holes for its texts."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._scratch: ScratchFolder | None = None

    async def of(self, corpus: Corpus) -> Copy:
        """Return what a node that has children over `corpus` needs of it.

        What came as values of Python is whole in the worker from the beginning.

        Raises:
            PackedCorpusError: the temporary folder cannot be written, or is full.
        """
        if corpus.shape != "documents":
            return Copy.of(corpus)
        name = f"{corpus.fingerprint}.holes"
        if corpus.has_holes:
            return Copy(name, corpus.packed_path)
        async with self._turn:
            if self._scratch is None:
                self._scratch = scratch_for_packed()
            path = self._scratch.path / name
            if not path.exists():
                await asyncio.to_thread(_write, corpus, path)
        return Copy(name, path)

    def close(self) -> None:
        """Remove what was made to be copied."""
        if self._scratch is not None:
            self._scratch.close()


def _write(corpus: Corpus, path: Path) -> None:
    with corpus.view() as packed:
        write_holes(packed, path)
