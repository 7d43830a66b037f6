"""Reads an OpenAI chat completion, as providers send it and as litellm hands it over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rlm_rag.errors import ContentRefusedError
from rlm_rag.models.base import Completion, FinishReason, Message, Usage
from rlm_rag.models.failures import unreadable
from rlm_rag.models.prices import Price
from rlm_rag.models.redact import provider_text, without_keys
from rlm_rag.models.tokens import count_message_tokens, count_tokens

_FINISH_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}
_MOST_TOKENS = 10**9


@dataclass(frozen=True, slots=True)
class Asked:
    """What a reply answers: enough to name it in errors, and to count what was not counted.

    `secrets` are taken out of errors, `keys` out of the reply itself, which a server may make
    of the request's headers.
    """

    model: str
    where: str
    messages: tuple[Message, ...]
    price: Price | None
    secrets: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()


def completion_of(body: Mapping[str, Any], asked: Asked) -> Completion:
    """The completion that a provider's JSON object holds.

    Content may be null (all tokens went into reasoning: the text is empty) or a list of parts.
    Figures that the provider did not send are estimated. The keys of the request are masked.

    Raises:
        ProviderServerError: no choices, or a shape that is no chat completion.
        ContentRefusedError: the reply was refused or filtered away.
    """
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise unreadable("it holds no choices", model=asked.model, where=asked.where)
    message = choices[0].get("message")
    if not isinstance(message, Mapping):
        raise unreadable("its choice holds no message", model=asked.model, where=asked.where)
    text = without_keys(_text_of(message.get("content"), asked), asked.keys)
    finish_reason = _FINISH_REASONS.get(str(choices[0].get("finish_reason")), "other")
    refusal = message.get("refusal")
    if not text and (finish_reason == "content_filter" or (isinstance(refusal, str) and refusal)):
        said = provider_text(refusal, asked.secrets) if isinstance(refusal, str) else None
        raise ContentRefusedError(
            f"{asked.where} refused to answer" + (f": {said}" if said else ""),
            hint="rephrase the request, or use another model",
            provider_message=said,
        )
    model = body.get("model")
    return Completion(
        text=text,
        usage=_usage_of(body.get("usage"), text, asked),
        model=without_keys(model, asked.keys) if isinstance(model, str) and model else asked.model,
        finish_reason=finish_reason,
    )


def _text_of(content: object, asked: Asked) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_part_texts(content))
    raise unreadable("its content is no text", model=asked.model, where=asked.where)


def _part_texts(parts: Iterable[object]) -> Iterable[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            yield part["text"]


def _usage_of(usage: object, text: str, asked: Asked) -> Usage:
    figures = usage if isinstance(usage, Mapping) else {}
    input_tokens = _count(figures.get("prompt_tokens"))
    output_tokens = _count(figures.get("completion_tokens"))
    if input_tokens is None:
        input_tokens = count_message_tokens(asked.messages)
    if output_tokens is None:
        output_tokens = count_tokens(text)
    cached = _detail(figures, "prompt_tokens_details", "cached_tokens")
    reasoning = _detail(figures, "completion_tokens_details", "reasoning_tokens")
    cached_tokens = min(cached, input_tokens)
    return Usage(
        calls=1,
        input_tokens=input_tokens,
        cached_tokens=cached_tokens,
        output_tokens=output_tokens,
        reasoning_tokens=reasoning,
        usd=None
        if asked.price is None
        else asked.price.usd(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cached_tokens=cached_tokens,
            reasoning_tokens=reasoning,
        ),
    )


def _detail(figures: Mapping[str, Any], group: str, name: str) -> int:
    details = figures.get(group)
    return (_count(details.get(name)) or 0) if isinstance(details, Mapping) else 0


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= _MOST_TOKENS else None
