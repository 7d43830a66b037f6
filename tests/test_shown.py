"""Nothing that a terminal would obey or hide gets through."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.shown import (
    json_text,
    printable,
    printable_json,
    printable_line,
    unescaped,
    with_bytes,
)


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


@given(st.text(st.characters(exclude_characters="\\")))
def test_what_was_escaped_is_read_back(text):
    assert unescaped(printable_line(text)) == text
    assert unescaped(repr(f"'{text}")[1:-1]) == f"'{text}"


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


JSON = st.recursive(
    st.text(st.characters() | st.sampled_from("\ud83d\ude00\\")) | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(JSON)
def test_json_is_unicode_and_else_what_it_was(value):
    spelled = json.loads(json_text(value))
    assert json_text(value).isascii()
    json.dumps(spelled, ensure_ascii=False).encode("utf-8")
    if json.dumps(value, ensure_ascii=False).isascii():
        assert spelled == value


def test_a_lone_surrogate_in_json_is_spelled_out():
    value = {"\udc00": ["a\ud800b", "\\ud800", "\U0001f600", "\ud83d\ude00"]}
    spelled = {"\\udc00": ["a\\ud800b", "\\ud800", "\U0001f600", "\\ud83d\\ude00"]}
    assert json.loads(json_text(value)) == spelled
    assert json_text({"a": [1]}, indent=2) == json.dumps({"a": [1]}, indent=2)


@given(JSON)
def test_printable_json_is_the_same_json(value):
    text = json.dumps(value, ensure_ascii=False, indent=1).replace("\n", "\r\n")
    shown = printable_json(text)
    assert json.loads(shown) == value
    assert printable(shown) == shown


def test_bytes_of_a_name_are_shown_as_a_document_has_them():
    assert with_bytes("src/caf\udce9 é\udcff.py") == "src/caf\\xe9 é\\xff.py"
