"""The search index of a corpus: the segments it has already, and those that it still needs."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlm_rag.indexes.large import Built
from rlm_rag.indexes.live import Defined, LivePostings, Place, places_of
from rlm_rag.indexes.parallel import build_segments
from rlm_rag.indexes.piece_helper import PieceHelpers
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.segment import Segment
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.indexes.store import SegmentStore
from rlm_rag.packed import PackedCorpus

# More segments than this, of less text than that, become one at the next change.
_MAX_SMALL_SEGMENTS = 8
_SMALL_BYTES = 1 << 20

Progress = Callable[[int, int], object]
"""Takes how many documents are indexed by now, and how many there are."""


@dataclass(frozen=True, slots=True)
class SearchIndex:
    """What search needs of a corpus: postings, paths, and where names are defined.

    `defined` gives the windows in which a name, by its joined term, is defined; `segments` are
    what it all lies in, and `added` is how many documents had to be indexed for it.
    """

    postings: LivePostings
    paths: tuple[str, ...]
    line_counts: array[int]
    defined: Defined = field(repr=False)
    segments: tuple[Segment, ...] = field(repr=False)
    added: int = 0


def build_index(
    corpus: PackedCorpus,
    *,
    weights: Weights,
    store: SegmentStore | None = None,
    packed_path: Path | None = None,
    helpers: PieceHelpers | None = None,
    on_progress: Progress | None = None,
) -> SearchIndex:
    """Index every window of a corpus that the store does not have yet.

    Only documents that are new or were changed cost anything. Segments that hold little, or
    mostly what is gone, are made anew on that occasion, from the corpus itself. Each segment is
    kept as soon as it is built, so that a build that was killed goes on where it was.

    Raises:
        RetrievalError: a document has more windows than can be numbered, or a process failed.
    """
    store = store or SegmentStore(None, stamp=stamp_of(weights))
    digests = corpus.digests()
    segments = store.open()
    known = places_of(segments)
    missing = [number for number, digest in enumerate(digests) if digest not in known]
    if missing:
        worn = _worn(corpus, digests, known, segments)
        wanted = _wanted(digests, known, worn)
        built = build_segments(
            corpus, wanted, weights=weights, packed_path=packed_path, helpers=helpers
        )
        have, told = len(digests) - len(wanted), on_progress or _untold
        added = _added(store, built, told, have=have, of=len(digests))
        store.remove(segments[number] for number in worn)
        segments = [one for number, one in enumerate(segments) if number not in worn] + added
        known = places_of(segments)
    places = [known[digest] for digest in digests]
    return _index_of(corpus, segments, places, added=len(missing))


def _index_of(
    corpus: PackedCorpus, segments: Sequence[Segment], places: Sequence[Place], *, added: int
) -> SearchIndex:
    postings = LivePostings(segments, places)
    return SearchIndex(
        postings,
        tuple(corpus.paths()),
        array("Q", corpus.line_counts()),
        Defined(postings),
        tuple(segments),
        added,
    )


def _untold(_done: int, _total: int) -> None:
    """Tell nobody."""


def _added(
    store: SegmentStore, built: Iterable[Built], told: Progress, *, have: int, of: int
) -> list[Segment]:
    """Keep segments as they are built, and tell how far that is."""
    told(have, of)
    added: list[Segment] = []
    for data in built:
        added.append(store.add(data))
        # Not beside the next one, which is built or comes from elsewhere now.
        del data
        have += len(added[-1].numbers("window_counts"))
        told(have, of)
    return added


def _wanted(digests: Sequence[bytes], known: dict[bytes, Place], worn: set[int]) -> list[int]:
    """Return the documents that no segment holds, or one that is made anew."""
    return [
        number
        for number, digest in enumerate(digests)
        if digest not in known or known[digest][0] in worn
    ]


def _worn(
    corpus: PackedCorpus,
    digests: Sequence[bytes],
    known: dict[bytes, Place],
    segments: Sequence[Segment],
) -> set[int]:
    """Return the segments that are better made anew."""
    held = [0] * len(segments)
    windows = [0] * len(segments)
    counts = [segment.numbers("window_counts") for segment in segments]
    for size, digest in zip(corpus.sizes(), digests, strict=True):
        place = known.get(digest)
        if place is not None:
            segment, document = place
            held[segment] += size
            windows[segment] += counts[segment][document]
    worn = {number for number, count in enumerate(counts) if 2 * windows[number] < sum(count)}
    small = {number for number, size in enumerate(held) if size < _SMALL_BYTES} - worn
    return worn | small if len(small) >= _MAX_SMALL_SEGMENTS else worn
