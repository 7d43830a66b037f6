"""The values of records that a question names, as a condition on them."""

from __future__ import annotations

import pytest

from rlm_rag.engine.conditions import filtered, lacks_a_value, out_of_reach

ROWS = [
    {"id": f"D{n}", "shop": shop, "kind": kind, "note": "The north of it, once more", "price": n}
    for n, (shop, kind) in enumerate(
        [("North End", "book"), ("South", "pen"), ("North End", "pen"), ("South", "shop")] * 3
    )
]


@pytest.mark.parametrize(
    ("question", "condition"),
    [
        ("How many sales were there?", ""),
        ("How many books were sold?", "r.get('kind') == 'book'"),
        ("How many sales of kind book?", "r.get('kind') == 'book'"),
        ("The largest price of a Book in north end's shop?", "both"),
        ("Are there more of pen or of book?", "r.get('kind') in ['book', 'pen']"),
        ("Which bookend and pencils are northern?", ""),
        ("What is the price of D3?", ""),
        ("How many sales were not of kind book?", ""),
        ("How many books did shops other than South sell?", ""),
        ("Which shop sold most?", ""),
    ],
)
def test_a_question_names_values_of_columns(question: str, condition: str) -> None:
    both = "r.get('shop') == 'North End' and r.get('kind') == 'book'"
    wanted = both if condition == "both" else condition
    every = "records('a.csv')"
    expected = f"[r for r in {every} if {wanted}]" if wanted else every
    assert filtered(ROWS, question, "a.csv") == expected


def test_a_value_without_words_and_cells_that_are_no_text_are_no_condition() -> None:
    rows = [{"a": "---", "b": None, "c": ["x"]}, {"a": "---", "b": 12, "c": ["x"]}]
    assert filtered(rows, "What is --- of 12 and x?", "a.csv") == "records('a.csv')"


def test_a_question_that_names_values_of_every_column_is_left_to_the_model() -> None:
    rows = [{name: f"value {name}" for name in "abcd"}] * 2
    question = "value a, value b, value c, value d?"
    assert filtered(rows, question, "a.csv") == "records('a.csv')"


def test_names_of_hostile_columns_stay_strings() -> None:
    rows = [{"'] or exit() #": "north"}] * 2
    assert eval(filtered(rows, "How many of north?", "a.csv"), {"records": lambda _: rows}) == rows


@pytest.mark.parametrize(
    ("question", "lacks"),
    [
        ("How many sales have the kind notebook?", True),
        ("How many books did the shop East End sell?", True),
        ("What is the largest price of the shops in Oslo?", True),
        ("How many sales of the shop South have the kind pen?", False),
        ("How many sales were there in Oslo?", False),
        ("Which shop sold most pens in Oslo?", False),
        ("How many different kinds were sold in Oslo?", False),
        ("What is the id of the largest sale in Oslo?", False),
    ],
)
def test_a_column_that_is_named_without_a_value_that_is_known_is_told(
    question: str, lacks: bool
) -> None:
    assert lacks_a_value(ROWS, question) is lacks


NESTED = [
    {"user": {"name": f"u{n}", "city": city, "tags": [tag], "home": {"street": "Long Lane"}}}
    for n, (city, tag) in enumerate([("Tolm", "red"), ("Varn", "blue")] * 3)
]


@pytest.mark.parametrize(
    ("question", "count"),
    [
        ("How many users live in Tolm?", 3),
        ("How many users live in Tolm or Varn?", 6),
        ("How many users are there?", 9),
        ("How many users do not live in Tolm?", 9),
    ],
)
def test_a_value_within_a_cell_is_a_condition(question: str, count: int) -> None:
    rows = [*NESTED, {"user": "Tolm"}, {"user": None}, {}]
    assert len(eval(filtered(rows, question, "a.jsonl"), {"records": lambda _: rows})) == count


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("How many users have the tag red?", ("red", "user")),
        ("How many users live in Long Lane?", ("Long Lane", "user")),
        ("How many users live in Tolm?", None),
        ("How many users are there?", None),
    ],
)
def test_a_named_value_that_no_condition_reaches_is_told(
    question: str, found: tuple[str, str] | None
) -> None:
    assert out_of_reach(NESTED, question) == found


def test_a_list_of_texts_at_the_top_is_out_of_reach() -> None:
    rows = [{"id": n, "tags": ["red", "blue"]} for n in range(3)]
    assert out_of_reach(rows, "How many have the tag blue?") == ("blue", "tags")


def test_a_column_within_a_cell_whose_value_no_row_has_is_lacking() -> None:
    assert lacks_a_value(NESTED, "How many users have the city Oslo?")
    assert not lacks_a_value(NESTED, "How many users have the city Tolm?")
