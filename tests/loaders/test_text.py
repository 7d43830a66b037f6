"""Bytes become the text that was meant, or are told to be none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.loaders.text import decode_text


@given(text=st.text(st.characters(exclude_characters="\x00\ufeff", exclude_categories=["Cs"])))
def test_utf_8_comes_out_exactly(text: str) -> None:
    decoded = decode_text(text.encode())
    if text.startswith("%PDF-"):
        return
    assert decoded is not None
    assert (decoded.content, decoded.encoding, decoded.warning) == (text, "utf-8", None)


@given(data=st.binary(max_size=200))
def test_any_bytes_are_text_or_binary_and_never_an_exception(data: bytes) -> None:
    decoded = decode_text(data)
    assert decoded is None or isinstance(decoded.content, str)


@pytest.mark.parametrize(
    ("codec", "encoding"),
    [
        ("utf-8-sig", "utf-8-sig"),
        ("utf-16", "utf-16"),
        ("utf-32", "utf-32"),
    ],
)
def test_a_byte_order_mark_decides_and_is_no_part_of_the_text(codec: str, encoding: str) -> None:
    decoded = decode_text("café\r\nx\n".encode(codec))
    assert decoded is not None
    assert (decoded.content, decoded.encoding) == ("café\r\nx\n", encoding)


def test_big_endian_marks_are_read_too() -> None:
    for mark, codec in ((b"\xfe\xff", "utf-16-be"), (b"\x00\x00\xfe\xff", "utf-32-be")):
        decoded = decode_text(mark + "é\n".encode(codec))
        assert decoded is not None and decoded.content == "é\n"


def test_one_bad_byte_in_much_good_text_is_replaced_and_said() -> None:
    decoded = decode_text("café ".encode() * 2000 + b"\xff\n")
    assert decoded is not None
    assert decoded.content == "café " * 2000 + "\ufffd\n"
    assert decoded.warning == "1 bad utf-8 sequence replaced by U+FFFD"


def test_a_file_that_holds_u_fffd_itself_lost_nothing() -> None:
    decoded = decode_text("test \ufffd\n".encode())
    assert decoded is not None and decoded.warning is None


def test_text_that_was_never_utf_8_is_read_as_cp1252_or_latin_1() -> None:
    smart = decode_text(b"smart \x93quotes\x94 \x80 100\n" + b"plain " * 2000)
    assert smart is not None
    assert smart.content.startswith("smart \u201cquotes\u201d € 100\n")
    assert smart.encoding == "cp1252" and "guess" in str(smart.warning)
    undefined = decode_text(b"\x81\xe9")
    assert undefined is not None and undefined.encoding == "latin-1"


@pytest.mark.parametrize(
    "data",
    [
        b"a\0b\n",
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
        b"%PDF-1.4\n%\xe2\xe3\n",
        bytes(range(1, 256)) * 4,
        b"\xff\xfe" + b"\x00\xd8" * 100,
    ],
)
def test_binary_is_told_from_text(data: bytes) -> None:
    assert decode_text(data) is None


def test_a_late_nul_is_text() -> None:
    data = b"text " * 3000 + b"\0more\n"
    decoded = decode_text(data)
    assert decoded is not None and decoded.content == data.decode()


def test_line_ends_and_odd_characters_stay() -> None:
    text = "a\r\nb\rc\n\x0c\u2028\x85\x1b[31m\n"
    decoded = decode_text(text.encode())
    assert decoded is not None and decoded.content == text
