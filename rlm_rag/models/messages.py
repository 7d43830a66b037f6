"""Makes a message list that every provider accepts."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
    turns: list[tuple[Role, list[str]]] = []
    for message in messages:
        text = encodable(message.content)
        if not text.strip():
            continue
        if message.role == "system":
            system.append(text)
        elif turns and turns[-1][0] == message.role:
            turns[-1][1].append(text)
        else:
            turns.append((message.role, [text]))
    if not turns or turns[0][0] != "user":
        turns.insert(0, ("user", [CONTINUE]))
    if turns[-1][0] != "user":
        turns.append(("user", [CONTINUE]))
    merged = [Message(role, "\n\n".join(texts)) for role, texts in turns]
    if system:
        merged.insert(0, Message("system", "\n\n".join(system)))
    return tuple(merged)


def encodable(text: str) -> str:
    """The same text, with U+FFFD for each lone surrogate, so that it encodes as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _LONE_SURROGATES.sub("\ufffd", text)
    return text
