from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.evals.lengths import fitted
from rlm_rag.models.tokens import count_tokens

UNITS = st.lists(st.text(alphabet="ab 7-Z", max_size=30), max_size=30)


@given(UNITS, st.integers(min_value=-50, max_value=300))
def test_what_is_fitted_is_the_longest_start_that_fits(units: list[str], tokens: int) -> None:
    taken = fitted(units, tokens)
    assert taken == units[: len(taken)]
    assert count_tokens("".join(f"{unit}\n" for unit in taken)) <= max(0, tokens)
    if len(taken) < len(units):
        longer = units[: len(taken) + 1]
        assert count_tokens("".join(f"{unit}\n" for unit in longer)) > tokens


def test_endless_units_are_taken_as_far_as_they_fit() -> None:
    taken = fitted(iter(lambda: "The road goes on.", None), 20_000)
    assert 0.999 * 20_000 < count_tokens("\n".join(taken)) <= 20_000
