"""Intervals and tests against known values."""

import random
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.evals.intervals import (
    difference_interval,
    mcnemar,
    mean_interval,
    percentile,
    wilson,
)


def alone(count):
    return [str(number) for number in range(count)]


def test_the_interval_of_independent_values_is_close_to_the_normal_one():
    dice = random.Random(1)
    values = [float(dice.random() < 0.3) for _ in range(400)]
    found = mean_interval(values, alone(400))
    half = 1.96 * (found.mean * (1 - found.mean) / 400) ** 0.5
    assert found.low == pytest.approx(found.mean - half, abs=0.006)
    assert found.high == pytest.approx(found.mean + half, abs=0.006)


def test_values_of_one_cluster_count_as_one():
    values = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0] * 5
    loose = mean_interval(values, alone(40))
    tight = mean_interval(values, [str(number // 4) for number in range(40)])
    assert loose.mean == tight.mean == 0.5
    assert tight.high - tight.low > 1.7 * (loose.high - loose.low)


def test_one_cluster_has_no_interval():
    assert mean_interval([1.0, 0.0], ["a", "a"]) == (0.5, None, None)


def test_where_all_are_right_the_interval_is_wilsons():
    found = mean_interval([1.0] * 10, alone(10))
    assert found == wilson(1.0, 10)
    assert found.low == pytest.approx(0.7225, abs=1e-4)
    assert found.high == 1.0


def test_wilsons_interval_has_its_known_values():
    # 81 of 263: Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
    found = wilson(81 / 263, 263)
    assert (round(found.low, 4), round(found.high, 4)) == (0.2553, 0.3662)


def test_equal_values_have_equal_intervals():
    values = [0.1, 0.5, 0.9, 0.4]
    assert mean_interval(values, alone(4)) == mean_interval(values, alone(4))


def test_a_difference_that_is_everywhere_the_same_is_certain():
    assert difference_interval([0.25, 0.25, 0.25], alone(3)) == (0.25, 0.25, 0.25)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12))
def test_the_interval_holds_the_mean(values):
    found = mean_interval(values, alone(len(values)))
    assert found.low - 1e-9 <= found.mean <= found.high + 1e-9
    assert 0 <= found.low <= found.high <= 1 + 1e-12


def test_mcnemar_is_the_binomial_test_of_the_discordant_pairs():
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(5, 5) == 1.0
    assert mcnemar(1, 9) == mcnemar(9, 1) == pytest.approx(2 * 11 / 1024)
    assert mcnemar(300, 360) == pytest.approx(
        2 * sum(comb(660, k) for k in range(301)) / 2**660, rel=1e-9
    )


def test_percentiles_are_interpolated():
    assert percentile([4.0, 1.0, 2.0, 3.0], 0.5) == 2.5
    assert percentile([1.0, 2.0], 0.95) == pytest.approx(1.95)
    assert percentile([7.0], 0.95) == 7.0


@pytest.mark.parametrize("empty", [lambda: mean_interval([], []), lambda: percentile([], 0.5)])
def test_nothing_has_no_mean(empty):
    with pytest.raises(ValueError, match="no values"):
        empty()
