from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.indexes.columns import Column, added, raised

TOTAL = 40
columns = st.dictionaries(st.integers(0, TOTAL - 1), st.floats(0.1, 9), max_size=TOTAL)


def column(scores: dict[int, float]) -> Column:
    numbers = sorted(scores)
    return Column.of(
        np.array(numbers, np.uint32), np.array([scores[n] for n in numbers], float), TOTAL
    )


@given(st.lists(st.tuples(columns, st.floats(0.1, 3)), max_size=6))
def test_sums_are_those_of_one_column_after_the_other(
    weighted: list[tuple[dict[int, float], float]],
) -> None:
    expected = [0.0] * TOTAL
    for scores, weight in weighted:
        for number, score in scores.items():
            expected[number] += weight * score
    found = added(((column(scores), weight) for scores, weight in weighted), TOTAL)
    assert found.tolist() == expected


@given(columns, st.lists(st.integers(0, TOTAL - 1)))
def test_a_column_holds_what_has_a_score(scores: dict[int, float], asked: list[int]) -> None:
    found = column(scores).hold(np.array(asked, np.intp))
    assert found.tolist() == [number in scores for number in asked]


@given(columns, st.sets(st.integers(0, TOTAL - 1)), st.floats(0.1, 9))
def test_a_gain_is_added_to_those_that_have_a_score_and_to_others(
    scores: dict[int, float], those: set[int], gain: float
) -> None:
    numbers = sorted(scores)
    found, gained = raised(
        np.array(numbers, np.intp),
        np.array([scores[n] for n in numbers], float),
        np.array(sorted(those), np.intp),
        gain,
    )
    everywhere = sorted({*scores, *those})
    assert found.tolist() == everywhere
    expected = [scores.get(n, 0.0) + (gain if n in those else 0.0) for n in everywhere]
    assert gained.tolist() == expected
