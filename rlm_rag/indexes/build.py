"""Analysing the documents of a packed corpus into segments."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from rlm_rag.indexes.definitions import Match, scan, scannable
from rlm_rag.indexes.kinds import kind_number
from rlm_rag.indexes.languages import language_of
from rlm_rag.indexes.line_texts import line_ends
from rlm_rag.indexes.postings import SegmentBuilder
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.segment import FAR
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.indexes.terms import raw_words, separated
from rlm_rag.indexes.windows import STRIDE_LINES, window_borders, window_count, windows_of_line
from rlm_rag.packed import PackedCorpus

Boost = tuple[bytes, range, int]

_SPACE = 0x20


def build_segment(corpus: PackedCorpus, documents: Iterable[int], *, weights: Weights) -> bytearray:
    """Index the documents of these numbers, in this order, as one segment.

    Raises:
        RetrievalError: they have more windows than can be numbered.
    """
    builder = SegmentBuilder()
    for number in documents:
        data = bytes(corpus.content_bytes(number))
        path = corpus.path(number)
        starts = _line_borders(data)
        boosts = list(_path_boosts(path, len(starts) - 1, weights.path))
        defined: list[tuple[bytes, range]] = []
        language = language_of(path, data)
        if language is not None:
            # The scanned text has one line feed more in front.
            matches = list(scan(scannable(data), language, variables=False))
            defined = list(_defined(matches, starts))
            if weights.definition:
                boosts += ((name, windows, weights.definition) for name, windows in defined)
            if weights.scope:
                boosts += _scope_boosts(matches, starts, weights.scope)
        words = separated(data)
        builder.add_document(
            corpus.digest(number),
            _stretches(words, starts),
            _line_words(words, starts),
            boosts,
            defined,
            kind=kind_number(path, data, lines=len(starts) - 1),
            offsets=_stretch_offsets(starts),
        )
    return builder.encode(stamp_of(weights))


def _line_borders(data: bytes) -> array[int]:
    """Return where each line begins, and where the last one ends."""
    borders: array[int] = array("Q", [0] if data else [])
    borders.frombytes((line_ends(data) + 1).astype("u8").tobytes())
    if borders and borders[-1] < len(data):
        borders.append(len(data))
    return borders


def _stretch_offsets(starts: array[int]) -> bytes:
    """Return where the first two stretches of each window begin, as 32-bit numbers."""
    borders = window_borders(len(starts) - 1)[:-2]
    return array("I", [min(starts[border], FAR) for border in borders]).tobytes()


def _stretches(words: bytes, starts: Sequence[int]) -> Iterator[list[bytes]]:
    for first, last in pairwise(window_borders(len(starts) - 1)):
        yield words[starts[first] : starts[last]].split()


def _line_words(words: bytes, starts: array[int]) -> bytes:
    """Return how many words each line has, as 32-bit numbers."""
    if not words:
        return b""
    begins = np.frombuffer(words, np.uint8) != _SPACE
    begins[1:] &= ~begins[:-1]
    borders = np.frombuffer(starts, np.int64)
    return np.add.reduceat(begins, borders[:-1], dtype=np.uint32).tobytes()


def _path_boosts(path: str, line_count: int, weight: int) -> Iterator[Boost]:
    windows = range(window_count(line_count))
    for word, times in Counter(raw_words(path)).items() if weight else ():
        yield word, windows, times * weight


def _defined(matches: Sequence[Match], starts: Sequence[int]) -> Iterator[tuple[bytes, range]]:
    for match in matches:
        line = bisect_right(starts, match.offset - 1)
        yield match.name, windows_of_line(line, len(starts) - 1)


def _scope_boosts(matches: Sequence[Match], starts: Sequence[int], weight: int) -> Iterator[Boost]:
    """Count, for each window, the names of the definitions that enclose its first line."""
    enclosing: list[Match] = []
    upcoming = 0
    for number in range(window_count(len(starts) - 1)):
        first = starts[number * STRIDE_LINES]
        while upcoming < len(matches) and matches[upcoming].offset - 1 < first:
            match = matches[upcoming]
            while enclosing and enclosing[-1].indent >= match.indent:
                enclosing.pop()
            enclosing.append(match)
            upcoming += 1
        for match in enclosing:
            yield match.name, range(number, number + 1), weight
