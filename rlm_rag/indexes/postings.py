"""Counting the words of windows into a segment, by raw word.

Counting happens on raw words, which are cut at C speed; what a raw word means is worked out
once for each distinct one. A query gathers the raw words of each of its terms.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.common import common_table
from rlm_rag.indexes.encoded import EncodedSegment
from rlm_rag.indexes.runs import run_starts, spread, sums
from rlm_rag.indexes.segment import (
    COMMON,
    DEFINED,
    MAX_COUNT,
    MAX_WINDOWS,
    SEQUENCE,
    TERMS,
    WORDS,
    number_bytes,
)
from rlm_rag.indexes.stretches import Stretches
from rlm_rag.indexes.tables import BytesLike, table_parts
from rlm_rag.indexes.vocabulary import Numbers, Vocabulary
from rlm_rag.indexes.windows import WINDOW_LINES, window_borders

# How much is counted together: it takes 60 bytes a word.
_PIECE_WORDS = 1 << 18
_PIECE_WINDOWS = 4096
_8, _24, _32 = np.uint64(8), np.uint64(24), np.uint64(32)
# Numbers below are held in 16 bits, 1 more, until all words are known.
_MOST_SHORT = (1 << 16) - 1
_LOW = np.uint64((1 << 32) - 1)


Ints = Sequence[int] | NDArray[np.int64] | int


class Marks(NamedTuple):
    """Words, each with the first of some windows of a document, how many those are, and times."""

    words: Sequence[bytes]
    firsts: Ints
    sizes: Ints
    times: Ints = 1


@dataclass(frozen=True, slots=True)
class Counted:
    """Postings of some windows, by word: each word's number, ascending, and how many it has."""

    words: Numbers
    counts: NDArray[np.int64]
    postings: Numbers


class SegmentBuilder:
    """Collects the postings of documents, windows numbered in the order they are added in.

    Words are counted some hundred thousand at a time, each once though windows overlap; what
    is kept of them is a posting for each distinct word of a window.
    """

    def __init__(self) -> None:
        self._vocabulary = Vocabulary()
        self._digests = bytearray()
        self._kinds = bytearray()
        self._window_counts: array[int] = array("I")
        self._stretch_offsets = bytearray()
        self._counted: list[Counted] = []
        self._window_lengths: list[NDArray[np.int64]] = []
        self._all_windows = self._counted_windows = 0
        # The words of the texts in their order, each number 1 more, and a 0 after each line.
        self._sequences: list[NDArray[np.unsignedinteger]] = []
        self._sequence_firsts: list[NDArray[np.int64]] = []
        self._sequence_words = 0
        # Not counted yet: words, how many of them each line has, the lines between which stretches
        # lie, two more than two of each window, and how many windows a document has, if it has any.
        self._words: array[int] = array("I")
        self._line_words: array[int] = array("I")
        self._borders: array[int] = array("Q")
        self._windows: array[int] = array("Q")
        # Rows of boosts that are not counted yet, and of all definitions.
        self._boosts: list[NDArray[np.int64]] = []
        self._defined: list[NDArray[np.int64]] = []

    def add_document(
        self,
        digest: bytes,
        words: Iterable[list[bytes]],
        line_words: bytes,
        boosts: Iterable[Marks] = (),
        defined: Marks | None = None,
        *,
        kind: int,
        offsets: bytes,
        borders: Sequence[int] | None = None,
    ) -> None:
        """Add a document by its raw words in their order, some at a time.

        `line_words` are 32-bit numbers: how many of the words are in each line.
        `boosts` are words that count in some of its windows as if they occurred so often more;
        they do not lengthen a window. `defined` are names, with the windows that define them.
        `kind` is the number of its kind of file; `offsets` are 32-bit numbers: where in its text
        the first two stretches of each window begin. `borders` are the lines between which the
        stretches lie, as `window_borders` has them, where those are of windows that are here in
        part.

        Raises:
            RetrievalError: there are more windows than can be numbered.
        """
        windows = self._add_windows(words, line_words, borders)
        for marks in boosts:
            self._boosts.append(self._numbered(marks, windows.start))
        if defined is not None:
            self._defined.append(self._numbered(defined, windows.start))
        self._digests += digest
        self._kinds.append(kind)
        self._stretch_offsets += offsets
        self._window_counts.append(len(windows))
        if len(self._words) >= _PIECE_WORDS:
            self._count()

    def _add_windows(
        self, words: Iterable[list[bytes]], line_words: bytes, borders: Sequence[int] | None
    ) -> range:
        """Take the words of a document; return the numbers of its windows."""
        number_of = self._vocabulary.number_of
        for some in words:
            self._words.extend(map(number_of, some))
        lines = len(self._line_words)
        self._line_words.frombytes(line_words)
        if borders is None:
            borders = window_borders(len(self._line_words) - lines)
        self._borders.extend([lines + border for border in borders])
        count = max(0, len(borders) // 2 - 1)
        if count:
            self._windows.append(count)
        first = self._all_windows
        self._all_windows += count
        if self._all_windows > MAX_WINDOWS:
            raise too_many_windows()
        return range(first, first + count)

    def _numbered(self, marks: Marks, first_window: int) -> NDArray[np.int64]:
        """Return rows of word, first window, windows and times, of marks that have windows."""
        rows = np.empty((4, len(marks.words)), np.int64)
        rows[0] = list(map(self._vocabulary.number_of, marks.words))
        rows[1], rows[2], rows[3] = marks.firsts, marks.sizes, marks.times
        rows[1] += first_window
        return rows

    def encoded(self, stamp: bytes) -> EncodedSegment:
        """Make a segment of what was added; nothing can be added after."""
        self._count()
        vocabulary = self._vocabulary
        words, ranks = vocabulary.ranked()
        names, first_windows, sizes, _ = _joined(self._defined)
        defined = np.repeat(names, sizes), spread(first_windows, sizes)
        tables = {
            TERMS: vocabulary.term_table(ranks),
            DEFINED: vocabulary.table_by_first_term(*defined),
        }
        # Not beside what is made of it.
        del vocabulary, self._vocabulary
        sections = self._document_sections() | self._encoded_sequence(ranks)
        tables[WORDS] = self._word_table(words, ranks)
        del words, ranks
        tables[COMMON] = common_table(tables[WORDS], tables[TERMS], self._window_counts)
        for name, table in tables.items():
            sections.update((f"{name}.{part}", data) for part, data in table.items())
        return EncodedSegment(stamp, sections)

    def _document_sections(self) -> dict[str, BytesLike]:
        lengths = np.concatenate([np.zeros(0, np.int64), *self._window_lengths])
        of_documents = sums(lengths, np.array(self._window_counts, np.int64))
        return {
            "digests": self._digests,
            "kinds": self._kinds,
            "window_counts": self._window_counts.tobytes(),
            "stretch_offsets": self._stretch_offsets,
            "window_lengths": lengths.astype(np.uint32).tobytes(),
            "document_lengths": of_documents.astype(np.uint32).tobytes(),
        }

    def _count(self) -> None:
        """Turn the words that were not counted yet into postings."""
        term_counts = self._vocabulary.term_counts()
        words = np.array(self._words, np.uint32)
        # Where each line begins among the words, and the last one ends.
        lines = np.zeros(len(self._line_words) + 1, np.int64)
        np.cumsum(self._line_words, out=lines[1:])
        borders = np.array(self._borders, np.int64)
        stretches = Stretches.of(np.array(self._windows, np.int64), lines[borders])
        self._window_lengths.append(stretches.window_sums(term_counts[words]))
        begins = np.repeat(stretches.begins, 2)
        begins[1::2] += 1
        self._keep_sequence(words, lines, borders[begins])
        boosts, count = self._boost_rows(), len(stretches.begins)
        for begin in range(0, count, _PIECE_WINDOWS):
            windows = range(begin, min(begin + _PIECE_WINDOWS, count))
            rows = stretches.rows(words, windows)
            rows += np.uint64(self._counted_windows) << _8
            base = self._counted_windows
            boosted = (boosts & _LOW) >> _8
            inside = boosts[(boosted >= base + windows.start) & (boosted < base + windows.stop)]
            if len(inside):
                rows = np.concatenate((rows, inside))
                # Of two sorted runs, the faster way.
                rows.sort(kind="stable")
            self._counted.append(added_up(rows))
        self._counted_windows = self._all_windows
        del self._boosts[:]
        for collected in (self._words, self._line_words, self._borders, self._windows):
            del collected[:]

    def _keep_sequence(
        self, words: Numbers, lines: NDArray[np.int64], borders: NDArray[np.int64]
    ) -> None:
        """Keep words that are counted now in their order, with the ends of lines.

        `borders` are the first lines of the first two stretches of each window.
        """
        starts = lines + np.arange(len(lines))
        is_short = not len(words) or words.max() < _MOST_SHORT
        width: type[np.unsignedinteger] = np.uint16 if is_short else np.uint32
        sequence = np.empty(int(starts[-1]), width)
        is_word = np.ones(len(sequence), np.bool_)
        is_word[starts[1:] - 1] = False
        sequence[starts[1:] - 1] = 0
        sequence[is_word] = words + np.uint32(1)
        self._sequence_firsts.append(starts[borders] + self._sequence_words)
        self._sequences.append(sequence)
        self._sequence_words += len(sequence)

    def _encoded_sequence(self, ranks: Numbers) -> dict[str, BytesLike]:
        width = np.uint16 if number_bytes(len(ranks)) == 2 else np.uint32
        numbers = np.concatenate(([0], ranks + np.uint32(1))).astype(width)
        encoded = np.empty(self._sequence_words, width)
        end = 0
        while self._sequences:
            sequence = self._sequences.pop(0)
            end += len(numbers.take(sequence, out=encoded[end : end + len(sequence)]))
        firsts = np.concatenate((*self._sequence_firsts, [end])).astype(np.uint32)
        return {SEQUENCE: encoded.data.cast("B"), "sequence_firsts": firsts.tobytes()}

    def _boost_rows(self) -> NDArray[np.uint64]:
        """Return the rows of boosts, sorted."""
        words, firsts, sizes, times = _joined(self._boosts)
        rows = np.repeat(words.astype(np.uint64) << _32, sizes)
        rows |= np.repeat(np.minimum(times, MAX_COUNT).astype(np.uint64), sizes)
        rows |= spread(firsts, sizes).astype(np.uint64) << _8
        rows.sort()
        return rows

    def _word_table(self, words: list[bytes], ranks: Numbers) -> dict[str, BytesLike]:
        totals = np.zeros(len(words), np.int64)
        for piece in self._counted:
            totals[ranks[piece.words]] += piece.counts
        ends = np.cumsum(totals)
        following = ends - totals
        postings = np.empty(int(totals.sum()), np.uint32)
        while self._counted:
            piece = self._counted.pop(0)
            places = ranks[piece.words]
            postings[spread(following[places], piece.counts)] = piece.postings
            following[places] += piece.counts
        return table_parts(words, ends.astype(np.uint32).tobytes(), postings.data.cast("B"))


def _joined(rows: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate((np.zeros((4, 0), np.int64), *rows), axis=1)


def too_many_windows() -> RetrievalError:
    """Return the error of a document that has more windows than can be numbered."""
    return RetrievalError(
        f"a document has more than {MAX_WINDOWS:,} windows of {WINDOW_LINES} lines",
        hint="load a part of it: give a folder, or --include and --exclude globs",
    )


def counted(rows: NDArray[np.uint64]) -> Counted:
    """Add up rows, `word << 32 | window << 8 | count` each, whose words and windows are equal."""
    rows.sort()
    return added_up(rows)


def added_up(rows: NDArray[np.uint64]) -> Counted:
    """Add up rows as `counted` does, of which those of a word's window follow one another."""
    counts = (rows & np.uint64(MAX_COUNT)).astype(np.uint32)
    rows >>= _8
    starts = run_starts(rows)
    rows = rows[starts]
    totals = np.minimum(np.add.reduceat(counts, starts), MAX_COUNT) if len(starts) else counts
    postings = (rows << _8).astype(np.uint32) | totals.astype(np.uint32)
    words = (rows >> _24).astype(np.uint32)
    firsts = run_starts(words)
    return Counted(words[firsts], np.diff(firsts, append=len(words)), postings)
