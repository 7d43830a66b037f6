"""Building segments on every core, in pieces, so that memory stays bounded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from array import array
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from rlm_rag.child import command, end_with_parent, environment
from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.build import build_segment
from rlm_rag.indexes.ranking import Weights
from rlm_rag.packed import PackedCorpus

# A piece's builder holds about three times its text; more segments than so many slow queries.
_PIECE_BYTES = 16 << 20
_MOST_PIECES = 16
# Below this, starting another process costs more than it saves.
_SHARED_BYTES = 6 << 20
_MAX_SHOWN_CHARS = 300


def build_segments(
    corpus: PackedCorpus,
    documents: Sequence[int],
    *,
    weights: Weights,
    packed_path: Path | None = None,
) -> Iterator[bytes | bytearray]:
    """Yield segments that hold these documents, each as soon as it is done.

    Other processes help where the corpus can be opened by `packed_path` and is large enough.

    Raises:
        RetrievalError: a document has too many windows, or a process failed.
    """
    all_sizes = corpus.sizes()
    sizes = [all_sizes[number] for number in documents]
    total, cores = sum(sizes), os.cpu_count() or 1
    shared = packed_path is not None and cores > 1 and total >= _SHARED_BYTES
    piece_bytes = max(_PIECE_BYTES, -(-total // _MOST_PIECES))
    pieces = _pieces(documents, sizes, max(-(-total // piece_bytes), cores if shared else 1))
    if shared and packed_path is not None:
        yield from _shared(corpus, pieces, weights=weights, packed_path=packed_path)
        return
    for piece in pieces:
        yield build_segment(corpus, piece, weights=weights)


def _shared(
    corpus: PackedCorpus, pieces: Sequence[Sequence[int]], *, weights: Weights, packed_path: Path
) -> Iterator[bytes | bytearray]:
    """Build every piece, as many at once as there are cores, one of them in this process."""
    with ThreadPoolExecutor((os.cpu_count() or 2) - 1) as pool:
        left = [(pool.submit(_in_a_process, packed_path, one, weights), one) for one in pieces]
        try:
            while left:
                # From the end, what no other process has begun.
                helped, piece = left.pop()
                if helped.cancel():
                    yield build_segment(corpus, piece, weights=weights)
                else:
                    yield helped.result()
                while left and left[0][0].done():
                    yield left.pop(0)[0].result()
        finally:
            for helped, _ in left:
                helped.cancel()


def main(packed_path: str, weights: str) -> None:
    """Build one segment of the documents whose numbers are on stdin, and write it to stdout."""
    end_with_parent()
    documents: array[int] = array("Q", sys.stdin.buffer.read())
    with PackedCorpus.open(packed_path) as corpus:
        built = build_segment(corpus, documents, weights=Weights(**json.loads(weights)))
    sys.stdout.buffer.write(built)
    sys.stdout.buffer.flush()


def _in_a_process(packed_path: Path, documents: Sequence[int], weights: Weights) -> bytes:
    done = subprocess.run(
        command(__name__, str(packed_path.absolute()), json.dumps(asdict(weights))),
        input=array("Q", documents).tobytes(),
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


def _pieces(documents: Sequence[int], sizes: Sequence[int], count: int) -> list[Sequence[int]]:
    """Cut the documents into as many pieces of about the same size, or fewer, none empty."""
    total = sum(sizes) + len(sizes)
    pieces: list[Sequence[int]] = []
    first = done = 0
    border = total
    for number, size in enumerate(sizes, start=1):
        done += size + 1
        if done * count >= border:
            pieces.append(documents[first:number])
            first, border = number, total * (done * count // total + 1)
    return pieces
