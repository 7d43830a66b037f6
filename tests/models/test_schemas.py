"""How a provider is asked for replies of a schema, and what counts as its refusal."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rlm_rag.models.base import Message, ModelRequest
from rlm_rag.models.failures import Refusal, error_of
from rlm_rag.models.openai_compatible import OpenAiCompatibleModel
from rlm_rag.models.schemas import may_refuse_schema
from rlm_rag.models.sharing import SharedReplies
from tests.servers.openai_chat import OpenAiChatServer

SCHEMA = {"type": "array", "items": {"type": "integer"}}


def request(**options: Any) -> ModelRequest:
    return ModelRequest((Message("user", "hello"),), **options)


def test_an_openai_compatible_server_is_sent_the_schema_and_no_demand_to_be_strict(
    openai_server: OpenAiChatServer,
) -> None:
    async def one_call(asked: ModelRequest) -> None:
        model = OpenAiCompatibleModel("tiny", api_base=openai_server.api_base)
        await model.complete(asked)
        await model.aclose()

    openai_server.script = ["[1]", "[1]"]
    asyncio.run(one_call(request(schema=SCHEMA)))
    asyncio.run(one_call(request(schema=SCHEMA, extra={"response_format": {"type": "text"}})))
    first, second = (each.json["response_format"] for each in openai_server.received)
    assert first == {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
    assert second == {"type": "text"}


def test_a_call_with_another_schema_is_another_call() -> None:
    shared = SharedReplies()
    schemas: tuple[Any, ...] = (None, {}, SCHEMA, {"type": "array"})
    keys = [shared.key("m", None, request(schema=schema)) for schema in schemas]
    assert len(set(keys)) == 4
    assert shared.key("m", None, request(schema=dict(reversed(SCHEMA.items())))) == keys[2]
    assert shared.key("m", None, request(stop=("a",))) not in keys


@pytest.mark.parametrize(
    ("status", "message", "may"),
    [
        (400, "Unsupported value: 'response_format'", True),
        (400, "the model tiny is not supported with json_schema", True),
        (422, "extra fields not permitted", True),
        (500, "failed to parse grammar", True),
        (501, "structured outputs are not implemented", True),
        (500, "out of memory", False),
        (404, "there is no model tiny", False),
        (401, "bad key", False),
        (429, "slow down", False),
        (400, "the prompt is longer than the context window of response_format", False),
    ],
)
def test_a_refusal_may_be_of_the_schema(status: int, message: str, may: bool) -> None:
    refusal = Refusal(status, message)
    error = error_of(refusal, model="tiny", where="a server", key_variable=None)
    assert may_refuse_schema(error) is may
