"""Which questions have a word that what computes an answer takes no account of."""

from __future__ import annotations

import pytest

from rlm_rag.engine.accounted import accounts_for

KNOWN = ("tests/test_parser.py", "test", "function", "class", "define")


@pytest.mark.parametrize(
    ("question", "is_so"),
    [
        ("How many test functions does tests/test_parser.py define?", True),
        ("How many classes are in test_parser.py?", True),
        ("How many functions in test_parser.py take two arguments?", False),
        ("How many functions of tests/test_lexer.py?", False),
        ("How many functions, and how many classes?", False),
        ("Which function is there?", False),
        ("", True),
    ],
)
def test_every_word_has_to_stand_for_something(question: str, is_so: bool) -> None:
    assert accounts_for(question, names=KNOWN) == is_so
