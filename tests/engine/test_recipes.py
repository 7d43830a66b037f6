"""What computes the answer of a question about records."""

from __future__ import annotations

from collections import Counter

import pytest

from rlm_rag.engine.recipes import is_all_that_is_asked, recipe

ROWS = [
    {"id": "D1", "shop": "north", "price": 5, "visitors": 3, "on": "2025-01-02"},
    {"id": "D2", "shop": "south", "price": None, "visitors": 4, "on": "2025-01-03"},
    {"id": "D3", "shop": "south", "price": 2.5, "visitors": 9},
]


def computed(question: str, name: str = "a.csv", rows: list[dict[str, object]] = ROWS) -> str:
    """What the recipe gives as the answer, "" where there is none."""
    said: list[str] = []
    names = {"rows": rows, "FINAL": said.append, "Counter": Counter}
    exec(recipe(rows, question, name), names)
    return "".join(said)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How many sales were there?", "3 of them"),
        ("How many sales were there in total?", "3 of them"),
        ("What is the number of sales of the shop north?", "3 of them"),
        ("How many visitors had north in total?", "16 in all"),
        ("The average price?", "3.75 on average"),
        ("What is the id of the sale with the largest price?", "D1"),
        ("Which shop had the most recent visitors?", "south"),
        ("What is the lowest number of visitors?", "3"),
        ("Which shop has the most sales? Name it.", "south, with 2 of them"),
        ("How many different shops are there?", "2 of them"),
    ],
)
def test_a_question_of_records_is_computed(question: str, answer: str) -> None:
    assert computed(question) == f"{answer}. Computed in `a.csv:1`."


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the id of the sale with the largest price?", "7"),
        ("Which id has the lowest price?", "8"),
        ("For the ids together, what is the total price?", "90 in all"),
        ("What is the largest id?", "9"),
    ],
)
def test_a_number_that_is_asked_for_is_not_the_one_that_is_compared(
    question: str, answer: str
) -> None:
    rows: list[dict[str, object]] = [{"id": 8, "price": 10}, {"id": 7, "price": 60}]
    rows.append({"id": 9, "price": 20})
    assert computed(question, rows=rows) == f"{answer}. Computed in `a.csv:1`."


@pytest.mark.parametrize(
    "question",
    [
        "How many visitors did it have in total, over all the years of its table?",
        "In total, how many visitors were there over all the years?",
        "How many visitors were there altogether in these years?",
        "What is the sum of the visitors of all years?",
        "Over all years, what is the total number of visitors?",
    ],
)
def test_a_total_is_of_what_is_counted_and_not_of_what_it_is_counted_over(question: str) -> None:
    rows: list[dict[str, object]] = [{"year": 2001, "visitors": 3}, {"year": 2002, "visitors": 4}]
    assert computed(question, rows=rows) == "7 in all. Computed in `a.csv:1`."


@pytest.mark.parametrize(
    "question",
    [
        *("What did D2 say?", "Which is the largest?", "Who?", ""),
        "How many sales were not of the north?",
        "How many sales weren't of the north?",
        "How many sales cost more than 3?",
        "How many visitors were there in total in March?",
        "How many sales has each shop?",
        "What is the largest price before the 2nd of May?",
    ],
)
def test_a_question_that_is_not_plain_has_no_recipe(question: str) -> None:
    assert recipe(ROWS, question, "a.csv") == ""


def test_records_without_columns_have_no_recipe_but_their_count() -> None:
    assert recipe([], "What is the largest price?", "a.csv") == ""
    assert computed("How many are there?", rows=[{}]) == "1 of them. Computed in `a.csv:1`."


@pytest.mark.parametrize("name", ["a/*.csv", "{exit()}.csv", "a'b\"c.csv", "a\nb.csv"])
def test_what_is_no_plain_path_is_not_cited(name: str) -> None:
    assert computed("How many are there?", name) == "3 of them."


@pytest.mark.parametrize("column", ["x'] or exit() #", "{exit()}", 'a"b', "two words"])
def test_columns_of_any_name_stay_names(column: str) -> None:
    rows: list[dict[str, object]] = [{column: 2}, {column: 3}]
    for word in ("total", "largest"):
        code = recipe(rows, f"What is the {word} {column}?", "a.csv")
        assert "exit()" not in code or repr(column) in code
        assert code == "" or computed(f"What is the {word} {column}?", rows=rows)


SALES: list[dict[str, object]] = [
    {"id": n, "shop": shop, "status": status, "price": n}
    for n, (shop, status) in enumerate([("North", "open"), ("South", "closed")] * 5)
]


@pytest.mark.parametrize(
    "question",
    [
        "How many sales are there in total?",
        "How many sales have the status open?",
        "How many sales of the shop South have the status open?",
        "How many sales have the state open?",
        "How many sales are there of North or South?",
        "Which shop has the most sales with the status closed? Name it.",
        "What is the id of the sale with the largest price?",
        "What is the largest price of a sale of the shop North?",
        "How many different shops are there?",
    ],
)
def test_a_question_whose_words_are_all_of_the_records_is_answered(question: str) -> None:
    assert is_all_that_is_asked(SALES, question, "data/sales.csv")


@pytest.mark.parametrize(
    "question",
    [
        "How many sales have the status pending?",
        "How many sales have the status open in Berlin?",
        "How many Berlin open sales are there?",
        "How many dragons are there?",
        "How many distinct cities are there?",
        "How many more sales are open than closed?",
        "How many sales are open and how many closed?",
        "How many sales have the largest price?",
        "How many sales? Which shop?",
        "Which sale has the largest price?",
        "Which row has the highest price?",
        "Who has the smallest price?",
        "What percentage of sales is open?",
        "How many sales have two prices?",
    ],
)
def test_a_question_with_a_word_that_nothing_stands_for_is_not(question: str) -> None:
    assert not is_all_that_is_asked(SALES, question, "data/sales.csv")


def test_words_of_the_page_around_a_table_are_accounted_for() -> None:
    rows = [{"year": 2001, "visitors": 3}, {"year": 2002, "visitors": 4}]
    question = "How many visitors did the lighthouse of Oral have in total, over all the years?"
    page = "Visitors of the lighthouse of Oral:"
    assert is_all_that_is_asked(rows, question, "a.md", text=page)
    assert not is_all_that_is_asked(rows, question, "a.md", text="Visitors of the mill:")
