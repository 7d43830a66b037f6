from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.evals.base import Haystack, Response, Sample, Score
from rlm_rag.evals.scorers.oolong import number_score, parse_real, parse_synthetic, real, synthetic

HAYSTACK = Haystack("key", lambda: "text")


def synthetic_score(text: str, answer: object, kind: str) -> Score:
    gold = {"answer": answer, "type": f"ANSWER_TYPE.{kind}"}
    sample = Sample(id="one", question="?", haystack=HAYSTACK, gold=gold)
    return synthetic(Response(text=text), sample)


def real_score(text: str, gold: str) -> Score:
    return real(Response(text=text), Sample(id="one", question="?", haystack=HAYSTACK, gold=gold))


@pytest.mark.parametrize(
    ("text", "parsed", "in_form"),
    [
        ("Answer: 42", "42", True),
        ("I counted: first 3, then: **[7]**", "7", True),
        ("Label: spam\nDone at 10:45", "45", True),
        ("42", "42", False),
        ("It must be forty two of them, 42", "42", False),
        ("", "", False),
        (" " * 30, " " * 30, False),
        ("Answer: spam is more common than ham is", "more common", True),
        ("Answer: more common!", "more common!", True),
    ],
)
def test_an_answer_is_what_follows_the_last_colon(text: str, parsed: str, in_form: bool) -> None:
    assert parse_synthetic(text) == (parsed, in_form)


@pytest.mark.parametrize(("own", "value"), [(10, 1.0), (9, 0.75), (12, 0.5625), (-990, 0.75**1000)])
def test_a_number_loses_a_quarter_of_what_is_left_a_step(own: int, value: float) -> None:
    assert synthetic_score(f"Answer: {own}", 10, "NUMERIC").value == value


def test_a_number_that_cannot_be_read_is_a_parse_failure_of_no_worth() -> None:
    for text in ("Answer: ten", "Answer: 10 records", "Answer: 10.0", "Answer: " + "9" * 5000):
        score = synthetic_score(text, 10, "NUMERIC")
        assert (score.value, score.parse_ok) == (0.0, False)


@pytest.mark.parametrize(
    ("text", "gold", "value"),
    [
        ("Answer: entity is more common than location", "more common than", 1.0),
        ("Answer: less common", "more common", 0.0),
        ("Answer: they occur with the same frequency", "same frequency", 1.0),
        ("Answer: More common than the other one is", "more common", 0.0),
    ],
)
def test_a_comparison_may_be_worded_longer(text: str, gold: str, value: float) -> None:
    assert synthetic_score(text, gold, "COMPARISON").value == value


def test_a_number_is_what_int_takes() -> None:
    assert synthetic_score("Answer: +1_000", 1000, "NUMERIC").value == 1.0
    assert synthetic_score("Answer: 1_000_", 1000, "NUMERIC").value == 0.0


def test_labels_and_users_are_equal_texts() -> None:
    assert synthetic_score("Label: numeric value", "numeric value", "LABEL").value == 1.0
    assert synthetic_score("Label: Numeric value", "numeric value", "LABEL").value == 0.0
    assert synthetic_score("User: 44106", 44106, "USER").value == 1.0


def test_dates_are_equal_when_they_are_the_same_day() -> None:
    score = synthetic_score("Date: Jan 6, 2023", "2023-01-06", "DATE")
    assert (score.value, score.parsed) == (1.0, "2023-01-06")
    assert synthetic_score("Date: 2023-01-07", "2023-01-06", "DATE").value == 0.0
    assert not synthetic_score("Date: some day", "2023-01-06", "DATE").parse_ok


def test_what_a_date_leaves_out_is_taken_from_the_day_of_the_answer() -> None:
    gold = {"answer": "2023-01-06", "type": "ANSWER_TYPE.DATE"}
    sample = Sample(id="one", question="?", haystack=HAYSTACK, gold=gold)
    for day, value in ((date(2023, 5, 1), 1.0), (date(2024, 5, 1), 0.0), (None, 0.0)):
        assert synthetic(Response(text="Date: Jan 6", day=day), sample).value == value


@pytest.mark.parametrize(
    ("text", "gold", "value", "in_form"),
    [
        (r"So \boxed{12}", "12", 1.0, True),
        (r"\boxed{\text{Fireball}}", "fireball", 1.0, True),
        (r"\boxed{14}", "12", 0.5625, True),
        (r"\boxed{Fireball, Shield}", "Shield, Fireball, Light", 2 / 3, True),
        (r"\boxed{Shield, Light, Sleep, Haste}", "Shield, Light", 1.0, True),
        # Out of the box a number is a text, and a text is no number.
        ("12", "12", 0.0, False),
        ("Fireball", "Fireball", 1.0, False),
        (r"\boxed{Shield}", "Shield, Light", 0.0, True),
    ],
)
def test_the_real_part_reads_the_box(text: str, gold: str, value: float, in_form: bool) -> None:
    score = real_score(text, gold)
    assert (score.value, score.parse_ok) == (pytest.approx(value), in_form)


@given(st.integers(min_value=-(10**9), max_value=10**9))
def test_numbers_are_numbers_in_the_real_part(number: int) -> None:
    assert parse_real(str(number)) == number
    assert real_score(rf"\boxed{{{number}}}", str(number)).value == number_score(0) == 1.0
