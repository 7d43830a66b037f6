"""The distinct words of a segment, numbered as they come, with the terms they stand for."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import chain, count, islice
from operator import contains

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.runs import run_starts
from rlm_rag.indexes.tables import BytesLike, table_parts
from rlm_rag.indexes.terms import word_terms

Numbers = NDArray[np.uint32]

_HALF = np.uint64(32)


class Vocabulary:
    """Numbers words, and works out once what each of them means."""

    def __init__(self) -> None:
        self._words: defaultdict[bytes, int] = defaultdict(count().__next__)
        self._terms: defaultdict[bytes, int] = defaultdict(count().__next__)
        # Of each analysed word, how many terms it has, and whether it is one, its first; then
        # the terms of all words.
        self._term_counts: array[int] = array("I")
        self._are_terms: array[int] = array("B")
        self._terms_of_words: array[int] = array("I")
        # What the table of words is asked for by name, millions of times.
        self.number_of: Callable[[bytes], int] = self._words.__getitem__

    def term_counts(self) -> Numbers:
        """Return how many terms each word stands for that was numbered so far."""
        new = list(islice(self._words, len(self._term_counts), None))
        # Each word comes once, so that the cache would only be in the way.
        found = list(map(word_terms.__wrapped__, new))
        self._term_counts.extend(map(len, found))
        self._terms_of_words.extend(map(self._terms.__getitem__, chain.from_iterable(found)))
        self._are_terms.extend(map(contains, found, new))
        return np.array(self._term_counts, np.uint32)

    def ranked(self) -> tuple[list[bytes], Numbers]:
        """Return every word, sorted, and the place there of each by its number."""
        return _ranked(self._words, self._words)

    def term_table(self, ranks: Numbers) -> dict[str, BytesLike]:
        """Return the table from each term to the ranks of the words that stand for it.

        A term's own spelling is not among its words: whoever looks a term up knows it.
        """
        counts, firsts = self._counts_and_firsts()
        terms = np.array(self._terms_of_words, np.uint32)
        words = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
        others = np.ones(len(terms), bool)
        others[firsts[np.array(self._are_terms, bool)]] = False
        return self._table(terms[others], ranks[words[others]])

    def table_by_first_term(
        self, words: NDArray[np.int64], values: NDArray[np.int64]
    ) -> dict[str, BytesLike]:
        """Return the table from the first term of each word, if it has one, to its values."""
        counts, firsts = self._counts_and_firsts()
        known = counts[words] > 0
        terms = np.array(self._terms_of_words, np.uint32)[firsts[words[known]]]
        return self._table(terms, values[known].astype(np.uint32))

    def _counts_and_firsts(self) -> tuple[Numbers, NDArray[np.int64]]:
        """Return how many terms each word has, and where the first of them lies."""
        counts = self.term_counts()
        return counts, np.cumsum(counts, dtype=np.int64) - counts

    def _table(self, terms: Numbers, values: Numbers) -> dict[str, BytesLike]:
        """Return the table from terms to their distinct values, ascending."""
        present = np.zeros(len(self._terms), bool)
        present[terms] = True
        named = zip(self._terms, present.tolist(), strict=True)
        keys, ranks = _ranked(self._terms, [term for term, has_values in named if has_values])
        rows = ranks[terms].astype(np.uint64) << _HALF | values
        rows.sort()
        rows = rows[run_starts(rows)]
        ends = np.cumsum(np.bincount((rows >> _HALF).astype(np.int64), minlength=len(keys)))
        return table_parts(keys, ends.astype(np.uint32).tobytes(), rows.astype(np.uint32).tobytes())


def _ranked(numbers: dict[bytes, int], keys: Iterable[bytes]) -> tuple[list[bytes], Numbers]:
    """Return some of the keys, sorted, and for each number the place of its key there."""
    ordered = sorted(keys)
    ranks = np.zeros(len(numbers), np.uint32)
    ranks[np.fromiter(map(numbers.__getitem__, ordered), np.int64, len(ordered))] = np.arange(
        len(ordered), dtype=np.uint32
    )
    return ordered, ranks
