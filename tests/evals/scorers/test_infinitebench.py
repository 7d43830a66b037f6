from __future__ import annotations

import pytest

from rlm_rag.evals.base import Haystack, Response, Sample
from rlm_rag.evals.scorers.infinitebench import key_value, number


def sample(gold: str) -> Sample:
    return Sample(id="one", question="?", haystack=Haystack("key", lambda: "text"), gold=gold)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The pass key is 71432.", 1.0),
        ("71432", 1.0),
        ("In line 3: 71432", 0.0),
        ("714320", 0.0),
        ("71,432", 0.0),
        ("none", 0.0),
    ],
)
def test_only_the_first_number_counts_as_it_is_written(text: str, value: float) -> None:
    score = number(Response(text=text), sample("71432"))
    assert (score.value, score.parse_ok) == (value, text != "none")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('The value is "c14cb8ba-002b".', 1.0),
        ("{'key': 'c14cb8ba-002b'}", 1.0),
        ("xc14cb8ba-002b", 0.0),
        ("`c14cb8ba-002b`", 0.0),
        ("", 0.0),
    ],
)
def test_the_value_is_a_word_of_the_answer(text: str, value: float) -> None:
    assert key_value(Response(text=text), sample("c14cb8ba-002b")).value == value
