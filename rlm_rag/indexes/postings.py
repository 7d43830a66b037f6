"""Counting the words of windows into a segment, by raw word.

Counting happens on raw words, which are cut at C speed; what a raw word means is worked out
once for each distinct one. A query gathers the raw words of each of its terms.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count

import numpy as np
from numpy.typing import NDArray

from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.segment import DEFINED, MAX_COUNT, MAX_WINDOWS, TERMS, WORDS, encode_segment
from rlm_rag.indexes.tables import table_parts
from rlm_rag.indexes.terms import word_terms
from rlm_rag.indexes.windows import WINDOW_LINES

_PIECE_WINDOWS = 4096
_8, _32 = np.uint64(8), np.uint64(32)


class SegmentBuilder:
    """Collects the postings of documents, windows numbered in the order they are added in.

    What is collected is one row for each distinct word of a window; the rows are sorted by
    word in the end, all at once.
    """

    def __init__(self) -> None:
        self._digests = bytearray()
        self._window_counts: array[int] = array("I")
        # Of each window: how many words it has, and how many rows come before its boosts.
        self._word_counts: array[int] = array("I")
        self._counted_rows: array[int] = array("I")
        self._all_rows: array[int] = array("I")
        self._numbers: defaultdict[bytes, int] = defaultdict(count().__next__)
        self._row_words: array[int] = array("I")
        self._row_counts: array[int] = array("I")
        self._defined: dict[bytes, array[int]] = {}

    def add_document(
        self,
        digest: bytes,
        windows: Iterable[list[bytes]],
        boosts: Sequence[Mapping[bytes, int]],
        defined: Iterable[tuple[bytes, int]] = (),
    ) -> None:
        """Add a document's windows: the raw words of each, and what is added to their counts.

        `boosts` is aligned with `windows`; a boosted word counts as if it occurred so often
        more, and does not lengthen the window. `defined` are names, as terms, with the window
        of the document in which each is defined.

        Raises:
            RetrievalError: there are more windows than can be numbered.
        """
        first = len(self._word_counts)
        if first + len(boosts) > MAX_WINDOWS:
            raise RetrievalError(
                f"a document has more than {MAX_WINDOWS:,} windows of {WINDOW_LINES} lines",
                hint="load a part of it: give a folder, or --include and --exclude globs",
            )
        for name, window in defined:
            self._defined.setdefault(name, array("I")).append(first + window)
        number_of = self._numbers.__getitem__
        for words, boost in zip(windows, boosts, strict=True):
            counts = Counter(words)
            self._row_words.extend(map(number_of, counts))
            self._row_counts.extend(counts.values())
            self._word_counts.append(len(words))
            self._counted_rows.append(len(counts))
            if boost:
                self._row_words.extend(map(number_of, boost))
                self._row_counts.extend(boost.values())
            self._all_rows.append(len(counts) + len(boost))
        self._digests += digest
        self._window_counts.append(len(boosts))

    def encode(self, stamp: bytes) -> bytearray:
        """Write what was added as a segment."""
        words = sorted(self._numbers)
        # Where in the sorted words each is that was numbered as it came.
        ranks = np.empty(len(words), np.uint64)
        ranks[np.fromiter(map(self._numbers.__getitem__, words), np.int64, len(words))] = np.arange(
            len(words), dtype=np.uint64
        )
        variants, extra = _terms_of(words)
        keys, window_lengths = self._rows(ranks, extra)
        numbers, postings = _merged(keys)
        sections: dict[str, bytes | bytearray] = {
            "digests": self._digests,
            "window_counts": self._window_counts.tobytes(),
            "window_lengths": window_lengths.astype(np.uint32).tobytes(),
            "document_lengths": _sums(
                window_lengths, np.frombuffer(self._window_counts, np.uint32)
            ).tobytes(),
        }
        ends = np.cumsum(np.bincount(numbers, minlength=len(words)))
        for name, parts in (
            (WORDS, table_parts(words, ends.astype(np.uint32).tobytes(), postings.tobytes())),
            (TERMS, _parts(variants)),
            (DEFINED, _parts(self._defined)),
        ):
            sections.update((f"{name}.{part}", data) for part, data in parts.items())
        return encode_segment(stamp, sections)

    def _rows(
        self, ranks: NDArray[np.uint64], extra: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Return `word << 32 | window << 8 | count` of each row, and the windows' lengths.

        `extra` are the terms that a word has beyond one. By pieces, so that the whole is held
        once alone.
        """
        sizes = np.frombuffer(self._all_rows, np.uint32).astype(np.int64)
        counted = np.frombuffer(self._counted_rows, np.uint32)
        ends = np.cumsum(sizes)
        keys = np.empty(len(self._row_words), np.uint64)
        lengths = np.frombuffer(self._word_counts, np.uint32).astype(np.int64)
        for first in range(0, len(sizes), _PIECE_WINDOWS):
            piece = slice(first, first + _PIECE_WINDOWS)
            last = first + len(sizes[piece])
            rows = slice(int(ends[first] - sizes[first]), int(ends[last - 1]))
            words = ranks[np.frombuffer(self._row_words, np.uint32)[rows]]
            counts = np.frombuffer(self._row_counts, np.uint32)[rows]
            windows = np.repeat(np.arange(first, last, dtype=np.uint64), sizes[piece])
            keys[rows] = words << _32 | windows << _8 | np.minimum(counts, MAX_COUNT)
            # The rows of a window's boosts come last, and do not lengthen it.
            place = np.arange(rows.start, rows.stop) - np.repeat(
                ends[piece] - sizes[piece], sizes[piece]
            )
            more = extra[words.astype(np.int64)] * counts
            more[place >= np.repeat(counted[piece], sizes[piece])] = 0
            lengths[piece] += _sums(more, sizes[piece])
        return keys, lengths


def _merged(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Sort rows, and return the word of each posting, ascending, and the posting."""
    keys.sort()
    counts = (keys & np.uint64(MAX_COUNT)).astype(np.uint32)
    keys >>= _8
    if len(keys):
        starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
        keys, counts = keys[starts], np.add.reduceat(counts, starts)
    postings = (keys << _8).astype(np.uint32)
    postings |= np.minimum(counts, MAX_COUNT).astype(np.uint32)
    return (keys >> np.uint64(24)).astype(np.int64), postings


def _terms_of(words: Sequence[bytes]) -> tuple[dict[bytes, array[int]], NDArray[np.int64]]:
    """Return the raw words of each term, and how many terms more than one each word has.

    A term's own spelling is not among its words: whoever looks a term up knows it.
    """
    variants: dict[bytes, array[int]] = {}
    extra = np.zeros(len(words), np.int64)
    for number, word in enumerate(words):
        # Each word comes once, so that the cache would only be in the way.
        terms = word_terms.__wrapped__(word)
        if len(terms) != 1:
            extra[number] = len(terms) - 1
        for term in terms:
            if term != word:
                found = variants.get(term)
                if found is None:
                    variants[term] = array("I", (number,))
                else:
                    found.append(number)
    return variants, extra


def _parts(entries: Mapping[bytes, array[int]]) -> dict[str, bytes]:
    keys = sorted(entries)
    values = [entries[key] for key in keys]
    ends = np.cumsum([len(value) for value in values], dtype=np.uint32)
    return table_parts(keys, ends.tobytes(), b"".join(values))


def _sums(values: NDArray[np.int64], sizes: NDArray[np.integer]) -> NDArray[np.uint32]:
    """Add up runs of values of these sizes, some of which may be empty."""
    totals = np.concatenate(([0], np.cumsum(values)))
    ends = np.cumsum(sizes, dtype=np.int64)
    return (totals[ends] - totals[ends - sizes]).astype(np.uint32)
