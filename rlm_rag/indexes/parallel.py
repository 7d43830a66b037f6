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

# A segment's builder holds about three times the text that it is given.
_PIECE_BYTES = 32 << 20
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
    sizes = [len(corpus.content_bytes(number)) for number in documents]
    cores = os.cpu_count() or 1
    shared = packed_path is not None and cores > 1 and sum(sizes) >= _SHARED_BYTES
    pieces = _pieces(documents, sizes, max(-(-sum(sizes) // _PIECE_BYTES), cores if shared else 1))
    if not shared or packed_path is None:
        for piece in pieces:
            yield build_segment(corpus, piece, weights=weights)
        return
    with ThreadPoolExecutor(cores) as pool:
        path = packed_path
        yield from pool.map(lambda piece: _in_a_process(path, piece, weights), pieces)


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
