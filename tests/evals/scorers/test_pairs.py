from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.evals.base import Haystack, Response, Sample, Score
from rlm_rag.evals.scorers.pairs import is_pair, pair_count, pair_f1, parse_pairs

IDS = st.frozensets(st.integers(min_value=1, max_value=12), max_size=8)


def scored(text: str, left: list[int], right: list[int]) -> Score:
    gold = {"left": left, "right": right}
    haystack = Haystack("key", lambda: "text")
    return pair_f1(
        Response(text=text), Sample(id="one", question="?", haystack=haystack, gold=gold)
    )


def test_pairs_are_read_in_any_order_and_once() -> None:
    assert parse_pairs("(2, 1)\n( 1,2 ), (3,3) and (7, 40) 5, 6") == {(1, 2), (7, 40)}


@given(IDS, IDS)
def test_counting_is_listing(left: frozenset[int], right: frozenset[int]) -> None:
    listed = [pair for pair in combinations(range(1, 13), 2) if is_pair(pair, left, right)]
    assert pair_count(left, right) == len(listed)


@given(IDS, IDS, st.sets(st.tuples(st.integers(1, 12), st.integers(1, 12)), max_size=20))
def test_f1_is_that_of_listed_sets(
    left: frozenset[int], right: frozenset[int], given_pairs: set[tuple[int, int]]
) -> None:
    own = {(min(p), max(p)) for p in given_pairs if p[0] != p[1]}
    gold = {pair for pair in combinations(range(1, 13), 2) if is_pair(pair, left, right)}
    text = "\n".join(["no pairs but", *map(str, given_pairs)])
    same = 2 * len(own & gold) / (len(own) + len(gold)) if own or gold else 1.0
    assert scored(text, list(left), list(right)).value == pytest.approx(same)


def test_an_answer_without_pairs_is_right_where_there_are_none_and_it_says_so() -> None:
    assert scored("There are no such pairs.", [1], [1]).value == 1.0
    assert scored("None.", [1, 2], [1, 2]).value == 0.0
    silent = scored("I could not tell.", [1], [1])
    assert (silent.value, silent.parse_ok) == (0.0, False)


def test_a_gold_of_many_million_pairs_is_scored_at_once() -> None:
    users = list(range(7000))
    score = scored("(0, 1)\n(1, 9000)", users, users)
    assert score.detail["precision"] == 0.5
    assert score.detail["recall"] == pytest.approx(1 / 24_496_500)
