"""Building the segments of pieces of a corpus on every core."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rlm_rag.indexes.build import build_piece
from rlm_rag.indexes.encoded import EncodedSegment
from rlm_rag.indexes.piece_helper import PieceHelpers
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.shares import Piece
from rlm_rag.packed import PackedCorpus


@dataclass(frozen=True, slots=True)
class Work:
    """What builds pieces of a corpus; other processes help where they can open `packed_path`.

    `helpers` may be started before; when pieces are done they are ended.
    """

    corpus: PackedCorpus
    weights: Weights
    packed_path: Path | None = None
    helpers: PieceHelpers | None = None

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
        helpers = self.helpers or PieceHelpers(self.packed_path, self.weights)
        with closing(helpers), ThreadPoolExecutor(others) as pool:
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
