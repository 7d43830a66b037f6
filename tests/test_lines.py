"""The line rules that everything counts by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag import lines as line_rules
from rlm_rag.lines import count_lines, line_at, line_starts, split_lines, split_lines_bytes

ANY_CHARACTER = st.characters(codec=None) | st.sampled_from("\r\n\r\n\x00\ufeff\ud800\u2028\x85")
ANY_TEXT = st.text(ANY_CHARACTER, max_size=60)
TERMINATED = st.text(st.sampled_from("a\r\nb\u2028\x0b\x0c\x85é"), max_size=40)


def naive_lines(text: str) -> list[str]:
    lines, line, lf = [], "", "\n" in text
    for character in text:
        if character == ("\n" if lf else "\r"):
            lines.append(line[:-1] if lf and line.endswith("\r") else line)
            line = ""
        else:
            line += character
    return [*lines, line] if line else lines


@given(text=ANY_TEXT | TERMINATED)
def test_lines_agree_with_a_naive_reader_and_across_text_and_bytes(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    lines = naive_lines(text)
    encoded = [line.encode("utf-8", "surrogatepass") for line in lines]
    assert split_lines(text) == lines
    assert split_lines_bytes(data) == split_lines_bytes(memoryview(data)) == encoded
    for given_as in (text, data, bytearray(data), memoryview(data)):
        starts = line_starts(given_as)
        assert len(starts) == count_lines(given_as) == len(lines)
    for start, line in zip(line_starts(text), lines, strict=True):
        assert text[start:].startswith(line)
    for start, encoded_line in zip(line_starts(data), encoded, strict=True):
        assert data[start:].startswith(encoded_line)


@given(text=TERMINATED)
def test_lines_do_not_depend_on_where_a_large_text_is_cut(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_rules, "_CHUNK", 3)
        small = line_starts(text), count_lines(memoryview(text.encode()))
    assert small == (line_starts(text), count_lines(text))


@given(text=TERMINATED.filter(bool))
def test_every_offset_lies_in_the_line_that_starts_at_or_before_it(text: str) -> None:
    starts = line_starts(text)
    for offset in range(len(text)):
        line = line_at(starts, offset)
        assert starts[line - 1] <= offset
        assert line == len(starts) or offset < starts[line]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("\n", [""]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\rb\rc\r", ["a", "b", "c"]),
        ("a\r\nb\nc\rd", ["a", "b", "c\rd"]),
        ("a\nb\r", ["a", "b\r"]),
        ("a\u2028b\x85c\x0bd\x0ce", ["a\u2028b\x85c\x0bd\x0ce"]),
    ],
)
def test_a_line_ends_where_the_design_says(text: str, lines: list[str]) -> None:
    assert split_lines(text) == lines
