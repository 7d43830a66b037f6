"""Building the segments of pieces of a corpus on every core."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from rlm_rag.indexes.build import build_piece
from rlm_rag.indexes.encoded import EncodedSegment
from rlm_rag.indexes.piece_helper import PieceHelper
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.shares import Piece
from rlm_rag.packed import PackedCorpus


@dataclass(frozen=True, slots=True)
class Work:
    """What builds pieces of a corpus; other processes help where they can open `packed_path`."""

    corpus: PackedCorpus
    weights: Weights
    packed_path: Path | None = None

    def done(
        self, pieces: Sequence[Piece], *, alone: bool = False
    ) -> Iterator[tuple[Piece, bytearray | EncodedSegment]]:
        """Yield every piece with its segment, each as soon as it is done.

        Raises:
            RetrievalError: a piece has too many windows, or a process failed.
        """
        others = (os.cpu_count() or 1) - 1
        if alone or not others or self.packed_path is None:
            for piece in pieces:
                yield piece, self._built(piece)
            return
        with ExitStack() as ended, ThreadPoolExecutor(others) as pool:
            helpers = _Helpers(self.packed_path, self.weights)
            ended.callback(helpers.end)
            helpers.start(min(others, len(pieces) - 1))
            left = [(pool.submit(helpers.built, one), one) for one in pieces]
            try:
                while left:
                    # From the end, what no other process has begun.
                    helped, piece = left.pop()
                    if helped.cancel():
                        yield piece, self._built(piece)
                    else:
                        yield piece, helped.result()
                    while left and left[0][0].done():
                        helped, piece = left.pop(0)
                        yield piece, helped.result()
            finally:
                for helped, _ in left:
                    helped.cancel()
                helpers.kill()

    def _built(self, piece: Piece) -> EncodedSegment:
        return build_piece(self.corpus, piece, weights=self.weights)


class _Helpers:
    """Processes that build pieces, each for one thread at a time."""

    def __init__(self, packed_path: Path, weights: Weights) -> None:
        self._packed_path = packed_path
        self._weights = weights
        self._all: list[PieceHelper] = []
        self._idle: SimpleQueue[PieceHelper] = SimpleQueue()

    def start(self, count: int) -> None:
        """Start so many; OSError where that cannot be."""
        for _ in range(count):
            self._all.append(PieceHelper(self._packed_path, self._weights))
            self._idle.put(self._all[-1])

    def built(self, piece: Piece) -> bytearray:
        """Return the segment of a piece, by a process that has nothing to do."""
        helper = self._idle.get()
        segment = helper.built(piece)
        self._idle.put(helper)
        return segment

    def kill(self) -> None:
        """End them all, whatever they are doing."""
        for helper in self._all:
            helper.kill()

    def end(self) -> None:
        """Let go of them all; nobody waits for them any more."""
        for helper in self._all:
            helper.end()
