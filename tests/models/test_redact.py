"""No key survives in what a provider said, and what it said stays readable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.models.redact import (
    MAX_PROVIDER_MESSAGE_CHARS,
    REDACTED,
    environment_secrets,
    provider_text,
    redact,
)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Incorrect API key provided: sk-proj-abc123def456.", "abc123def456"),
        ("Incorrect API key provided: sk-ab***********wxyz.", "wxyz"),
        ("header Authorization: Bearer eyJhbGciOi.abc-123_x", "eyJhbGciOi"),
        ("https://host/v1?key=AIzaSyA1234567890abcdef&x=1", "AIzaSyA"),
        ('{"api_key": "0123456789abcdef"}', "0123456789abcdef"),
        ("x-api-key: f00ba7f00ba7", "f00ba7"),
        ("password=correcthorse", "correcthorse"),
        ("token ghp_abcdefghijklmnop expired", "abcdefghijklmnop"),
        ("AKIAIOSFODNN7EXAMPLE is not known", "IOSFODNN7"),
        ("proxy http://user:hunter2@proxy.example failed", "hunter2"),
    ],
)
def test_whatever_looks_like_a_key_is_taken_out(text: str, secret: str) -> None:
    assert secret not in redact(text)
    assert REDACTED in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "Bearer authentication is required",
        "max_tokens: 123456789 is too high",
        "unknown key: temperature",
        "The model `risk-averse` does not exist",
        "task_description is missing",
    ],
)
def test_plain_words_stay(text: str) -> None:
    assert redact(text) == text


@given(
    st.text(st.characters(codec="ascii", exclude_characters="\x00"), min_size=8).filter(str.strip),
    st.text(),
    st.text(),
)
def test_a_known_secret_never_comes_through(secret: str, before: str, after: str) -> None:
    if secret in REDACTED * 3:
        return
    shown = redact(f"{before}{secret}{after}", [secret])
    assert secret not in shown.replace(REDACTED, "\0")


def test_a_secret_that_holds_another_is_taken_out_whole() -> None:
    assert redact("abcdefghijkl", ["abcdefgh", "abcdefghijkl"]) == REDACTED


def test_secrets_of_the_environment_are_known_by_their_names() -> None:
    found = environment_secrets(
        {
            "OPENAI_API_KEY": " value-one ",
            "AWS_SECRET_ACCESS_KEY": "value-two",
            "HF_TOKEN": "value-three",
            "SHORT_KEY": "abc",
            "KEYBOARD": "not-a-secret",
            "PATH": "/usr/bin:/bin",
        }
    )
    assert found == {"value-one", "value-two", "value-three"}


def test_a_long_message_is_one_short_line_without_controls() -> None:
    shown = provider_text("line one\nline two\x1b[31m\x00\r\n" + "word " * 100_000)
    assert len(shown) <= MAX_PROVIDER_MESSAGE_CHARS
    assert shown.startswith("line one line two")
    assert shown.isprintable()


@pytest.mark.parametrize("padding", range(19_980, 20_020, 3))
def test_a_key_at_the_cut_does_not_come_through(padding: int) -> None:
    key = "a-known-key-without-a-shape"
    # Redacting shrinks what stands before, so that the cut end could come into view.
    text = (("k" * 400 + " ") * 60)[:padding] + key
    assert "a-known" not in provider_text(text, ["k" * 400, key])
