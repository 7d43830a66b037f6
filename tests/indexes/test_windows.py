from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.indexes.windows import (
    window_borders,
    window_count,
    window_lines,
    windows_of_line,
)


@given(st.integers(0, 2000))
def test_windows_cover_every_line_and_none_lies_in_another(line_count: int) -> None:
    windows = [window_lines(number, line_count) for number in range(window_count(line_count))]
    covered = {line for first, last in windows for line in range(first, last + 1)}
    assert covered == set(range(1, line_count + 1))
    assert all(b[1] > a[1] and b[0] <= a[1] for a, b in itertools.pairwise(windows))


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))))
def test_the_windows_of_a_line_are_those_that_hold_it(place: tuple[int, int]) -> None:
    line_count, line = place
    expected = [
        number
        for number in range(window_count(line_count))
        if window_lines(number, line_count)[0] <= line <= window_lines(number, line_count)[1]
    ]
    assert list(windows_of_line(line, line_count)) == expected


@given(st.integers(0, 2000))
def test_a_window_is_three_stretches_between_borders(line_count: int) -> None:
    borders = window_borders(line_count)
    windows = [
        (borders[2 * number] + 1, borders[2 * number + 3])
        for number in range(window_count(line_count))
    ]
    assert windows == [window_lines(number, line_count) for number in range(len(windows))]
    assert borders == sorted(borders)
    assert borders[-1:] == [line_count][: len(windows)]
