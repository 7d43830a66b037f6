"""Chunks cover their text, fit their budget, and end where the text allows it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.engine.chunks import Chunk, split
from rlm_rag.lines import count_lines, line_starts
from rlm_rag.models.tokens import count_tokens

words = st.text(st.sampled_from("ab d(1.@#é語\t\u2028"), max_size=40)
ends = st.sampled_from(["\n", "\r\n", "\n\n", "\r", ""])
texts = st.lists(st.tuples(words, ends), max_size=60).map(lambda parts: "".join(sum(parts, ())))
borders = st.lists(st.tuples(st.integers(0, 80), st.integers(0, 3)), max_size=10)


@given(texts, st.integers(16, 120), borders)
def test_chunks_are_the_text_in_order_each_within_the_budget(text, budget, places):
    chunks = split(text, budget_tokens=budget, borders=places)
    assert "".join(chunk.text for chunk in chunks) == text
    assert all(chunk.text and count_tokens(chunk.text) <= budget for chunk in chunks)


@given(texts, st.integers(16, 120), borders)
def test_line_ranges_are_those_of_the_whole_text(text, budget, places):
    starts = [*line_starts(text), len(text)]
    at = 0
    for chunk in split(text, budget_tokens=budget, borders=places):
        assert starts[chunk.line - 1] <= at
        at += len(chunk.text)
        assert at <= starts[chunk.end_line]
        assert at > starts[chunk.end_line - 1]
    assert at == len(text)


@given(st.lists(st.booleans(), min_size=4, max_size=80), st.integers(16, 60))
def test_a_chunk_ends_at_a_border_where_its_second_half_has_one(marks, budget):
    lines = ["x = 1\n"] * len(marks)
    cost = count_tokens(lines[0])
    places = [(number, 0) for number, marked in enumerate(marks, 1) if marked]
    chunks = split("".join(lines), budget_tokens=budget, borders=places)
    known = {line for line, _ in places}
    for chunk in chunks[:-1]:
        fitting = budget // cost
        halfway = chunk.line + fitting // 2 + 1
        if known & set(range(halfway, chunk.line + fitting + 1)):
            assert chunk.end_line + 1 in known


def test_definitions_come_before_paragraphs_and_outer_ones_before_inner():
    text = "a = 1\n" * 7 + "class D:\n    def e(self): ...\n\nf = 6\ng = 7\n"
    # All but the last line; each is rounded up by itself.
    budget = sum(map(count_tokens, text.splitlines(keepends=True)[:-1]))
    text += text
    assert next(c.end_line for c in split(text, budget_tokens=budget)) == 10
    assert next(c.end_line for c in split(text, budget_tokens=budget, borders=[(9, 1)])) == 8
    both = split(text, budget_tokens=budget, borders=[(8, 0), (9, 1)])
    assert next(chunk.end_line for chunk in both) == 7


def test_what_stands_right_above_a_definition_stays_with_it():
    text = "x = 1\n" * 8 + "# why\n@cached\ndef f():\n    pass\n"
    chunks = split(text, budget_tokens=count_tokens(text) - 2, borders=[(11, 0)])
    assert [(chunk.line, chunk.end_line) for chunk in chunks] == [(1, 8), (9, 12)]


def test_a_line_too_long_for_a_chunk_is_cut_at_spaces():
    text = "word " * 100
    chunks = split(text, budget_tokens=16)
    assert all(chunk.text.endswith(" ") for chunk in chunks)
    assert {(chunk.line, chunk.end_line) for chunk in chunks} == {(1, 1)}


def test_a_text_that_fits_is_one_chunk_and_an_empty_one_none():
    assert split("a\nb\n", budget_tokens=16) == [Chunk(1, 2, "a\nb\n")]
    assert split("", budget_tokens=16) == []
    with pytest.raises(ValueError, match="at least"):
        split("a", budget_tokens=1)


def test_a_large_text_is_split_in_few_chunks():
    text = "def f(a):\n    return a + 1\n\n\n" * 2000
    borders = [(1 + 4 * n, 0) for n in range(2000)]
    chunks = split(text, budget_tokens=4000, borders=borders)
    assert len(chunks) <= 1.5 * count_tokens(text) / 4000 + 1
    assert all(chunk.line % 4 == 1 for chunk in chunks)
    assert sum(count_lines(chunk.text) for chunk in chunks) == 8000
