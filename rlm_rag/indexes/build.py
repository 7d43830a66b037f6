"""Building the search index of a packed corpus."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rlm_rag.indexes.definitions import Match, scan, scannable
from rlm_rag.indexes.languages import language_of
from rlm_rag.indexes.postings import WindowPostings
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.terms import raw_words, separated, word_terms
from rlm_rag.indexes.windows import STRIDE_LINES, WINDOW_LINES, window_count, windows_of_line
from rlm_rag.packed import PackedCorpus, line_starts

_TEST_PATH = re.compile(
    r"(?:^|/)(?:tests?|testing|testdata|__tests__|specs?)/"
    r"|(?:^|/)(?:test_[^/]*|conftest\.py|[^/]*[_.-](?:test|tests|spec)\.[^/]*|[^/]*Tests?\.\w+)$"
)


@dataclass(frozen=True, slots=True)
class SearchIndex:
    """What search needs of a corpus: postings, paths, and where names are defined.

    `defined` maps a name's joined term to the windows in which it is defined.
    """

    postings: WindowPostings
    paths: tuple[str, ...]
    tests: frozenset[int]
    line_counts: array[int]
    defined: dict[bytes, array[int]] = field(repr=False)


def build_index(corpus: PackedCorpus, *, weights: Weights) -> SearchIndex:
    """Index every window of a corpus, in the corpus's order.

    Raises:
        RetrievalError: the corpus has more windows than can be numbered.
    """
    postings = WindowPostings()
    defined: dict[bytes, array[int]] = {}
    paths = tuple(corpus.paths())
    for number, path in enumerate(paths):
        _add_document(postings, defined, path, bytes(corpus.content_bytes(number)), weights)
    return SearchIndex(
        postings,
        paths,
        frozenset(number for number, path in enumerate(paths) if _TEST_PATH.search(path)),
        array("Q", map(corpus.line_count, range(len(paths)))),
        defined,
    )


def _add_document(
    postings: WindowPostings,
    defined: dict[bytes, array[int]],
    path: str,
    data: bytes,
    weights: Weights,
) -> None:
    starts = line_starts(data)
    count = window_count(len(starts))
    boosts: list[Counter[bytes]] = [Counter() for _ in range(count)]
    if weights.path:
        path_words = raw_words(path)
        for boost in boosts:
            for word in path_words:
                boost[word] += weights.path
    language = language_of(path)
    if language is not None:
        text = scannable(data)
        matches = [match for match in scan(text, language) if match.kind != "variable"]
        first = postings.window_count
        for match in matches:
            # The scanned text has one line feed more in front.
            line = bisect_right(starts, match.offset - 1)
            for window in windows_of_line(line, len(starts)):
                boosts[window][match.name] += weights.definition
                joined = word_terms(match.name)[:1]
                if joined:
                    defined.setdefault(joined[0], array("I")).append(first + window)
        if weights.scope:
            _boost_scopes(boosts, matches, starts, weights.scope)
    postings.add_document(_window_words(separated(data), starts, count), boosts)


def _window_words(data: bytes, starts: Sequence[int], count: int) -> Iterator[list[bytes]]:
    lines = len(starts)
    for window in range(count):
        first = window * STRIDE_LINES
        last = first + WINDOW_LINES
        yield data[starts[first] : starts[last] if last < lines else len(data)].split()


def _boost_scopes(
    boosts: Sequence[Counter[bytes]], matches: Sequence[Match], starts: Sequence[int], weight: int
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
