"""Building the segments of pieces of a corpus on every core."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from rlm_rag.child import command, end_with_parent, environment
from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.build import build_segment, build_share
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.shares import Share
from rlm_rag.packed import PackedCorpus

Piece = Sequence[int] | Share
"""Documents by their numbers, or a share of one."""

_MAX_SHOWN_CHARS = 300


@dataclass(frozen=True, slots=True)
class Work:
    """What builds pieces of a corpus; other processes help where they can open `packed_path`."""

    corpus: PackedCorpus
    weights: Weights
    packed_path: Path | None = None

    def done(
        self, pieces: Sequence[Piece], *, alone: bool = False
    ) -> Iterator[tuple[Piece, bytes | bytearray]]:
        """Yield every piece with its segment, each as soon as it is done.

        Raises:
            RetrievalError: a piece has too many windows, or a process failed.
        """
        others = (os.cpu_count() or 1) - 1
        if alone or not others or self.packed_path is None:
            for piece in pieces:
                yield piece, self._built(piece)
            return
        with ThreadPoolExecutor(others) as pool:
            left = [(pool.submit(self._in_a_process, one), one) for one in pieces]
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

    def _built(self, piece: Piece) -> bytearray:
        if isinstance(piece, Share):
            return build_share(self.corpus, piece, weights=self.weights)
        return build_segment(self.corpus, piece, weights=self.weights)

    def _in_a_process(self, piece: Piece) -> bytes:
        assert self.packed_path is not None
        told = json.dumps(asdict(self.weights))
        done = subprocess.run(
            command(__name__, str(self.packed_path.absolute()), told),
            input=json.dumps(
                piece.to_record() if isinstance(piece, Share) else list(piece)
            ).encode(),
            capture_output=True,
            env=environment(),
            check=False,
        )
        if done.returncode == 0:
            return done.stdout
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        last = f": {said[-1][:_MAX_SHOWN_CHARS]}" if said else ""
        raise RetrievalError(
            f"a part of the index could not be built (exit status {done.returncode}){last}",
            hint="load a part of it: give a folder, or --include and --exclude globs",
        )


def main(packed_path: str, weights: str) -> None:
    """Build the segment of the piece that JSON on stdin tells of, and write it to stdout."""
    end_with_parent()
    told = json.load(sys.stdin)
    piece: Piece = Share.from_record(told) if isinstance(told, dict) else told
    with PackedCorpus.open(packed_path) as corpus:
        work = Work(corpus, Weights(**json.loads(weights)))
        ((_, built),) = work.done([piece], alone=True)
    sys.stdout.buffer.write(built)
    sys.stdout.buffer.flush()
