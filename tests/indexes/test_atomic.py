"""Possessive repeats of groups, written so that no CPython lets them overrun."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.indexes.atomic import without_possessive_groups


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        (rb"(?:ab?c)*+d", rb"(?>(?:ab?c)*)d"),
        (rb"(?:a(b|c){0,3}+)?+", rb"(?>(?:a(?>(b|c){0,3}))?)"),
        (rb"[^()]*+\)++(?P<x>y)++", rb"[^()]*+\)++(?>(?P<x>y)+)"),
        (rb"[])(]*+(?:a)+b{1,2}+", rb"[])(]*+(?:a)+b{1,2}+"),
        (rb"(?=x)(?<!\()a?+", rb"(?=x)(?<!\()a?+"),
    ],
)
def test_only_groups_are_written_otherwise(pattern: bytes, written: bytes) -> None:
    assert without_possessive_groups(pattern) == written
    re.compile(written)


def test_what_an_older_python_lets_overrun_ends_where_it_does() -> None:
    written = without_possessive_groups(rb"(?:ab?c)*+")
    found = re.match(written, b"acabcab")
    assert found is not None and found[0] == b"acabc"


@given(st.text("abc", max_size=12))
def test_the_meaning_stays(text: str) -> None:
    # Within these groups nothing is tried again, so that no Python errs in them.
    for pattern in (rb"(?:a|b)*+c", rb"(?:ab){0,2}+a", rb"((?:a)?+b)++c?"):
        plain, other = re.compile(pattern), re.compile(without_possessive_groups(pattern))
        spans = [
            [found.span() for found in each.finditer(text.encode())] for each in (plain, other)
        ]
        assert spans[0] == spans[1]
