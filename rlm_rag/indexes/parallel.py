"""Building the segments of a corpus in pieces, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rlm_rag.indexes.large import Built, large_segment
from rlm_rag.indexes.piece_helper import PieceHelpers, useful_cores
from rlm_rag.indexes.pieces import Work
from rlm_rag.indexes.ranking import Weights
from rlm_rag.packed import PackedCorpus

# A piece's builder holds about three times its text; more segments than so many slow queries.
_PIECE_BYTES = 16 << 20
_MOST_PIECES = 16
# What is indexed here while another process starts.
_AHEAD_BYTES = 2 << 20
# A larger document is counted in shares: it would be a piece of its own, held several times over.
_LARGE_BYTES = 32 << 20


def build_segments(
    corpus: PackedCorpus,
    documents: Sequence[int],
    *,
    weights: Weights,
    packed_path: Path | None = None,
    helpers: PieceHelpers | None = None,
) -> Iterator[Built]:
    """Yield segments that hold these documents, each as soon as it is done.

    Other processes help where the corpus can be opened by `packed_path` and is large enough,
    `helpers` where they were started before. A large document's segment lies in files, and is
    there until the next one is asked for.

    Raises:
        RetrievalError: a document has too many windows, or a process failed.
    """
    all_sizes = corpus.sizes()
    large = [number for number in documents if all_sizes[number] > _LARGE_BYTES]
    if large:
        documents = [number for number in documents if all_sizes[number] <= _LARGE_BYTES]
    sizes = [all_sizes[number] for number in documents]
    total = sum(sizes)
    work = Work(corpus, weights, packed_path, helpers)
    piece_bytes = max(_PIECE_BYTES, -(-total // _MOST_PIECES))
    cores = useful_cores(total)
    shared = packed_path is not None and cores > 1
    count, ahead_bytes = -(-total // piece_bytes), 0
    if shared:
        # As many for each core, so that none is left over.
        count, ahead_bytes = -(-count // cores) * cores, 0 if helpers else _AHEAD_BYTES
    pieces = _pieces(documents, sizes, count, ahead_bytes=ahead_bytes)
    for _, built in work.done(pieces, alone=not shared):
        yield built
    for number in large:
        with large_segment(work, number) as segment:
            yield segment


def _pieces(
    documents: Sequence[int], sizes: Sequence[int], count: int, *, ahead_bytes: int = 0
) -> list[Sequence[int]]:
    """Cut the documents into as many pieces of about the same size, or fewer, none empty.

    The last has so much more than the others.
    """
    total = max(1, sum(sizes) + len(sizes) - ahead_bytes)
    pieces: list[Sequence[int]] = []
    first = done = 0
    following = 1
    for number, size in enumerate(sizes, start=1):
        done += size + 1
        if following < count and done * count >= total * following:
            pieces.append(documents[first:number])
            first, following = number, done * count // total + 1
    return [*pieces, documents[first:]] if first < len(documents) else pieces
