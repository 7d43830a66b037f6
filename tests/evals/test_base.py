from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.evals.base import length_bucket, length_label, parse_length


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("8k", 8192), ("1M", 1 << 20), ("10m", 10 << 20), (" 5000 ", 5000), ("0k", None)]
    + [(text, None) for text in ("", "k", "-8k", "8 k", "8kb", "1.5m", "²")],
)
def test_lengths_are_read_as_benchmarks_name_them(text: str, tokens: int | None) -> None:
    assert parse_length(text) == tokens


@given(st.integers(min_value=1, max_value=1 << 40))
def test_a_label_says_the_length_exactly(tokens: int) -> None:
    assert parse_length(length_label(tokens)) == tokens


def test_a_bucket_is_the_least_power_of_two_that_holds_the_length() -> None:
    buckets = [length_bucket(tokens) for tokens in (None, 0, 1, 8192, 8193, 1 << 20, 900_000)]
    assert buckets == ["?", "1", "1", "8k", "16k", "1m", "1m"]
