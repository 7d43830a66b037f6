"""Building the segments of pieces of a corpus on every core."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rlm_rag.indexes.build import build_piece
from rlm_rag.indexes.encoded import EncodedSegment
from rlm_rag.indexes.piece_helper import PieceHelpers
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.shares import Piece
from rlm_rag.packed import PackedCorpus

Helped = tuple[Future[EncodedSegment], Piece]
"""A piece, and what another process will have built of it."""


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
    ) -> Iterator[tuple[Piece, EncodedSegment]]:
        """Yield every piece with its segment, each as soon as it is done.

        Raises:
            RetrievalError: a piece has too many windows, or a process failed.
        """
        others = min((os.cpu_count() or 1) - 1, len(pieces) - 1)
        if alone or others < 1 or self.packed_path is None:
            yield from self._done_alone(pieces)
            return
        helpers = self.helpers or PieceHelpers(self.packed_path, self.weights)
        with closing(helpers):
            started = helpers.start(others)
            if started:
                yield from self._done_with(helpers, started, pieces)
            else:
                # One process does it too.
                yield from self._done_alone(pieces)

    def _done_alone(self, pieces: Sequence[Piece]) -> Iterator[tuple[Piece, EncodedSegment]]:
        for piece in pieces:
            yield piece, self._built(piece)

    def _done_with(
        self, helpers: PieceHelpers, count: int, pieces: Sequence[Piece]
    ) -> Iterator[tuple[Piece, EncodedSegment]]:
        with ThreadPoolExecutor(count) as pool:
            left = [(pool.submit(helpers.built, one), one) for one in pieces]
            try:
                own = _taken(left[-1:])
                while left:
                    if own is None:
                        # Long since begun, so that it is done soon.
                        helped, piece = left.pop(0)
                        yield piece, helped.result()
                    else:
                        left.remove(own)
                        yield own[1], self._built(own[1])
                    while left and left[0][0].done():
                        helped, piece = left.pop(0)
                        yield piece, helped.result()
                    # What is slow lies near what is slow, and so is shared out.
                    own = _taken(left)
            finally:
                for helped, _ in left:
                    helped.cancel()
                helpers.kill()

    def _built(self, piece: Piece) -> EncodedSegment:
        return build_piece(self.corpus, piece, weights=self.weights)


def _taken(left: Sequence[Helped]) -> Helped | None:
    """Take back the first piece that no other process has begun."""
    return next((one for one in left if one[0].cancel()), None)
