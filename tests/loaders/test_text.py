"""Bytes become the text that was meant, or are told to be none."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag import packing
from rlm_rag.loaders import reading, text
from rlm_rag.loaders.source import load_corpus
from rlm_rag.loaders.text import decode_text, is_plain_utf_8


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


def test_one_bad_byte_in_a_short_text_does_not_spoil_the_rest() -> None:
    decoded = decode_text("größe café\n".encode() * 3 + b"Fran\xe7ois\n")
    assert decoded is not None
    assert decoded.content == "größe café\n" * 3 + "Fran\ufffdois\n"
    assert decoded.warning == "1 bad utf-8 sequence replaced by U+FFFD"
    for encoding in ("koi8-r", "cp1251", "gbk", "euc_kr", "big5", "cp932"):
        short = decode_text(PHRASES[encoding].encode(encoding))
        assert short is not None and short.encoding != "utf-8"


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


PHRASES = {
    "cp932": "データベース接続を初期化する。",
    "euc_jp": "設定ファイルを読み込み、エラーを記録します。",
    "iso2022_jp": "データベース接続を初期化する。",
    "euc_kr": "데이터베이스 연결을 초기화한다.",
    "gbk": "如果文件不存在则抛出异常，并返回结果。",
    "big5": "初始化資料庫連線並傳回結果。",
    "koi8-r": "Инициализация соединения с базой данных",
    "cp1251": "Привет, мир. Это проверка кодировки.",
    "cp1252": "it’s the user’s file – don’t touch",
    "cp437": "┌──┐\n│ hi │\n└──┘",
}


@pytest.mark.parametrize("encoding", PHRASES)
def test_text_of_another_encoding_comes_out_as_written(encoding: str) -> None:
    text = f"class A {{}}\n{PHRASES[encoding]}\n" + "plain ascii\n" * 3
    decoded = decode_text(text.encode(encoding))
    assert decoded is not None and decoded.content == text
    assert decoded.encoding != "utf-8"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["class A {}\r\n", PHRASES["gbk"] + "\n", "Привет, мир\n"])
def test_utf_16_without_a_mark_is_told_by_what_it_decodes_to(encoding: str, text: str) -> None:
    decoded = decode_text((text * 9).encode(encoding))
    assert decoded is not None
    assert (decoded.content, decoded.encoding, decoded.warning) == (text * 9, encoding, None)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("#!/usr/bin/ruby\n# encoding: euc-jp\nputs 'データ'\n", "euc_jp"),
        ("# -*- coding: latin-1 -*-\nname = 'François'\n", "iso8859-1"),
        ('<?xml version="1.0" encoding="ISO-8859-2"?><a>Zażółć</a>', "iso8859-2"),
        ('<html><head><meta charset="windows-1251"><p>Привет', "cp1251"),
        ('<meta http-equiv=Content-Type content="text/html; charset=ISO-8859-1">“é”', "cp1252"),
    ],
)
def test_what_a_file_declares_of_itself_holds(text: str, encoding: str) -> None:
    decoded = decode_text(text.encode(encoding))
    assert decoded is not None
    assert (decoded.content, decoded.encoding, decoded.warning) == (text, encoding, None)


def test_a_declaration_that_is_false_or_no_encoding_of_text_is_passed_over() -> None:
    for name in ("base64", "unicode_escape", "no-such", "ascii", "euc-jp"):
        decoded = decode_text(f"# coding: {name}\n# François\n".encode("latin-1"))
        assert decoded is not None and decoded.content.endswith("# François\n")
        assert "guess" in str(decoded.warning)


def test_what_a_server_says_comes_before_a_guess() -> None:
    data = "Zażółć".encode("iso8859-2")
    decoded = decode_text(data, charset="ISO-8859-2")
    assert decoded is not None and (decoded.content, decoded.warning) == ("Zażółć", None)


def test_surrogates_in_utf_8_are_joined_or_lost_alone() -> None:
    joined = decode_text(b"x\xed\xa0\xbd\xed\xb8\x80y")
    assert joined is not None and (joined.content, joined.warning) == ("x\U0001f600y", None)
    alone = decode_text(b"x\xed\xa0\x80y")
    assert alone is not None and alone.content == "x\ufffdy"
    assert alone.warning == "1 bad utf-8 sequence replaced by U+FFFD"


@given(
    data=st.one_of(st.text().map(str.encode), st.binary(max_size=50)), piece_bytes=st.integers(1, 9)
)
def test_what_is_plain_is_told_without_making_text_of_it(data: bytes, piece_bytes: int) -> None:
    decoded = decode_text(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_PIECE_BYTES", piece_bytes)
        is_plain = is_plain_utf_8(data)
    if is_plain:
        assert decoded == (data.decode(), "utf-8", None)
    elif decoded is not None and not {0, 27}.intersection(data):
        assert decoded.warning is not None or decoded.encoding != "utf-8"


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_a_large_file_is_read_as_a_small_one_is(
    tmp_path: Path, codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_bytes("größe café\r\n".encode(codec) * 50)
    with load_corpus(tmp_path, keeping=None) as corpus:
        (small,), warnings, fingerprint = list(corpus), corpus.warnings, corpus.fingerprint
    monkeypatch.setattr(reading, "_LARGE_BYTES", 10)
    monkeypatch.setattr(packing, "_WRITE_THROUGH_BYTES", 100)
    with load_corpus(tmp_path, keeping=None) as corpus:
        assert list(corpus) == [small]
        assert (corpus.warnings, corpus.fingerprint) == (warnings, fingerprint)
        assert corpus[0].encoding == small.encoding


def test_a_large_file_that_is_plain_text_is_held_once(tmp_path: Path) -> None:
    size_bytes = 20 << 20
    (tmp_path / "a.log").write_bytes(
        b"12:00 request took 7 ms \xf0\x9f\x99\x82\n" * (size_bytes // 29)
    )
    tracemalloc.start()
    try:
        load_corpus(tmp_path, keeping=None).close()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # In pieces first, and then in one.
    assert peak < 2.5 * size_bytes
