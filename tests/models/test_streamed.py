"""Replies that come in pieces: told as they come, and otherwise what they would have been."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.errors import ContentRefusedError, ProviderServerError, ReplyLostError
from rlm_rag.models.base import Completion, Message, ModelRequest
from rlm_rag.models.openai_compatible import OpenAiCompatibleModel
from rlm_rag.models.streamed import StreamedReply
from tests.servers.loopback import Step, cut, failed, raw, reply
from tests.servers.openai_chat import OpenAiChatServer

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 9,
    "prompt_tokens_details": {"cached_tokens": 64},
    "completion_tokens_details": {"reasoning_tokens": 4},
}


def asked(server: OpenAiChatServer, *, streams: bool = True) -> tuple[Completion, list[str]]:
    told: list[str] = []
    request = ModelRequest((Message("user", "Hi"),), on_text=told.append if streams else None)

    async def ask() -> Completion:
        model = OpenAiCompatibleModel("m", api_base=server.api_base)
        try:
            return await model.complete(request)
        finally:
            await model.aclose()

    return asyncio.run(ask()), told


def test_a_streamed_reply_is_the_reply_and_its_usage_the_providers(
    openai_server: OpenAiChatServer,
) -> None:
    text = "Größe: 中文 and more.\nAnd a line."
    openai_server.script = [reply(text, usage=USAGE, finish_reason="length")] * 2
    streamed, told = asked(openai_server)
    whole, nothing = asked(openai_server, streams=False)
    assert streamed == whole
    assert len(told) > 3 and "".join(told) == text
    assert nothing == []
    assert openai_server.received[0].json["stream_options"] == {"include_usage": True}
    assert "stream" not in openai_server.received[1].json


def test_a_server_that_does_not_stream_is_read_as_ever(openai_server: OpenAiChatServer) -> None:
    body = {"choices": [{"message": {"content": "all"}, "finish_reason": "stop"}]}
    openai_server.script = [raw(json.dumps(body))]
    completion, told = asked(openai_server)
    assert (completion.text, told) == ("all", [])


def test_a_server_that_refuses_to_stream_is_asked_without(openai_server: OpenAiChatServer) -> None:
    openai_server.script = [failed(400, "unknown field stream_options"), reply("all")]
    request = ModelRequest((Message("user", "Hi"),), on_text=lambda _: None)

    async def ask_twice() -> Completion:
        model = OpenAiCompatibleModel("m", api_base=openai_server.api_base)
        with pytest.raises(ProviderServerError) as raised:
            await model.complete(request)
        assert raised.value.retryable
        try:
            return await model.complete(request)
        finally:
            await model.aclose()

    assert asyncio.run(ask_twice()).text == "all"
    assert "stream" not in openai_server.received[1].json


def test_requests_that_are_refused_at_the_same_time_can_all_be_repeated(
    openai_server: OpenAiChatServer,
) -> None:
    refused = failed(400, "unknown field stream_options")
    openai_server.script = [refused, replace(refused, delay_seconds=0.1), reply("all")]
    request = ModelRequest((Message("user", "Hi"),), on_text=lambda _: None)

    async def ask() -> tuple[list[object], str]:
        model = OpenAiCompatibleModel("m", api_base=openai_server.api_base)
        try:
            both = await asyncio.gather(
                model.complete(request), model.complete(request), return_exceptions=True
            )
            return list(both), (await model.complete(request)).text
        finally:
            await model.aclose()

    errors, text = asyncio.run(ask())
    assert [isinstance(e, ProviderServerError) and e.retryable for e in errors] == [True, True]
    assert text == "all"


@pytest.mark.parametrize(
    "step",
    [
        cut("never seen in full", after_bytes=500),
        raw(
            'data: {"choices": [{"delta": {"content": "x"}}]}\n\n', content_type="text/event-stream"
        ),
    ],
)
def test_a_stream_that_breaks_off_is_no_reply(openai_server: OpenAiChatServer, step: Step) -> None:
    openai_server.script = [step]
    with pytest.raises(ReplyLostError) as raised:
        asked(openai_server)
    assert raised.value.retryable and raised.value.may_be_billed


def test_an_error_within_a_stream_is_that_error(openai_server: OpenAiChatServer) -> None:
    events = (
        'data: {"choices": [{"delta": {"content": "x"}}]}\n\n'
        'data: {"error": {"message": "overloaded", "code": 503}}\n\n'
    )
    openai_server.script = [raw(events, content_type="text/event-stream")]
    with pytest.raises(ProviderServerError, match="overloaded"):
        asked(openai_server)
    refusal = (
        'data: {"choices": [{"delta": {"refusal": "I "}}]}\n\n'
        'data: {"choices": [{"delta": {"refusal": "won\'t"}, "finish_reason": "stop"}]}\n\n'
    )
    openai_server.script = [raw(refusal, content_type="text/event-stream")]
    with pytest.raises(ContentRefusedError, match="I won't"):
        asked(openai_server)


KEY = "abcabd-0123"


@given(
    st.lists(st.sampled_from(["ab", "abc", "abcabd", "-0123", "x", KEY, "-"]), max_size=8),
    st.integers(1, 9),
)
def test_no_key_is_told_however_it_is_parted_and_no_other_text_is_lost(
    pieces: list[str], size: int
) -> None:
    told: list[str] = []
    stream = StreamedReply(told.append, {KEY})
    data = b"".join(_event(piece) for piece in pieces)
    for at in range(0, len(data), size):
        stream.feed(data[at : at + size])
    assert stream.whole() is None, "nothing said that it was over"
    text = "".join(pieces)
    assert KEY not in "".join(told)
    assert "".join(told).count("x") == text.count("x")
    if KEY not in text:
        assert "".join(told) == text


def _event(text: str) -> bytes:
    data: dict[str, Any] = {"choices": [{"delta": {"content": text}}]}
    return f"data: {json.dumps(data)}\r\n\r\n".encode()
