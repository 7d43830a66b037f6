"""A quote is marked where it stands, across lines, and whatever its white space was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.engine.quotes import fold, marks_of


def marked(quote: str, lines: list[str]) -> list[tuple[int, str]]:
    return [(number, lines[number][first:end]) for number, first, end in marks_of(quote, lines)]


@pytest.mark.parametrize(
    ("quote", "lines", "found"),
    [
        ("a quick fox", ["see", "  a  quick", "\tfox runs"], [(1, "a  quick"), (2, "fox")]),
        ("part of", ["a part of", "a word"], [(0, "part of")]),
        ("ick fo", ["a quick fox"], [(0, "ick fo")]),
        ("it ends here.", ["it ends here"], [(0, "it ends here")]),
        ("begins ... ends", ["it begins", "then", "it ends"], [(0, "begins"), (2, "ends")]),
        ("one … two", ["one two three"], [(0, "one two")]),
        ("over an", ["over", "", "   ", "an empty line"], [(0, "over"), (3, "an")]),
        ("nowhere", ["some", "lines"], []),
        ("anything", [], []),
    ],
)
def test_a_quote_is_marked_where_it_stands(
    quote: str, lines: list[str], found: list[tuple[int, str]]
) -> None:
    assert marked(quote, lines) == found


@given(st.lists(st.text("ab \t\u3000é", max_size=12), max_size=6), st.data())
def test_what_is_marked_is_the_quote(lines: list[str], data: st.DataObject) -> None:
    text = fold(" ".join(lines))
    begin = data.draw(st.integers(0, len(text)))
    quote = fold(text[begin : begin + data.draw(st.integers(1, 20))])
    pieces = [piece for _, piece in marked(quote, lines)] if quote else []
    assert fold(" ".join(pieces)) == quote
