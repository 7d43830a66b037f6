"""What Ollama has to be told besides the question, where litellm leaves it to chance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CONTEXT_TOKENS = 16_384
"""The context that is asked for. Ollama's own is 4,096 on most machines (its FAQ), and what is
longer it cuts without a word; the same for every call, since another one loads the model again."""

_PREFIXES = ("ollama/", "ollama_chat/")
_OPTION = "num_ctx"


def is_ollama(model: str) -> bool:
    """Whether a model is named as one that Ollama serves."""
    return model.startswith(_PREFIXES)


def chat_name(model: str) -> str:
    """Return the name under which litellm sends messages as a chat.

    What is named `ollama/` goes to Ollama's endpoint for a bare prompt, roles written out in it.
    """
    return f"ollama_chat/{model.removeprefix('ollama/')}" if model.startswith("ollama/") else model


def with_context(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of a request with the context that they ask for, ours where none."""
    return {_OPTION: CONTEXT_TOKENS, **extra}


def context_of(extra: Mapping[str, Any]) -> int:
    """Return how long a context requests with these parameters ask for, in tokens."""
    asked = extra.get(_OPTION)
    return asked if isinstance(asked, int) and asked > 0 else CONTEXT_TOKENS
