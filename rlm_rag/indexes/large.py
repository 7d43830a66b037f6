"""The segment of a document that is too large to be counted at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

from rlm_rag.indexes.build import build_piece, enclosing_after, share_matches
from rlm_rag.indexes.encoded import EncodedSegment
from rlm_rag.indexes.joining import join
from rlm_rag.indexes.kinds import kind_number
from rlm_rag.indexes.pieces import Work
from rlm_rag.indexes.postings import too_many_windows
from rlm_rag.indexes.sections import SpooledSections
from rlm_rag.indexes.segment import MAX_WINDOWS
from rlm_rag.indexes.shares import Scope, Share, share_bytes, shares_of
from rlm_rag.indexes.spooled import SpooledSegment
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.indexes.windows import window_count
from rlm_rag.packed import PackedCorpus
from rlm_rag.scratch import ScratchFolder

Built = EncodedSegment | SpooledSections
"""A segment in memory or in files."""


@contextmanager
def large_segment(work: Work, number: int) -> Iterator[Built]:
    """Give the segment of a document that is counted in shares, in files until this ends.

    Where no file can be written it is built in memory at once.

    Raises:
        RetrievalError: it has too many windows, or a process failed.
    """
    windows = window_count(work.corpus.line_count(number))
    if windows > MAX_WINDOWS:
        raise too_many_windows()
    with ExitStack() as held:
        try:
            scratch = held.enter_context(closing(ScratchFolder(_folder_beside(work.packed_path))))
            sections = SpooledSections(scratch.path, stamp_of(work.weights))
            segment: Built = held.enter_context(closing(sections))
            _join(work, number, scratch.path, sections)
        except OSError:
            segment = build_piece(work.corpus, [number], weights=work.weights)
        yield segment


def _folder_beside(packed_path: Path | None) -> Path | None:
    return None if packed_path is None else packed_path.parent


def _join(work: Work, number: int, folder: Path, joined: SpooledSections) -> None:
    corpus, stamp = work.corpus, stamp_of(work.weights)
    shares = _with_scopes(corpus, number)
    parts: dict[Share, SpooledSegment] = {}
    for share, data in work.done(shares):
        assert isinstance(share, Share)
        parts[share] = SpooledSegment(folder / f"share-{len(parts)}", data, stamp)
    content = corpus.content_bytes(number)
    kind = kind_number(corpus.path(number), content, lines=corpus.line_count(number))
    own = [parts[share] for share in shares]
    join(shares, own, digest=corpus.digest(number), kind=kind, joined=joined)


def _with_scopes(corpus: PackedCorpus, number: int) -> list[Share]:
    """Return the shares of a document, each with the definitions that enclose its beginning."""
    shares: list[Share] = []
    scopes: tuple[Scope, ...] = ()
    most_bytes = share_bytes(corpus.size(number))
    for share in shares_of(corpus, number, most_bytes=most_bytes):
        shares.append(replace(share, scopes=scopes))
        scopes = enclosing_after(scopes, share_matches(corpus, share))
    return shares
