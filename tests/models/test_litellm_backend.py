"""Anthropic's protocol through the real litellm: a second provider, with the same errors.

One module, since litellm's import takes seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlm_rag.errors import (
    ContextWindowError,
    ModelError,
    ModelKeyError,
    ModelNotFoundError,
    ModelRequestError,
    ModelTimeoutError,
    ModelUnreachableError,
    ProviderServerError,
    RateLimitError,
)
from rlm_rag.models.base import Completion, Message, ModelRequest, Usage
from rlm_rag.models.litellm_backend import LitellmModel
from rlm_rag.models.prices import Price
from rlm_rag.models.router import close_model, open_model
from tests.servers.anthropic_messages import AnthropicMessagesServer
from tests.servers.loopback import Step, cut, failed, rate_limited, raw, reply
from tests.servers.ollama_chat import OllamaServer
from tests.servers.openai_chat import OpenAiChatServer

KEY = "sk-ant-test-0123456789abcdef"
NAME = "anthropic/claude-sonnet-4-5"
HELLO = ModelRequest(
    messages=(Message("system", "be brief"), Message("user", "hello")),
    max_output_tokens=100,
    timeout_seconds=20,
)


def complete(
    api_base: str, request: ModelRequest = HELLO, *, name: str = NAME, **options: Any
) -> Completion:
    async def one_call() -> Completion:
        model = open_model(name, api_base=api_base, **options)
        assert isinstance(model, LitellmModel)
        try:
            return await model.complete(request)
        finally:
            await model.aclose()

    return asyncio.run(one_call())


def ask(
    server: AnthropicMessagesServer,
    script: Sequence[Step | str],
    request: ModelRequest = HELLO,
    **options: Any,
) -> Completion:
    server.script = script
    return complete(server.api_base, request, **options)


def test_a_reply_comes_back_with_the_providers_figures(
    anthropic_server: AnthropicMessagesServer,
) -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 3}
    completion = ask(anthropic_server, [reply("hi there", usage=usage)])
    assert completion.text == "hi there"
    assert completion.finish_reason == "stop"
    assert completion.usage == Usage(
        calls=1, input_tokens=15, cached_tokens=5, output_tokens=3, usd=0.0
    )


def test_the_request_speaks_anthropics_protocol(
    anthropic_server: AnthropicMessagesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    ask(anthropic_server, ["ok"], replace(HELLO, stop=("END",)), headers={"X-Team": "search"})
    [received] = anthropic_server.received
    assert received.path == "/v1/messages"
    assert received.headers["x-api-key"] == KEY
    assert received.headers["x-team"] == "search"
    assert received.json["model"] == "claude-sonnet-4-5"
    assert received.json["max_tokens"] == 100
    assert received.json["stop_sequences"] == ["END"]
    assert received.prompt == "hello"


def test_a_reply_that_echoes_the_key_comes_back_without_it(
    anthropic_server: AnthropicMessagesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    anthropic_server.script = lambda request: f"your key is {request.headers['x-api-key']}"
    assert complete(anthropic_server.api_base).text == "your key is [redacted]"


def test_a_key_that_litellm_finds_itself_is_taken_out_too(
    openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_API_KEY", KEY)
    monkeypatch.setenv("AZURE_API_BASE", openai_server.url)
    monkeypatch.setenv("AZURE_API_VERSION", "2024-10-21")
    openai_server.script = lambda request: f"you sent {request.headers['api-key']}"
    model = open_model("azure/tiny")

    async def one_call() -> Completion:
        completion = await model.complete(HELLO)
        await close_model(model)
        return completion

    assert asyncio.run(one_call()).text == "you sent [redacted]"


def test_a_reply_cut_by_its_cap_says_so(anthropic_server: AnthropicMessagesServer) -> None:
    completion = ask(anthropic_server, [reply("and then", finish_reason="max_tokens")])
    assert completion.finish_reason == "length"


def test_a_price_given_by_hand_is_charged(anthropic_server: AnthropicMessagesServer) -> None:
    completion = ask(anthropic_server, ["ok"], price=Price(1.0, 2.0, 0.5))
    assert completion.usage.usd == pytest.approx(11 * 1.0 + 7 * 2.0)


@pytest.mark.parametrize(
    ("step", "kind", "words"),
    [
        (failed(401, "invalid x-api-key"), ModelKeyError, "invalid x-api-key"),
        (failed(403, "not for you"), ModelKeyError, "not for you"),
        (failed(404, "model: claude-none"), ModelNotFoundError, "claude-none"),
        (failed(400, "max_tokens: too high"), ModelRequestError, "too high"),
        (
            failed(400, "prompt is too long: 210000 tokens > 200000 maximum"),
            ContextWindowError,
            "210000",
        ),
        (
            failed(400, "Your credit balance is too low to access the API"),
            ModelKeyError,
            "credit balance",
        ),
        (failed(429, "slow down"), RateLimitError, "slow down"),
        (failed(500, "boom"), ProviderServerError, "boom"),
        (failed(529, "Overloaded"), ProviderServerError, "Overloaded"),
        (raw("{not json"), ProviderServerError, "cannot be read"),
        (raw("{}"), ProviderServerError, "cannot be read"),
    ],
)
def test_each_refusal_has_its_error_and_the_providers_words(
    anthropic_server: AnthropicMessagesServer, step: Step, kind: type[ModelError], words: str
) -> None:
    with pytest.raises(ModelError) as caught:
        ask(anthropic_server, [step])
    assert type(caught.value) is kind
    assert words in caught.value.message
    assert "Traceback" not in caught.value.message
    assert "litellm" not in caught.value.message.lower()
    assert caught.value.hint
    assert len(anthropic_server.received) == 1, "litellm must not retry by itself"


def test_retry_after_is_read(anthropic_server: AnthropicMessagesServer) -> None:
    with pytest.raises(RateLimitError) as caught:
        ask(anthropic_server, [rate_limited(7)])
    assert caught.value.retry_after_seconds == 7


def test_a_message_that_echoes_the_key_is_shown_without_it(
    anthropic_server: AnthropicMessagesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd_key = "odd-key-of-no-known-shape"
    monkeypatch.setenv("ANTHROPIC_API_KEY", odd_key)
    with pytest.raises(ModelKeyError) as caught:
        ask(anthropic_server, [failed(401, f"bad key {odd_key}")])
    assert odd_key not in f"{caught.value} {caught.value.provider_message}"
    assert odd_key not in "".join(traceback.format_exception(caught.value))
    assert "ANTHROPIC_API_KEY" in (caught.value.hint or "")


def test_a_cut_connection_is_unreachable(anthropic_server: AnthropicMessagesServer) -> None:
    with pytest.raises(ModelUnreachableError):
        ask(anthropic_server, [cut(after_bytes=10)])


def test_a_port_nobody_listens_on_is_unreachable_and_not_a_missing_key() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ModelUnreachableError, match=str(port)) as raised:
        complete(f"http://127.0.0.1:{port}")
    assert "ssl" not in str(raised.value)


def test_a_proxy_of_the_environment_is_used(
    monkeypatch: pytest.MonkeyPatch, anthropic_server: AnthropicMessagesServer
) -> None:
    monkeypatch.setenv("HTTP_PROXY", anthropic_server.api_base)
    anthropic_server.script = ["by proxy"]
    assert complete("http://models.example").text == "by proxy"


def test_a_slow_reply_times_out(anthropic_server: AnthropicMessagesServer) -> None:
    request = ModelRequest(HELLO.messages, max_output_tokens=10, timeout_seconds=0.3)
    with pytest.raises(ModelTimeoutError):
        ask(anthropic_server, [reply("late", delay_seconds=5)], request)


def test_openais_sdk_underneath_has_the_same_errors(openai_server: OpenAiChatServer) -> None:
    openai_server.script = ["fine", rate_limited(3), failed(500, "boom"), cut()]
    name = "deepseek/deepseek-chat"
    assert complete(openai_server.api_base, name=name).text == "fine"
    with pytest.raises(RateLimitError) as caught:
        complete(openai_server.api_base, name=name)
    assert caught.value.retry_after_seconds == 3
    with pytest.raises(ProviderServerError, match="boom"):
        complete(openai_server.api_base, name=name)
    with pytest.raises(ModelUnreachableError):
        complete(openai_server.api_base, name=name)
    assert len(openai_server.received) == 4


def streamed(api_base: str, **options: Any) -> tuple[Completion, list[str]]:
    told: list[str] = []
    return complete(api_base, replace(HELLO, on_text=told.append), **options), told


def test_a_streamed_reply_is_the_reply_with_the_providers_figures(
    anthropic_server: AnthropicMessagesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    usage = {"input_tokens": 40, "cache_read_input_tokens": 60, "output_tokens": 9}
    text = f"Größe and more, {KEY} too."
    anthropic_server.script = [reply(text, usage=usage, finish_reason="max_tokens")] * 2
    found, told = streamed(anthropic_server.api_base)
    assert found == complete(anthropic_server.api_base)
    assert (found.usage.input_tokens, found.usage.cached_tokens) == (100, 60)
    assert len(told) > 2 and "".join(told) == found.text
    assert KEY not in found.text


def test_openais_own_stream_is_read_too_and_one_that_breaks_off_is_tried_again(
    openai_server: OpenAiChatServer,
) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 9,
        "total_tokens": 109,
        "completion_tokens_details": {"reasoning_tokens": 4},
    }
    openai_server.script = [reply("Some words.", usage=usage)] * 2
    name = "deepseek/deepseek-chat"
    found, told = streamed(openai_server.api_base, name=name)
    assert found == complete(openai_server.api_base, name=name)
    assert found.usage.reasoning_tokens == 4
    assert "".join(told) == "Some words."
    half = 'data: {"choices": [{"delta": {"content": "x"}}]}\n\n'
    for step in (
        cut("never seen in full", after_bytes=500),
        raw(half, content_type="text/event-stream"),
        raw("<html>", content_type="text/html"),
    ):
        openai_server.script = [step]
        with pytest.raises(ModelError) as raised:
            streamed(openai_server.api_base, name=name)
        assert raised.value.retryable


def test_gemini_says_what_it_said(openai_server: OpenAiChatServer) -> None:
    body = '{\n "error": {\n "code": 400,\n "message": "pick a lower temperature"\n }\n}'
    openai_server.script = [raw(body, status=400)]
    with pytest.raises(ModelRequestError) as caught:
        complete(openai_server.url, name="gemini/gemini-2.5-pro")
    assert caught.value.provider_message == "pick a lower temperature"


def test_two_models_share_litellms_clients_and_either_may_close_first(
    anthropic_server: AnthropicMessagesServer,
) -> None:
    anthropic_server.script = ["one", "two", "three"]

    async def talk() -> list[str]:
        first = open_model(NAME, api_base=anthropic_server.api_base)
        second = open_model(NAME, api_base=anthropic_server.api_base)
        assert isinstance(first, LitellmModel)
        assert isinstance(second, LitellmModel)
        texts = [(await first.complete(HELLO)).text, (await second.complete(HELLO)).text]
        await first.aclose()
        texts.append((await second.complete(HELLO)).text)
        await second.aclose()
        return texts

    assert asyncio.run(talk()) == ["one", "two", "three"]


def test_nothing_is_printed_and_no_env_file_is_read(
    anthropic_server: AnthropicMessagesServer, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text("ANTHROPIC_BASE_URL=http://evil.invalid\nPLANTED=1\n")
    anthropic_server.script = [failed(500, "boom"), "fine"]
    code = f"""
        import asyncio, os
        from rlm_rag.errors import ModelError
        from rlm_rag.models.base import Message, ModelRequest
        from rlm_rag.models.router import close_model, open_model

        async def talk():
            model = open_model({NAME!r}, api_base={anthropic_server.api_base!r})
            request = ModelRequest((Message("user", "hello"),), max_output_tokens=10)
            try:
                await model.complete(request)
            except ModelError:
                pass
            assert (await model.complete(request)).text == "fine"
            await close_model(model)

        asyncio.run(talk())
        assert "PLANTED" not in os.environ
    """
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture
def ollama() -> Iterator[OllamaServer]:
    with OllamaServer(["a", "b"]) as server:
        yield server


@pytest.mark.parametrize("name", ["ollama/qwen2.5-coder:1.5b", "ollama_chat/qwen2.5-coder:1.5b"])
def test_ollama_is_sent_a_chat_and_told_how_long_a_context_it_needs(
    name: str, ollama: OllamaServer
) -> None:
    completion = complete(ollama.url, name=name)
    assert completion.text == "a"
    assert completion.usage == Usage(calls=1, input_tokens=11, output_tokens=7, usd=0.0)
    # Once a process, at no set time, litellm asks what the model is.
    [received] = [each for each in ollama.received if each.path != "/api/show"]
    assert received.path == "/api/chat"
    assert received.json["model"] == "qwen2.5-coder:1.5b"
    assert [each["role"] for each in received.messages] == ["system", "user"]
    assert received.json["options"] == {"num_ctx": 16384, "num_predict": 100}


def test_a_context_of_ones_own_takes_the_place_of_ollamas_usual_one(ollama: OllamaServer) -> None:
    request = replace(HELLO, extra={"num_ctx": 4096})
    complete(ollama.url, request, name="ollama/llama3")
    assert ollama.received[0].json["options"]["num_ctx"] == 4096


def test_ollama_and_anthropic_are_sent_the_schema_that_a_reply_is_to_be_of(
    ollama: OllamaServer, anthropic_server: AnthropicMessagesServer
) -> None:
    schema = {
        "type": "object",
        "properties": {"port": {"type": "integer"}},
        "required": ["port"],
        "additionalProperties": False,
    }
    request = replace(HELLO, schema=schema)
    complete(ollama.url, request, name="ollama/llama3")
    assert ollama.received[0].json["format"] == schema
    ask(anthropic_server, ["{}"], request)
    # Under which name goes by litellm's version.
    assert json.dumps(schema) in json.dumps(anthropic_server.received[0].json)
