from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.indexes.terms import raw_words, separated, word_terms


def terms_of(text: str) -> list[str]:
    return [term.decode() for word in raw_words(text) for term in word_terms(word)]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("get_user_name", ["getusername", "get", "user", "name"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("__init__", ["init"]),
        ("sha256", ["sha256", "sha", "256"]),
        ("a.b-c", ["a", "b", "c"]),
        ("_", []),
        ("3.11", ["3", "11"]),
    ],
)
def test_an_identifier_gives_itself_joined_and_its_parts(text: str, terms: list[str]) -> None:
    assert terms_of(text) == terms


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("ПРИВЕТ", "привет, мир"),
        ("straße", "STRASSE"),
        ("café", "CAFÉ"),
        ("cafe", "un café noir"),
        ("ａｂｃ", "ABC"),
        ("猫", "吾輩は猫である"),
        ("東京", "来週、東京に行く。"),
        ("हिन्दी", "यह हिन्दी है"),
        ("ภาษา", "ผมพูดภาษาไทย"),
        ("пользователь", "имяПользователь"),
        ("getUserName", "get_user_name"),
        ("user", "getUserName"),
    ],
)
def test_a_word_is_found_in_every_script_and_case(query: str, text: str) -> None:
    assert set(terms_of(query)) & set(terms_of(text))


def test_a_digest_is_not_torn_into_letters() -> None:
    assert terms_of("a3f9b2c4d5e6") == ["a3f9b2c4d5e6"]


def test_an_encoded_blob_has_no_terms() -> None:
    assert terms_of("QUJD" * 100) == []


@given(st.text())
def test_cutting_keeps_the_length_and_any_text_has_terms(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    assert len(separated(data)) == len(data)
    for word in raw_words(text):
        terms = word_terms(word)
        assert len(set(terms)) == len(terms)
        assert all(term for term in terms)


@given(st.text(st.characters(categories=["Ll", "Nd"], max_codepoint=0x2FF), min_size=1))
def test_a_lower_case_word_finds_its_upper_case_form(word: str) -> None:
    if len(word) < 60 and word.isalpha() and word.upper().casefold() == word.casefold():
        assert set(terms_of(word)) & set(terms_of(word.upper()))


@given(st.text(max_size=12))
def test_a_word_that_is_one_of_its_terms_is_the_first(text: str) -> None:
    for word in raw_words(text):
        terms = word_terms(word)
        assert word not in terms[1:]
