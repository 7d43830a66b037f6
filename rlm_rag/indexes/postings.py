"""Counting the words of windows into a segment, by raw word.

Counting happens on raw words, which are cut at C speed; what a raw word means is worked out
once, when it is first met. A query gathers the raw words of each of its terms.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from operator import mul

from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.segment import DEFINED, TERMS, WORDS, encode_segment
from rlm_rag.indexes.tables import table_parts
from rlm_rag.indexes.terms import word_terms
from rlm_rag.indexes.windows import WINDOW_LINES

# A posting is `window << 8 | count`, in 32 bits.
MAX_WINDOWS = 1 << 24
MAX_COUNT = 255


class SegmentBuilder:
    """Collects the postings of documents, windows numbered in the order they are added in."""

    def __init__(self) -> None:
        self._digests = bytearray()
        self._window_counts: array[int] = array("I")
        self._window_lengths: array[int] = array("I")
        self._document_lengths: array[int] = array("I")
        self._words: dict[bytes, int | array[int]] = {}
        # Raw words of a term, beside the one that is spelled as the term itself.
        self._variants: dict[bytes, list[bytes]] = {}
        # How many terms more than one a raw word stands for (fewer: -1).
        self._extra_terms: dict[bytes, int] = {}
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
        first = len(self._window_lengths)
        if first + len(boosts) > MAX_WINDOWS:
            raise RetrievalError(
                f"a document has more than {MAX_WINDOWS:,} windows of {WINDOW_LINES} lines",
                hint="load a part of it: give a folder, or --include and --exclude globs",
            )
        for name, window in defined:
            self._defined.setdefault(name, array("I")).append(first + window)
        total = 0
        for number, (words, boost) in enumerate(zip(windows, boosts, strict=True), start=first):
            counts = Counter(words)
            self._learn(set(counts).difference(self._words))
            extra = map(self._extra_terms.get, counts, repeat(0))
            length = len(words) + sum(map(mul, extra, counts.values()))
            if boost:
                self._learn(set(boost).difference(self._words))
                for word, count in boost.items():
                    counts[word] += count
            self._append(number, counts)
            self._window_lengths.append(length)
            total += length
        self._digests += digest
        self._window_counts.append(len(boosts))
        self._document_lengths.append(total)

    def encode(self, stamp: bytes) -> bytearray:
        """Write what was added as a segment."""
        words = sorted(self._words)
        numbers = dict(zip(words, range(len(words)), strict=True))
        terms = {
            term: array("I", map(numbers.__getitem__, variants))
            for term, variants in self._variants.items()
        }
        sections: dict[str, bytes | bytearray] = {
            "digests": self._digests,
            "window_counts": self._window_counts.tobytes(),
            "window_lengths": self._window_lengths.tobytes(),
            "document_lengths": self._document_lengths.tobytes(),
        }
        for name, parts in (
            (WORDS, table_parts(self._words, words)),
            (TERMS, table_parts(terms, sorted(terms))),
            (DEFINED, table_parts(self._defined, sorted(self._defined))),
        ):
            sections.update((f"{name}.{part}", data) for part, data in parts.items())
        return encode_segment(stamp, sections)

    def _learn(self, words: Iterable[bytes]) -> None:
        for word in words:
            # Each word comes once, so that the cache would only be in the way.
            terms = word_terms.__wrapped__(word)
            # Nothing is in it yet: a 0 holds its place until it is counted.
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
            posting = base | (count if count < MAX_COUNT else MAX_COUNT)
            entry = words[word]
            if isinstance(entry, array):
                entry.append(posting)
            elif entry == 0:
                words[word] = posting
            else:
                words[word] = array("I", (entry, posting))
