"""The inverted index of a corpus's windows, in memory, by raw word.

Counting happens on raw words, which are cut at C speed; what a raw word means is worked out
once, when it is first met. A query gathers the raw words of each of its terms.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import mul

from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.terms import word_terms
from rlm_rag.indexes.windows import WINDOW_LINES

# A posting is `window << 8 | count`, in 32 bits.
MAX_WINDOWS = 1 << 24
_MAX_COUNT = 255


@dataclass(frozen=True, slots=True)
class Postings:
    """Where a term occurs: window numbers, ascending, and how often in each."""

    windows: Sequence[int]
    counts: Sequence[int]


class WindowPostings:
    """Postings of all windows, with their lengths in terms and the documents they are of.

    Windows are numbered in the order in which they are added.
    """

    def __init__(self) -> None:
        self.window_documents: array[int] = array("I")
        self.window_lengths: array[int] = array("I")
        self.first_windows: array[int] = array("I")
        self.document_lengths: array[int] = array("I")
        self._words: dict[bytes, int | array[int]] = {}
        # Raw words of a term, beside the one that is the term itself.
        self._variants: dict[bytes, list[bytes]] = {}
        # How many terms more than one a raw word stands for (fewer: -1).
        self._extra_terms: dict[bytes, int] = {}

    @property
    def window_count(self) -> int:
        """How many windows there are."""
        return len(self.window_documents)

    @property
    def document_count(self) -> int:
        """How many documents have been added, those without a line included."""
        return len(self.first_windows)

    def add_document(
        self, windows: Iterable[list[bytes]], boosts: Sequence[Mapping[bytes, int]]
    ) -> None:
        """Add a document's windows: the raw words of each, and what is added to their counts.

        `boosts` is aligned with `windows`; a boosted word counts as if it occurred so often
        more, and does not lengthen the window.

        Raises:
            RetrievalError: there are more windows than can be numbered.
        """
        document = len(self.first_windows)
        if len(self.window_documents) + len(boosts) > MAX_WINDOWS:
            raise RetrievalError(
                f"the corpus has more than {MAX_WINDOWS:,} windows of {WINDOW_LINES} lines",
                hint="load a part of it: give a folder, or --include and --exclude globs",
            )
        self.first_windows.append(len(self.window_documents))
        total = 0
        for words, boost in zip(windows, boosts, strict=True):
            counts = Counter(words)
            self._learn(set(counts).difference(self._words))
            extra = map(self._extra_terms.get, counts, repeat(0))
            length = len(words) + sum(map(mul, extra, counts.values()))
            if boost:
                counts.update(boost)
                self._learn({word for word in boost if word not in self._words})
            self._append(len(self.window_documents), counts)
            self.window_documents.append(document)
            self.window_lengths.append(length)
            total += length
        self.document_lengths.append(total)

    def postings(self, term: bytes) -> Postings:
        """Return where a term occurs, whatever raw words stand for it."""
        entries = [entry for word in self._words_of(term) if (entry := self._words.get(word))]
        if len(entries) == 1:
            entry = entries[0]
            packed = (entry,) if isinstance(entry, int) else entry
            return Postings(
                array("I", [posting >> 8 for posting in packed]),
                array("I", [posting & _MAX_COUNT for posting in packed]),
            )
        merged: dict[int, int] = {}
        for entry in entries:
            for posting in (entry,) if isinstance(entry, int) else entry:
                window = posting >> 8
                merged[window] = merged.get(window, 0) + (posting & _MAX_COUNT)
        windows = array("I", sorted(merged))
        return Postings(windows, array("I", map(merged.__getitem__, windows)))

    def windows_of_word(self, word: bytes) -> list[int]:
        """Return the windows that hold a raw word, spelled just so."""
        entry = self._words.get(word, 0)
        if isinstance(entry, int):
            return [entry >> 8] if entry else []
        return [posting >> 8 for posting in entry]

    def place(self, window: int) -> tuple[int, int]:
        """Return a window's document, and its number within that document."""
        document = self.window_documents[window]
        return document, window - self.first_windows[document]

    def _words_of(self, term: bytes) -> list[bytes]:
        words = list(self._variants.get(term, ()))
        if term in self._words and term in word_terms(term):
            words.append(term)
        return words

    def _learn(self, words: Iterable[bytes]) -> None:
        for word in words:
            # Each word comes once, so that the cache would only be in the way.
            terms = word_terms.__wrapped__(word)
            # Nothing is in it yet: an empty array holds its place until it is counted.
            self._words[word] = 0
            if len(terms) != 1:
                self._extra_terms[word] = len(terms) - 1
            for term in terms:
                if term != word:
                    self._variants.setdefault(term, []).append(word)

    def _append(self, window: int, counts: Mapping[bytes, int]) -> None:
        words = self._words
        base = window << 8
        for word, count in counts.items():
            posting = base | (count if count < _MAX_COUNT else _MAX_COUNT)
            entry = words[word]
            if isinstance(entry, array):
                entry.append(posting)
            elif entry == 0:
                words[word] = posting
            else:
                words[word] = array("I", (entry, posting))
