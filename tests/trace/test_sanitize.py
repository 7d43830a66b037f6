"""Nothing that a terminal would obey or hide gets through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.trace.sanitize import printable, printable_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("dos\r\nlines", "dos\nlines"),
        ("over\rwritten", "over\\x0dwritten"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x9b31m", "\\x9b31m"),
        ("\x00\x07\x7f", "\\x00\\x07\\x7f"),
        ("a\ud800b", "a\\ud800b"),
        ("a\u202eb\u2066c", "a\\u202eb\\u2066c"),
        ("\ufeffa\u200bb\u2028c", "\\ufeffa\\u200bb\\u2028c"),
        ("\U000e0041", "\\U000e0041"),
        ("naïve 中文 🙂 👨‍👩‍👧", "naïve 中文 🙂 👨‍👩‍👧"),
    ],
)
def test_controls_are_shown_and_the_rest_is_left(text, shown):
    assert printable(text) == shown


@given(st.text(st.characters()))
def test_the_result_encodes_and_holds_no_control(text):
    shown = printable(text)
    shown.encode("utf-8")
    assert all(char in "\n\t" or not (ord(char) < 32 or 127 <= ord(char) < 160) for char in shown)
    assert printable(shown) == shown


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("src/naïve 中文.py", "src/naïve 中文.py"),
        ("a\nb\tc\r\nd", "a\\x0ab\\x09c\\x0d\\x0ad"),
        ("\x1b[2K\x85\u2028", "\\x1b[2K\\x85\\u2028"),
    ],
)
def test_a_path_stays_on_its_line(path, shown):
    assert printable_line(path) == shown


@given(st.text())
def test_whatever_a_path_holds_it_is_one_line(path):
    assert len(printable_line(f"a{path}b").splitlines()) == 1
