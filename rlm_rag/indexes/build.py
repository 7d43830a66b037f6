"""Analysing the documents of a packed corpus into segments."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from rlm_rag.indexes.definitions import Match, scan, scannable
from rlm_rag.indexes.languages import language_of
from rlm_rag.indexes.postings import SegmentBuilder
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.indexes.terms import raw_words, separated, word_terms
from rlm_rag.indexes.windows import STRIDE_LINES, WINDOW_LINES, window_count, windows_of_line
from rlm_rag.lines import line_starts
from rlm_rag.packed import PackedCorpus


def build_segment(corpus: PackedCorpus, documents: Iterable[int], *, weights: Weights) -> bytearray:
    """Index the documents of these numbers, in this order, as one segment.

    Raises:
        RetrievalError: they have more windows than can be numbered.
    """
    builder = SegmentBuilder()
    for number in documents:
        data = bytes(corpus.content_bytes(number))
        _add_document(builder, corpus.digest(number), corpus.path(number), data, weights)
    return builder.encode(stamp_of(weights))


def _add_document(
    builder: SegmentBuilder, digest: bytes, path: str, data: bytes, weights: Weights
) -> None:
    starts = line_starts(data)
    count = window_count(len(starts))
    path_words = Counter(raw_words(path)) if weights.path else Counter[bytes]()
    from_path = {word: times * weights.path for word, times in path_words.items()}
    boosts = [defaultdict(int, from_path) for _ in range(count)]
    defined: list[tuple[bytes, int]] = []
    language = language_of(path)
    if language is not None:
        text = scannable(data)
        matches = [match for match in scan(text, language) if match.kind != "variable"]
        for match in matches:
            # The scanned text has one line feed more in front.
            line = bisect_right(starts, match.offset - 1)
            joined = word_terms(match.name)[:1]
            for window in windows_of_line(line, len(starts)):
                boosts[window][match.name] += weights.definition
                defined += ((name, window) for name in joined)
        if weights.scope:
            _boost_scopes(boosts, matches, starts, weights.scope)
    builder.add_document(digest, _window_words(separated(data), starts, count), boosts, defined)


def _window_words(data: bytes, starts: Sequence[int], count: int) -> Iterator[list[bytes]]:
    lines = len(starts)
    for window in range(count):
        first = window * STRIDE_LINES
        last = first + WINDOW_LINES
        yield data[starts[first] : starts[last] if last < lines else len(data)].split()


def _boost_scopes(
    boosts: Sequence[defaultdict[bytes, int]],
    matches: Sequence[Match],
    starts: Sequence[int],
    weight: int,
) -> None:
    """Count, for each window, the names of the definitions that enclose its first line."""
    enclosing: list[Match] = []
    upcoming = 0
    for number, boost in enumerate(boosts):
        first = starts[number * STRIDE_LINES]
        while upcoming < len(matches) and matches[upcoming].offset - 1 < first:
            match = matches[upcoming]
            while enclosing and enclosing[-1].indent >= match.indent:
                enclosing.pop()
            enclosing.append(match)
            upcoming += 1
        for match in enclosing:
            boost[match.name] += weight
