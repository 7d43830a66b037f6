"""A model that replies from a file, in order: for demonstrations and tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rlm_rag.errors import ModelNotFoundError, ModelRequestError
from rlm_rag.models.base import Completion, FinishReason, ModelRequest, Usage
from rlm_rag.models.files import read_model_file
from rlm_rag.models.tokens import count_message_tokens, count_tokens

_FINISH_REASONS: tuple[FinishReason, ...] = ("stop", "length", "content_filter", "other")


class ScriptedModel:
    """Gives `replies` one after the other, whatever is asked; costs nothing.

    A reply is a text, or a mapping of `text` and, where wanted, `finish_reason`.
    """

    def __init__(self, name: str, replies: Sequence[Completion]) -> None:
        self._name = name
        self._replies = replies
        self._next = 0

    @property
    def name(self) -> str:
        """The model's name as the user spelled it."""
        return self._name

    async def complete(self, request: ModelRequest) -> Completion:
        """The next reply, its tokens estimated.

        Raises:
            ModelRequestError: no reply is left.
        """
        if self._next >= len(self._replies):
            raise ModelRequestError(
                f"the script {self._name!r} holds {len(self._replies)} replies, and one more "
                "was asked for",
                hint="add a reply to the script",
            )
        reply = self._replies[self._next]
        self._next += 1
        usage = Usage(
            calls=1,
            input_tokens=count_message_tokens(request.messages),
            output_tokens=count_tokens(reply.text),
            usd=0.0,
        )
        return Completion(reply.text, usage, reply.model, reply.finish_reason)


def open_script(path: Path, *, name: str) -> ScriptedModel:
    """The model that replies from `path`: a JSON list, or one JSON value a line.

    Raises:
        ModelNotFoundError: no such regular file of at most 64 MiB, or one that holds no such
            list.
    """
    try:
        text = read_model_file(path)
    except (OSError, ValueError) as error:
        raise ModelNotFoundError(
            f"the script of model {name!r} cannot be read: {error}",
            hint="scripted:FILE names a JSON list of replies, or one JSON text a line",
        ) from error
    return ScriptedModel(name, [_reply(value, name) for value in _values(text, name)])


def _values(text: str, name: str) -> list[object]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        whole = None
    if isinstance(whole, list):
        return whole
    values: list[object] = []
    # Not splitlines: JSON strings may hold U+2028 and its like as they are.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                values.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise _unusable(name, f"line {number} is not JSON: {error}") from error
    return values


def _reply(value: object, name: str) -> Completion:
    text, finish_reason = value, "stop"
    if isinstance(value, dict):
        text, finish_reason = value.get("text"), value.get("finish_reason", "stop")
    if not isinstance(text, str):
        raise _unusable(name, f"{value!r:.80} is no reply")
    for known in _FINISH_REASONS:
        if finish_reason == known:
            return Completion(text, Usage(), name, known)
    raise _unusable(name, f"{finish_reason!r:.80} is no finish reason")


def _unusable(name: str, reason: str) -> ModelNotFoundError:
    return ModelNotFoundError(
        f"the script of model {name!r} cannot be used: {reason}",
        hint='a reply is a JSON text, or an object like {"text": "...", "finish_reason": "stop"}',
    )
