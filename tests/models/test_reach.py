"""Whether a model answers, told without asking it, or by one word."""

from __future__ import annotations

import asyncio
import json

import pytest

from rlm_rag.errors import ModelError, ModelKeyError, ModelNotFoundError, ModelUnreachableError
from rlm_rag.models.reach import ask_one_word, find_served
from tests.servers.loopback import Step, failed, raw
from tests.servers.openai_chat import OpenAiChatServer


@pytest.fixture
def openai_server(openai_server: OpenAiChatServer) -> OpenAiChatServer:
    """A server whose list of models is played by the script too."""
    openai_server.own = None
    return openai_server


def listing(*names: str) -> Step:
    return raw(json.dumps({"data": [{"id": name} for name in names]}))


def test_a_server_that_lists_the_model_is_not_asked_anything(
    openai_server: OpenAiChatServer,
) -> None:
    openai_server.script = [listing("qwen", "other")]
    said = find_served("openai/qwen", api_base=f"{openai_server.api_base}/chat/completions")
    assert said == f"{openai_server.api_base} answers and has it"
    assert [(r.method, r.path) for r in openai_server.received] == [("GET", "/v1/models")]


def test_a_name_that_it_does_not_have_is_told_with_those_it_has(
    openai_server: OpenAiChatServer,
) -> None:
    openai_server.script = [listing("a", "b"), listing("only")]
    with pytest.raises(ModelNotFoundError) as raised:
        find_served("qwen", api_base=openai_server.api_base)
    assert raised.value.hint == "it has a, b"
    assert "only whatever the name" in find_served("qwen", api_base=openai_server.api_base)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (failed(404), "lists no models"),
        (raw("<html>", content_type="text/html"), "lists no models"),
        (listing(), "lists no models"),
    ],
)
def test_a_server_without_a_list_answers_all_the_same(
    openai_server: OpenAiChatServer, step: Step, said: str
) -> None:
    openai_server.script = [step]
    assert said in find_served("qwen", api_base=openai_server.api_base)


def test_a_refused_key_is_an_error_that_does_not_show_it(
    openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLM_RAG_API_KEY", "sk-0123456789-secret")
    openai_server.script = [failed(401, "bad key sk-0123456789-secret")]
    with pytest.raises(ModelKeyError) as raised:
        find_served("qwen", api_base=openai_server.api_base)
    assert "secret" not in f"{raised.value} {raised.value.hint} {raised.value.provider_message}"
    assert openai_server.received[0].headers["authorization"] == "Bearer sk-0123456789-secret"


def test_nobody_at_the_address_is_an_error() -> None:
    with pytest.raises(ModelUnreachableError):
        find_served("qwen", api_base="http://127.0.0.1:9/v1")


def test_one_word_is_asked_for_and_counted(openai_server: OpenAiChatServer) -> None:
    openai_server.script = ["OK", ""]
    usage = asyncio.run(ask_one_word("qwen", api_base=openai_server.api_base))
    assert (usage.input_tokens, usage.output_tokens) == (11, 7)
    assert openai_server.received[0].json["max_tokens"] == 256
    with pytest.raises(ModelError, match="nothing"):
        asyncio.run(ask_one_word("qwen", api_base=openai_server.api_base))
