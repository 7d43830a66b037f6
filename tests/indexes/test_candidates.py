"""Choosing candidates: what is passed over could not have been among the best."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.indexes.candidates import SCORE_DIGITS, Found, Groups, Windows

values = st.floats(0, 30, width=16)
windows = st.lists(
    st.tuples(values, st.sampled_from([0.0, 0.2, 0.3]), st.floats(0, 1, width=16)),
    max_size=400,
)


@given(windows, st.integers(1, 5))
def test_the_best_are_those_of_all(held: list[tuple[float, float, float]], count: int) -> None:
    scores, discounts, shares = np.array(held or [(0.0, 0.0, 0.0)]).T
    numbers = np.flatnonzero(scores)
    by_kind, kinds = np.unique(discounts, return_inverse=True)
    found = Found(
        numbers, scores[numbers], kinds[numbers], by_kind, lambda windows: shares[windows]
    )

    def first(chosen: Windows, final: np.ndarray) -> list[int]:
        order = np.lexsort((chosen, -np.round(final, SCORE_DIGITS)))
        return chosen[order].tolist()[:count]

    every = found.best(len(numbers))
    assert first(*found.best(count)) == first(*every)
    assert len(every[0]) == len(numbers)


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0, 2.5, 7.0]), min_size=1, max_size=5)))
def test_the_second_best_window_of_a_document_is_the_second_of_its_own(
    held: list[list[float]],
) -> None:
    documents = np.repeat(np.arange(len(held)), [len(scores) for scores in held])
    scores = np.array([score for scores in held for score in scores])
    seconds = Groups(documents.astype(np.uint32)).second_best(scores)
    expected = [sorted([0.0, *scores])[-2] for scores in held for _ in scores]
    assert seconds.tolist() == expected
