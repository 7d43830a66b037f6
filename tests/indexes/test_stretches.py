"""What stretches tell of windows is what counting each window by itself tells."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.indexes.stretches import Stretches, windows_of_lines
from rlm_rag.indexes.windows import (
    window_borders,
    window_count,
    window_lines,
    windows_of_line,
)

# Of more than 16 bits too, and of ones that differ above those alone.
words_of_lines = st.lists(
    st.lists(st.sampled_from([0, 1, 2, 65535, 65536, 65537, 131_073]), max_size=3),
    min_size=1,
    max_size=130,
)


def stretches_of(documents: list[list[list[int]]]) -> tuple[Stretches, list[list[int]]]:
    """Return the stretches of documents of these lines of words, and the words of each window."""
    counts: list[int] = []
    places: list[int] = []
    held: list[list[int]] = []
    before = 0
    for lines in documents:
        ends = np.concatenate(([0], np.cumsum([len(line) for line in lines]))).astype(int)
        places += [before + int(ends[border]) for border in window_borders(len(lines))]
        before += int(ends[-1])
        counts.append(window_count(len(lines)))
        for number in range(counts[-1]):
            first, last = window_lines(number, len(lines))
            held.append([word for line in lines[first - 1 : last] for word in line])
    return Stretches.of(np.array(counts), np.array(places)), held


@given(st.lists(words_of_lines, min_size=1, max_size=4), st.integers(1, 4))
def test_rows_count_the_words_of_each_window(
    documents: list[list[list[int]]], at_a_time: int
) -> None:
    stretches, held = stretches_of(documents)
    words = np.array([word for lines in documents for line in lines for word in line], np.uint32)
    for first in range(0, len(held), at_a_time):
        windows = range(first, min(first + at_a_time, len(held)))
        rows = stretches.rows(words, windows).tolist()
        counted: Counter[tuple[int, int]] = Counter()
        for row in rows:
            counted[row >> 32, row >> 8 & 0xFFFFFF] += row & 0xFF
        assert counted == Counter((word, number) for number in windows for word in held[number])
        assert all(one >> 8 <= following >> 8 for one, following in pairwise(rows))


@given(st.lists(words_of_lines, min_size=1, max_size=4))
def test_sums_are_of_the_words_of_each_window(documents: list[list[list[int]]]) -> None:
    stretches, held = stretches_of(documents)
    words = [word for lines in documents for line in lines for word in line]
    assert stretches.window_sums(np.array(words, np.int64)).tolist() == [sum(one) for one in held]


@given(st.integers(1, 200), st.data())
def test_windows_are_told_of_lines_as_of_each(line_count: int, data: st.DataObject) -> None:
    lines = data.draw(st.lists(st.integers(1, line_count), min_size=1))
    firsts, sizes = windows_of_lines(np.array(lines), line_count)
    expected = [windows_of_line(line, line_count) for line in lines]
    assert firsts.tolist() == [windows.start for windows in expected]
    assert sizes.tolist() == [len(windows) for windows in expected]
