"""The postings of common terms, gathered when a segment is written.

A term stands for every raw word that has it as a part, some for thousands. Gathering and sorting
their postings takes a query longer than all else it does, so it is done here, for the few
hundred terms that have many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.runs import run_starts, spread, sums
from rlm_rag.indexes.segment import MAX_COUNT
from rlm_rag.indexes.tables import BytesLike, Table, table_parts
from rlm_rag.indexes.terms import word_terms

Numbers = NDArray[np.uint32]

COMMON_POSTINGS = 1024
"""How many postings of raw words a common term has at least, in a segment: of a segment of 60 MB of
code these are 440 of 108,000 terms, whose postings take 14 % of its bytes."""

_SHIFT, _COUNT = np.uint32(8), np.uint32(MAX_COUNT)


def common_table(
    words: Mapping[str, BytesLike], terms: Mapping[str, BytesLike], window_counts: Sequence[int]
) -> dict[str, BytesLike]:
    """Return the table from common terms of several words to their postings.

    `words` and `terms` are the parts of a segment's tables, `window_counts` how many windows its
    documents have. What a term has in one window is added up; a count beyond what fits is several
    postings of that window. Beside the table's parts are `windows` and `documents`: how many hold
    each term.
    """
    named, posted = _table(words), _table(terms)
    postings, others = (np.frombuffer(one["values"], np.uint32) for one in (words, terms))
    bounds, ends = (
        np.frombuffer(one["value_ends"], np.uint32).astype(np.int64) for one in (words, terms)
    )
    sizes = np.diff(bounds, prepend=0)
    firsts = bounds - sizes
    of_others = sums(sizes[others], np.diff(ends, prepend=0))
    # Of the two of which it has that many together, one has half.
    keys = {posted.key(number) for number in _places(2 * of_others >= COMMON_POSTINGS)}
    keys.update(named.key(number) for number in _places(2 * sizes >= COMMON_POSTINGS))
    found: dict[bytes, Numbers] = {}
    for key in sorted(keys):
        those = _words_of(key, named, posted, others)
        if len(those) > 1 and int(sizes[those].sum()) >= COMMON_POSTINGS:
            found[key] = _merged(postings[spread(firsts[those], sizes[those])])
    values = np.concatenate([np.zeros(0, np.uint32), *found.values()])
    value_ends = np.cumsum([len(one) for one in found.values()], dtype=np.uint32)
    table = table_parts(list(found), value_ends.tobytes(), values.data.cast("B"))
    document_of = np.repeat(np.arange(len(window_counts), dtype=np.uint32), window_counts)
    held = [held_by(one, document_of) for one in found.values()]
    windows, documents = np.array(held, np.uint32).reshape(-1, 2).T
    table |= {"windows": windows.tobytes(), "documents": documents.tobytes()}
    return table


def held_by(postings: Numbers, document_of: Numbers) -> tuple[int, int]:
    """Return how many windows, and how many documents, have postings, which are in order.

    `document_of` gives the document of each window.
    """
    windows = postings >> _SHIFT
    return len(run_starts(windows)), len(run_starts(document_of.take(windows)))


def _places(chosen: NDArray[np.bool_]) -> list[int]:
    return np.flatnonzero(chosen).tolist()


def _table(parts: Mapping[str, BytesLike]) -> Table:
    return Table(*(memoryview(parts[name]) for name in ("keys", "key_ends", "value_ends")))


def _words_of(term: bytes, words: Table, terms: Table, others: Numbers) -> Numbers:
    """Return the numbers of the words that stand for a term; none where it is alone or is none."""
    number = terms.find(term)
    if number < 0:
        return others[:0]
    first, last = terms.span(number)
    itself = own_word(term, words)
    return others[first:last] if itself < 0 else np.append(others[first:last], np.uint32(itself))


def own_word(term: bytes, words: Table) -> int:
    """Return the number of the word that is spelled as a term it stands for, or -1.

    It stands for the term beside those that the table of terms gives.
    """
    return words.find(term) if term in word_terms(term) else -1


def _merged(postings: Numbers) -> Numbers:
    """Return postings in order, those of one window added up."""
    postings = np.sort(postings)
    windows = postings >> _SHIFT
    starts = run_starts(windows)
    totals = np.add.reduceat(postings & _COUNT, starts).astype(np.int64)
    pieces = -(-totals // MAX_COUNT)
    counts = np.full(int(pieces.sum()), MAX_COUNT, np.uint32)
    counts[np.cumsum(pieces) - 1] = totals - (pieces - 1) * MAX_COUNT
    return np.repeat(windows[starts] << _SHIFT, pieces) | counts
