"""How answers to questions for small models are scored, and how they fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.small.scoring import failure_of, score
from rlm_rag.evals.base import Haystack, Response, Sample
from tests.evals.toys import record

HAYSTACK = Haystack("none", list)


def scored(text, gold, question="How many of the 12 depots are late?"):
    return score(
        Response(text=text), Sample(id="1", question=question, haystack=HAYSTACK, gold=gold)
    )


@pytest.mark.parametrize(
    "text",
    [
        "22",
        "There are **22** deliveries.",
        "22 of 160 deliveries are late.",
        "Of the 12 depots, 22.0 are late",
        "22 [deliveries/2023-01.csv:3-9]",
        'It is 22. "The tower is 418 metres high, 1832, 777 and 4 more" (pages/012.md:7)',
        "7 + 8 + 7 = 22",
        "0x16",
    ],
)
def test_a_number_is_found_in_what_is_said_about_it(text):
    assert scored(text, {"number": 22}).value == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "220",
        "22.5",
        "D22",
        "1,022",
        "deliveries.csv:22",
        "pages/22.md",
        "It may be 20, 21, 22, 23 or 24.",
        "Not in the corpus: 22",
        "No answer was reached: it took too long.\n\nThese passages match best: 22",
        "",
    ],
)
def test_a_number_that_is_not_said_is_not_found(text):
    assert scored(text, {"number": 22}).value == 0.0


def test_a_number_may_have_separators_or_be_a_word_and_one_of_a_quotation_counts_alone():
    assert scored("4,294,967,295", {"number": 4294967295}).value == 1.0
    assert scored("It has three of them.", {"number": 3}).value == 1.0
    assert scored('"The lighthouse of Velm was built in 1832."', {"number": 1832}).value == 1.0
    assert scored("I do not know.", {"number": 22}).parse_ok is False


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("src/click/core.py", 1.0),
        ("It is in `core.py`, line 3.", 1.0),
        ("click-8.1.8/src/click/core.py:12", 1.0),
        ("click/other_core.py", 0.0),
        ("score.py", 0.0),
        ("It is in a.py, or in core.py.", 0.0),
        ("src/click/core", 0.0),
    ],
)
def test_the_first_path_counts_and_may_be_an_end_of_the_right_one(text, value):
    assert scored(text, {"path": "src/click/core.py"}).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("karmardal", 1.0),
        ("That of Karmardal, built before Yaruldal.", 1.0),
        ("Yaruldal, not Karmardal", 0.0),
        ("Karmardale", 0.0),
        ("neither", 0.0),
    ],
)
def test_the_first_of_the_names_counts_whatever_its_case(text, value):
    gold = {"name": "Karmardal", "names": ["Yaruldal", "Karmardal"]}
    assert scored(text, gold).value == value


def test_a_text_counts_where_it_stands_whole():
    assert scored("The value is 'utf-8'.", {"text": "utf-8"}).value == 1.0
    assert scored("utf-80", {"text": "utf-8"}).value == 0.0
    assert scored("D000123", {"name": "D000123"}).value == 1.0


def test_failures_are_told_apart():
    wrong = replace(record(score=0.0), answer="7")
    cases = {
        None: record(score=1.0),
        "error": record(score=None),
        "wrong": wrong,
        "format": replace(wrong, parse_ok=False),
        "no answer": replace(wrong, answer=" ", parse_ok=False),
        "denied": replace(wrong, answer="Not in the corpus: the depot"),
        "timeout": replace(wrong, stop_reason="timeout"),
        "stopped": replace(wrong, stop_reason="iterations"),
    }
    assert {failure: failure_of(each) for failure, each in cases.items()} == {f: f for f in cases}
    assert failure_of(replace(wrong, answer="", stop_reason="errors")) == "error"
    assert failure_of(replace(wrong, answer="No answer was reached: why")) == "no answer"
    assert failure_of(replace(cases[None], stop_reason="timeout")) is None
