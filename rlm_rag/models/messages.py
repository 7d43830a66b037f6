"""Makes a message list that every provider accepts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rlm_rag.models.base import Message, Role

CONTINUE = "Continue."
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")


def alternate(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Merge neighbours of one role, so that roles alternate and the list ends with `user`.

    System messages come first, as one. Blank messages are dropped, lone surrogates become
    U+FFFD (no JSON parser of a provider takes them). Where the conversation would start or
    end with the assistant, or hold nothing but a system message, a user's `CONTINUE` is put
    there: llama.cpp's server and Anthropic's API refuse the list otherwise.
    """
    system: list[str] = []
    turns: list[tuple[Role, list[Message]]] = []
    for message in messages:
        message = replace(message, content=encodable(message.content))
        if not message.content.strip() and not message.images:
            continue
        if message.role == "system":
            system.append(message.content)
        elif turns and turns[-1][0] == message.role:
            turns[-1][1].append(message)
        else:
            turns.append((message.role, [message]))
    if not turns or turns[0][0] != "user":
        turns.insert(0, ("user", [Message("user", CONTINUE)]))
    if turns[-1][0] != "user":
        turns.append(("user", [Message("user", CONTINUE)]))
    merged = [_merged(role, said) for role, said in turns]
    if system:
        merged.insert(0, Message("system", "\n\n".join(system)))
    return tuple(merged)


def _merged(role: Role, said: Sequence[Message]) -> Message:
    texts = [message.content for message in said if message.content.strip()]
    images = tuple(image for message in said for image in message.images)
    return Message(role, "\n\n".join(texts), images)


def to_wire(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The messages as the OpenAI chat protocol has them: content is text, or parts with images."""
    return [{"role": m.role, "content": _content(m)} for m in messages]


def _content(message: Message) -> str | list[dict[str, Any]]:
    if not message.images:
        return message.content
    text = [{"type": "text", "text": message.content}] if message.content else []
    return text + [{"type": "image_url", "image_url": {"url": url}} for url in message.images]


def encodable(text: str) -> str:
    """The same text, with U+FFFD for each lone surrogate, so that it encodes as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _LONE_SURROGATES.sub("\ufffd", text)
    return text
