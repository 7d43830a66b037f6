"""Retry-After, and the keys that go to an address."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.models.failures import Refusal, error_of, retry_after_seconds
from rlm_rag.models.providers import is_loopback, key_of_address, shown_address


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "3"}, 3),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"Retry-After": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40),
        ({"Retry-After": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "1e999"}, None),
        ({"Retry-After": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers, now=60.0) == seconds


@given(st.text())
def test_any_header_is_survived(value: str) -> None:
    seconds = retry_after_seconds({"Retry-After": value})
    assert seconds is None or seconds >= 0


def test_a_key_goes_only_where_it_belongs() -> None:
    keys = {"OPENAI_API_KEY": "of-openai", "GROQ_API_KEY": "of-groq"}
    own = {**keys, "RLM_RAG_API_KEY": "of-mine"}
    for address, key in [
        ("https://api.openai.com/v1", "of-openai"),
        ("https://api.groq.com/openai/v1", "of-groq"),
        ("https://gateway.example/v1", "of-openai"),
        ("http://127.0.0.1:8080/v1", "of-openai"),
        ("http://gateway.example/v1", None),
        ("https://openrouter.ai/api/v1", None),
    ]:
        assert key_of_address(address, keys)[0] == key
        assert key_of_address(address, own) == ("of-mine", "RLM_RAG_API_KEY")


def test_this_machine_is_known_by_its_addresses() -> None:
    for host in ("127.0.0.1", "127.9.9.9", "localhost", "x.localhost", "[::1]"):
        assert is_loopback(f"http://{host}:1/v1")
    for host in ("10.0.0.1", "0.0.0.0", "localhost.example", "127.0.0.1.example", "[::2]"):
        assert not is_loopback(f"http://{host}:1/v1")


def test_an_address_is_shown_without_its_secrets() -> None:
    assert shown_address("https://user:pass@h:8/v1?key=secret") == "https://h:8/v1"


def test_a_redirect_names_the_address_as_what_to_mend() -> None:
    error = error_of(Refusal(308), model="m", where="http://h/v1", key_variable=None)
    assert "--api-base" in str(error.hint)
