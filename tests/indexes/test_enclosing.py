"""Definitions around and in a few lines of code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.indexes.enclosing import NamedDefinitions, header_above
from rlm_rag.indexes.forms import Language
from rlm_rag.indexes.languages import language_of

NESTED = """class Reader:
    def __init__(self):
        self.at = 0

    def read(
        self, size: int
    ) -> bytes:
        # skip
        if size:
            return self.more(size)
        return b""

    name = "reader"


def main():
    pass


VALUE = 3
"""
GO = "func First() int {\n\treturn 1\n}\n\nfunc (r *Reader) Read(n int) int {\n\tif n > 0 {\n"


def language(path: str) -> Language:
    found = language_of(path)
    assert found is not None
    return found


def header(text: str, last: int, path: str = "a.py") -> int | None:
    lines = text.split("\n")[: last + 1]
    return header_above("\n".join(lines).encode(), language(path))


@pytest.mark.parametrize(
    ("line", "begins"),
    [
        (2, 1),
        (4, 4),
        (5, 4),
        (6, 4),
        (7, 4),
        (9, 4),
        (10, 4),
        (12, 0),
        (15, 15),
        (16, 15),
        (19, 19),
    ],
)
def test_the_innermost_definition_that_holds_a_line(line: int, begins: int | None) -> None:
    assert header(NESTED, line) == begins


@pytest.mark.parametrize(("line", "begins"), [(1, 0), (4, 4), (5, 4)])
def test_braces_are_read_by_their_indentation(line: int, begins: int) -> None:
    assert header(GO, line, "a.go") == begins


@given(st.text("d ef(x):\n\t{}ég", max_size=300))
def test_a_header_is_a_line_of_the_text(text: str) -> None:
    found = header_above(text.encode(), language("a.py"))
    assert found is None or 0 <= found <= text.count("\n")


def test_what_no_definition_holds_has_none() -> None:
    assert header("def f(x):\n    return 1\n\nif x:\n    y = f(1)\n", 4) is None
    assert header("x = 1\n    y = f(1)\n", 1) is None


def test_a_name_counts_by_what_the_query_has_of_it() -> None:
    named = NamedDefinitions({b"parse": 1.0, b"header": 3.0}, {b"headers": 1.5})
    python = language("a.py")
    assert named.share(b"def parse_header():\n", [0], python) == 1.0
    assert named.share(b"x = 1\ndef header():\n", [0, 1], python) == 0.75
    assert named.share(b"x = 1\ndef header():\n", [0], python) == 0.0
    assert named.share(b"def headers():\n", [0], python) == 0.375
    assert named.share(b"def header_of_it():\n", [0], python) == pytest.approx(0.75 / 3**0.5)
    assert named.share(b"parse_header()\n", [0], python) == 0.0
    assert named.share(b"def other():\n\ndef parse():\n", [2, 0], python) == 0.25


def test_what_a_name_belongs_to_counts_by_half_where_the_name_has_a_part_of_the_query() -> None:
    named = NamedDefinitions({b"parse": 1.0, b"header": 3.0}, {})
    assert named.of_name(b"parse") == 0.25
    assert named.of_name(b"parse", (b"Mail", b"HeaderReader")) == (1.0 + 1.5) / 4
    assert named.of_name(b"parse", (b"Parser", b"Parse")) == 0.25
    assert named.of_name(b"parse_header", (b"Header",)) == 1.0
    assert named.of_name(b"other", (b"Header",)) == 0.0
