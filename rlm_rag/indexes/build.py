"""Analysing the documents of a packed corpus into segments."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rlm_rag.indexes.definitions import Match, scan, scannable
from rlm_rag.indexes.encoded import EncodedSegment
from rlm_rag.indexes.kinds import kind_number
from rlm_rag.indexes.languages import language_of
from rlm_rag.indexes.line_texts import line_ends
from rlm_rag.indexes.postings import Marks, SegmentBuilder
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.segment import FAR
from rlm_rag.indexes.shares import Piece, Scope, Share
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.indexes.stretches import windows_of_lines
from rlm_rag.indexes.terms import raw_words, separated
from rlm_rag.indexes.windows import STRIDE_LINES, window_borders, windows_of_line
from rlm_rag.packed import PackedCorpus
from rlm_rag.traits import HEAD_BYTES

_SPACE = 0x20
# No form of a definition that begins in a share is looked for longer than this after it.
_FORM_BYTES = 1 << 13
# How much of the mapped corpus lies in memory for it.
_READ_BYTES = 1 << 20
# The words of so much text are told apart at a time.
_SPLIT_BYTES = 1 << 19


def build_piece(corpus: PackedCorpus, piece: Piece, *, weights: Weights) -> EncodedSegment:
    """Index documents in this order, or a share of one, as one segment.

    Raises:
        RetrievalError: they have more windows than can be numbered.
    """
    builder = SegmentBuilder()
    if isinstance(piece, Share):
        _add_share(builder, corpus, piece, weights)
    else:
        _add_documents(builder, corpus, piece, weights)
    return builder.encoded(stamp_of(weights))


def _add_documents(
    builder: SegmentBuilder, corpus: PackedCorpus, documents: Sequence[int], weights: Weights
) -> None:
    read_bytes = given_back = 0
    for at, number in enumerate(documents, start=1):
        data = bytes(corpus.content_bytes(number))
        read_bytes += len(data)
        if read_bytes > _READ_BYTES or at == len(documents):
            corpus.give_back(documents[given_back:at])
            read_bytes, given_back = 0, at
        language = language_of(corpus.path(number), data)
        matches: list[Match] = []
        if language is not None:
            # The scanned text has one line feed more in front.
            matches = list(scan(scannable(data), language, variables=False))
        starts = _line_borders(data, line_ends(data))
        lines = _Lines.of(starts, first=0, total=max(0, len(starts) - 1), begun=0)
        _add(builder, corpus, number, data, lines, matches, weights)


def _add_share(
    builder: SegmentBuilder, corpus: PackedCorpus, share: Share, weights: Weights
) -> None:
    """Add the windows that a share has some lines of.

    What counts in a window beside its words counts where the window begins; a definition, where
    its name stands.
    """
    data = bytes(corpus.content_bytes(share.document)[share.begin : share.end])
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == share.line_end[0])
    first = share.first_line - share.begins_within
    starts = _line_borders(data, ends)
    lines = _Lines.of(
        starts, first=first, total=share.total_lines, begun=share.first_line, place=share.begin
    )
    matches = share_matches(corpus, share)
    _add(builder, corpus, share.document, data, lines, matches, weights, share.scopes)


def share_matches(corpus: PackedCorpus, share: Share) -> list[Match]:
    """Return the definitions whose names stand in a share, the offsets as in a scan of it."""
    content = corpus.content_bytes(share.document)
    language = language_of(corpus.path(share.document), bytes(content[:HEAD_BYTES]))
    if language is None:
        return []
    text = bytes(content[share.begin : share.end + _FORM_BYTES])
    if share.line_end != b"\n":
        text = text.replace(share.line_end, b"\n")
    text = (b" " if share.begins_within else b"\n") + text
    last = share.end - share.begin
    return [one for one in scan(text, language, variables=False) if one.offset <= last]


def enclosing_after(scopes: Sequence[Scope], matches: Iterable[Match]) -> tuple[Scope, ...]:
    """Return which definitions enclose what follows `matches`, which follow what `scopes` do."""
    enclosing = list(scopes)
    for match in matches:
        _enter(enclosing, match)
    return tuple(enclosing)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Lines of a document of `total` lines, the first of them number `first`, counted from 0.

    `starts` are where in their text each begins, and where the last ends; `begun` is the first
    that begins there rather than before, `place` where their text begins in the document's.
    """

    starts: array[int]
    first: int
    total: int
    begun: int
    place: int
    windows: range
    """The document's windows that have some of them."""

    @classmethod
    def of(
        cls, starts: array[int], *, first: int, total: int, begun: int, place: int = 0
    ) -> _Lines:
        """Take lines of a document, and find its windows that have some of them."""
        windows = range(0)
        if len(starts) > 1:
            last = first + len(starts) - 1
            windows = range(
                windows_of_line(first + 1, total).start, windows_of_line(last, total).stop
            )
        return cls(starts, first, total, begun, place, windows)

    @property
    def end(self) -> int:
        """The number of the line that would follow."""
        return self.first + len(self.starts) - 1

    def begun_windows(self) -> range:
        """Return the document's windows that begin in them."""
        first, end = -(-self.begun // STRIDE_LINES), -(-self.end // STRIDE_LINES)
        return range(max(first, self.windows.start), min(end, self.windows.stop))

    def borders(self) -> list[int]:
        """Return, of these, the lines between which their windows are stretches.

        The first stands for a line before them, and the one that would follow for any after.
        """
        borders = window_borders(self.total, self.windows)
        if self.end - self.first == self.total:
            return borders
        return [min(max(border, self.first), self.end) - self.first for border in borders]

    def own_numbers(self, windows: range) -> range:
        """Return the numbers of windows of the document among those that have some of these."""
        base = self.windows.start
        return range(windows.start - base, windows.stop - base)


def _add(
    builder: SegmentBuilder,
    corpus: PackedCorpus,
    number: int,
    data: bytes,
    lines: _Lines,
    matches: Sequence[Match],
    weights: Weights,
    scopes: Sequence[Scope] = (),
) -> None:
    """Add a document, or a share of it: `data` are its lines, in which `matches` are defined."""
    path, starts, borders = corpus.path(number), lines.starts, lines.borders()
    boosts = [_path_boosts(path, lines, weights.path)] if weights.path else []
    defined = _defined(matches, lines) if matches else None
    if defined is not None and weights.definition:
        boosts.append(defined._replace(times=weights.definition))
    if weights.scope and (matches or scopes):
        boosts.append(_scope_boosts(matches, lines, weights.scope, scopes))
    words = separated(data)
    builder.add_document(
        corpus.digest(number),
        _split(words),
        _line_words(words, starts),
        [marks for marks in boosts if marks.words],
        defined,
        kind=kind_number(path, data, lines=lines.total),
        offsets=_stretch_offsets(lines, borders),
        borders=borders,
    )


def _line_borders(data: bytes, ends: np.ndarray[tuple[int], np.dtype[np.intp]]) -> array[int]:
    """Return where each line begins, and where the last one ends."""
    borders: array[int] = array("Q", [0] if data else [])
    borders.frombytes((ends + 1).astype("u8").tobytes())
    if borders and borders[-1] < len(data):
        borders.append(len(data))
    return borders


def _stretch_offsets(lines: _Lines, borders: Sequence[int]) -> bytes:
    """Return where the first two stretches of each window begin, as 32-bit numbers."""
    starts, place = lines.starts, lines.place
    return array("I", [min(place + starts[border], FAR) for border in borders[:-2]]).tobytes()


def _split(words: bytes) -> Iterator[list[bytes]]:
    """Yield raw words in their order, so many at a time that few are held beside their text."""
    at = 0
    while at < len(words):
        end = words.find(b" ", at + _SPLIT_BYTES)
        end = end if end >= 0 else len(words)
        yield words[at:end].split()
        at = end


def _line_words(words: bytes, starts: array[int]) -> bytes:
    """Return how many words each line has, as 32-bit numbers."""
    if not words:
        return b""
    begins = np.frombuffer(words, np.uint8) != _SPACE
    begins[1:] &= ~begins[:-1]
    borders = np.frombuffer(starts, np.int64)
    return np.add.reduceat(begins, borders[:-1], dtype=np.uint32).tobytes()


def _path_boosts(path: str, lines: _Lines, weight: int) -> Marks:
    windows = lines.own_numbers(lines.begun_windows())
    times = Counter(raw_words(path)) if windows else {}
    return Marks(
        list(times), windows.start, len(windows), [weight * count for count in times.values()]
    )


def _defined(matches: Sequence[Match], lines: _Lines) -> Marks:
    offsets = np.array([match.offset for match in matches], np.int64) - 1
    places = np.frombuffer(lines.starts, np.int64).searchsorted(offsets, side="right")
    firsts, sizes = windows_of_lines(places + lines.first, lines.total)
    return Marks([match.name for match in matches], firsts - lines.windows.start, sizes)


def _scope_boosts(
    matches: Sequence[Match], lines: _Lines, weight: int, scopes: Sequence[Scope]
) -> Marks:
    """Count, for each window, the names of the definitions that enclose its first line."""
    enclosing = list(scopes)
    upcoming = 0
    windows = lines.begun_windows()
    names: list[bytes] = []
    numbers: list[int] = []
    for number, own in zip(windows, lines.own_numbers(windows), strict=True):
        first = lines.starts[number * STRIDE_LINES - lines.first]
        while upcoming < len(matches) and matches[upcoming].offset - 1 < first:
            _enter(enclosing, matches[upcoming])
            upcoming += 1
        names += [scope.name for scope in enclosing]
        numbers += [own] * len(enclosing)
    return Marks(names, numbers, 1, weight)


def _enter(enclosing: list[Scope], match: Match) -> None:
    while enclosing and enclosing[-1].indent >= match.indent:
        enclosing.pop()
    enclosing.append(Scope(match.indent, match.name))
