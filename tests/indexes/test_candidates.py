"""Choosing candidates: what is passed over could not have been among the best."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.indexes.candidates import SCORE_DIGITS, Found, Windows

values = st.floats(0, 30, width=16)
windows = st.lists(
    st.tuples(values, st.sampled_from([0.0, 0.2, 0.3]), st.floats(0, 1, width=16)),
    max_size=400,
)


@given(windows, st.integers(1, 5))
def test_the_best_are_those_of_all(held: list[tuple[float, float, float]], count: int) -> None:
    scores, discounts, shares = np.array(held or [(0.0, 0.0, 0.0)]).T
    found = Found(scores, discounts, lambda windows: shares[windows])

    def first(chosen: Windows, final: np.ndarray) -> list[int]:
        order = np.lexsort((chosen, -np.round(final, SCORE_DIGITS)))
        return chosen[order].tolist()[:count]

    assert first(*found.best(count)) == first(*found.all())
    assert len(found.all()[0]) == found.count
