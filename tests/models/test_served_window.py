"""What servers say of the context that they serve, each in its own words."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from rlm_rag.models import served_window
from rlm_rag.models.served_window import served_windows, trained_window
from tests.servers.loopback import Received, Step, raw
from tests.servers.openai_chat import OpenAiChatServer

MODELS, PROPS, LOADED = "/v1/models", "/props", "/api/v0/models"
RUNNING, SHOW = "/api/ps", "/api/show"


def listed(*entries: Mapping[str, Any]) -> dict[str, Any]:
    return {"object": "list", "data": list(entries)}


def asked(server: OpenAiChatServer, *names: str) -> Mapping[str, int]:
    return asyncio.run(served_windows(names or ("qwen",), api_base=server.api_base))


OF_OLLAMA = {MODELS: listed({"id": "qwen", "owned_by": "library"}), RUNNING: {"models": []}}


@pytest.mark.parametrize(
    ("own", "tokens"),
    [
        # vLLM, SGLang
        ({MODELS: listed({"id": "qwen", "max_model_len": 32768})}, 32768),
        # llama.cpp: what it was started with, not what the model was trained for
        (
            {
                MODELS: listed(
                    {
                        "id": "/m/q.gguf",
                        "aliases": ["qwen"],
                        "owned_by": "llamacpp",
                        "meta": {"n_ctx": 12288, "n_ctx_train": 32768},
                    },
                    {"id": "other", "meta": {"n_ctx": 1}},
                ),
                PROPS: {"default_generation_settings": {"n_ctx": 12288}, "total_slots": 1},
            },
            12288,
        ),
        # an older one: its slots share what it was started with
        (
            {
                MODELS: listed(
                    {"id": "q.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 32768}}
                ),
                PROPS: {"default_generation_settings": {"n_ctx": 4096}},
            },
            4096,
        ),
        (
            {
                MODELS: listed({"id": "q", "owned_by": "llamacpp", "meta": {"n_ctx": 16384}}),
                PROPS: {"default_generation_settings": {"n_ctx": 4096}},
            },
            4096,
        ),
        # LM Studio: the loaded context, which is shorter than the longest
        (
            {
                MODELS: listed({"id": "qwen"}, {"id": "other"}),
                LOADED: listed(
                    {"id": "other", "loaded_context_length": 1},
                    {
                        "id": "qwen",
                        "state": "loaded",
                        "max_context_length": 131072,
                        "loaded_context_length": 4096,
                    },
                ),
            },
            4096,
        ),
        (
            {
                MODELS: listed({"id": "qwen"}, {"id": "other"}),
                LOADED: listed({"id": "qwen", "state": "not-loaded", "max_context_length": 131072}),
            },
            None,
        ),
        # gateways
        ({MODELS: listed({"id": "qwen", "context_length": 40960})}, 40960),
        ({MODELS: listed({"id": "qwen", "context_window": 8192})}, 8192),
        ({MODELS: listed({"id": "qwen", "max_context_window": 65536})}, 65536),
        (
            {MODELS: listed({"id": "qwen", "max_context_length": 131072, "max_model_len": 2048})},
            2048,
        ),
        # Ollama: what runs, else what the model's parameters set, else what it gives to all
        (
            OF_OLLAMA | {RUNNING: {"models": [{"name": "qwen:latest", "context_length": 2048}]}},
            2048,
        ),
        (
            OF_OLLAMA
            | {
                SHOW: {
                    "parameters": 'stop "a"\nnum_ctx                        24576\n',
                    "model_info": {"qwen2.context_length": 32768},
                }
            },
            24576,
        ),
        (OF_OLLAMA | {SHOW: {"model_info": {"qwen2.context_length": 131072}}}, 4096),
        (OF_OLLAMA | {SHOW: {"model_info": {"gpt2.context_length": 1024}, "parameters": 7}}, 1024),
        (OF_OLLAMA | {SHOW: {}}, None),
        # the only model of a server has any name
        ({MODELS: listed({"id": "something-else", "max_model_len": 4096})}, 4096),
        ({MODELS: listed({"id": "a", "max_model_len": 1}, {"id": "b", "max_model_len": 2})}, None),
        # nothing, and nonsense
        ({}, None),
        ({MODELS: listed({"id": "qwen", "max_model_len": True, "meta": [], "aliases": 3})}, None),
        ({MODELS: listed({"id": "qwen", "max_model_len": -1, "context_length": "8k"})}, None),
        ({MODELS: listed({"id": "qwen", "max_model_len": "8192"})}, 8192),
        ({MODELS: listed({"id": "qwen", "max_model_len": "1" * 5_000})}, None),
        ({MODELS: listed({"id": "qwen", "max_model_len": "²", "context_length": "-4096"})}, None),
        ({MODELS: listed({"id": "qwen", "max_model_len": 10**30})}, None),
        ({MODELS: listed({"id": "qwen", "max_model_len": 10**30, "context_length": 4096})}, 4096),
        ({MODELS: listed({"id": "qwen", "meta": {"n_ctx": 100_000_001}})}, None),
        ({PROPS: {"default_generation_settings": {"n_ctx": 10**30}}}, None),
        (OF_OLLAMA | {SHOW: {"parameters": "num_ctx 1000000000000"}}, 4096),
        ({MODELS: {"data": {"qwen": 4096}}, PROPS: [], LOADED: 3, RUNNING: {"models": 7}}, None),
        ({MODELS: [[[]]], PROPS: {"default_generation_settings": 4096}}, None),
    ],
)
def test_the_served_window_is_read_where_each_server_says_it(
    openai_server: OpenAiChatServer, own: Mapping[str, Any], tokens: int | None
) -> None:
    openai_server.own = own
    assert asked(openai_server) == ({} if tokens is None else {"qwen": tokens})
    assert openai_server.received == []


def test_each_name_gets_its_own_and_the_list_is_asked_for_once(
    openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLM_RAG_API_KEY", "sk-0123456789")
    openai_server.own = {
        MODELS: listed({"id": "a", "max_model_len": 1000}, {"id": "b", "max_model_len": 2000})
    }
    windows = served_windows(
        ["openai/a", "b"],
        api_base=f"{openai_server.api_base}/chat/completions/",
        headers={"X": "y"},
    )
    assert asyncio.run(windows) == {"openai/a": 1000, "b": 2000}
    (request,) = openai_server.looked_up
    assert (request.method, request.path) == ("GET", MODELS)
    assert request.headers["authorization"] == "Bearer sk-0123456789"
    assert request.headers["x"] == "y"


def test_a_server_that_does_not_answer_in_time_tells_what_it_had_told(
    openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_window, "ASK_SECONDS", 0.2)
    openai_server.own = None

    def slow(request: Received) -> Step:
        body = '{"data": [{"id": "a", "max_model_len": 1000}, {"id": "b"}]}'
        step = raw(body)
        return step if request.path == MODELS else Step(body=b"{}", delay_seconds=30)

    openai_server.script = slow
    started = time.monotonic()
    assert asked(openai_server, "a", "b") == {"a": 1000}
    assert time.monotonic() - started < 5


def bodies() -> Sequence[bytes]:
    return (b"", b"<html>", b"[" * 200_000, b'{"data": [{"id": "qwen", "max_model_len": 1e999}]}')


@pytest.mark.parametrize("body", bodies(), ids=range(len(bodies())))
def test_an_answer_that_is_none_tells_nothing(openai_server: OpenAiChatServer, body: bytes) -> None:
    openai_server.own = None
    openai_server.script = lambda request: raw(body)
    assert asked(openai_server) == {}


def test_an_answer_without_end_is_not_read_to_it(
    openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_window, "MAX_ANSWER_BYTES", 40)
    openai_server.own = {MODELS: listed({"id": "qwen", "max_model_len": 4096, "more": "x" * 100})}
    assert asked(openai_server) == {}


def test_where_nothing_listens_nothing_is_told_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    started = time.monotonic()
    assert asyncio.run(served_windows(["qwen"], api_base=f"http://127.0.0.1:{port}/v1")) == {}
    assert asyncio.run(trained_window("ollama/x", api_base=f"http://127.0.0.1:{port}")) is None
    assert time.monotonic() - started < served_window.ASK_SECONDS


def test_what_a_model_of_ollama_was_trained_for_is_asked_without_a_key(
    openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    monkeypatch.setenv("OLLAMA_API_BASE", openai_server.url)
    openai_server.own = {SHOW: {"model_info": {"llama.context_length": 8192, "llama.vocab": 9}}}
    assert asyncio.run(trained_window("ollama/llama3", api_base=None)) == 8192
    (request,) = openai_server.looked_up
    assert request.json == {"model": "llama3"}
    assert "authorization" not in request.headers
