"""Leaf calls from a block: `llm_query` and `llm_query_batched`, each answer a reply in JSON.

A prompt that cannot be sent costs nothing, and a failed one never sinks its batch: its place in
the list holds an error reply whose text starts with `Error: `.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rlm_rag.engine.budget import LimitReached
from rlm_rag.engine.calls import ModelCalls, PricedModel
from rlm_rag.errors import ModelError
from rlm_rag.models.base import Message, Usage

ROLES = ("system", "user", "assistant")


class SubCalls:
    """Sends the leaf calls of one RLM to its sub-model."""

    def __init__(self, *, calls: ModelCalls, model: PricedModel) -> None:
        self._calls = calls
        self._model = model

    async def query(
        self,
        prompt: Any,
        model: str | None = None,
        max_tokens: int | None = None,
        system: str | None = None,
        *,
        block: int,
        seq: int,
    ) -> dict[str, Any]:
        """Return one reply as JSON: text, ok, error, truncated, usage, model."""
        if model not in (None, self._model.name):
            return _error(f"model {model!r} is not offered; leave it out for {self._model.name!r}")
        if max_tokens is not None and max_tokens < 1:
            return _error(f"max_tokens must be at least 1, not {max_tokens}")
        messages = _messages(prompt, system)
        if isinstance(messages, str):
            return _error(messages)
        try:
            completion = await self._calls.complete(
                self._model,
                messages,
                role="sub",
                block=block,
                seq=seq,
                max_output_tokens=max_tokens,
            )
        except LimitReached as reached:
            return _error(f"not sent: {reached.detail}")
        except ModelError as error:
            return _error(f"{error.message}. {error.hint}" if error.hint else error.message)
        truncated = completion.finish_reason == "length"
        return {
            "text": completion.text,
            "ok": True,
            "error": None,
            "truncated": truncated,
            "usage": asdict(completion.usage),
            "model": completion.model,
        }

    async def query_batched(
        self, prompts: Any, model: str | None = None, *, block: int, seq: int
    ) -> list[dict[str, Any]]:
        """Return replies aligned with `prompts`, which run at the same time."""
        if not isinstance(prompts, list):
            return [_error(f"prompts must be a list of str, not {type(prompts).__name__}")]
        replies = [self.query(prompt, model, block=block, seq=seq) for prompt in prompts]
        return list(await asyncio.gather(*replies))


def _messages(prompt: Any, system: str | None) -> tuple[Message, ...] | str:
    """Return the messages of a prompt, or what is wrong with it."""
    first = () if system is None else (Message("system", system),)
    if isinstance(prompt, str):
        if not prompt.strip():
            return "the prompt is empty; nothing was sent"
        return (*first, Message("user", prompt))
    if not isinstance(prompt, Sequence) or not prompt:
        return f"a prompt is a str or a list of messages, not {type(prompt).__name__}"
    messages = []
    for item in prompt:
        if (
            not isinstance(item, dict)
            or item.get("role") not in ROLES
            or not isinstance(item.get("content"), str)
        ):
            return 'a message is {"role": "system"|"user"|"assistant", "content": str}'
        messages.append(Message(item["role"], item["content"]))
    if not any(message.content.strip() for message in messages):
        return "the prompt is empty; nothing was sent"
    return (*first, *messages)


def _error(message: str) -> dict[str, Any]:
    return {
        "text": f"Error: {message}",
        "ok": False,
        "error": message,
        "truncated": False,
        "usage": asdict(Usage()),
        "model": "",
    }
