"""What Ollama has to be told besides the question, where litellm leaves it to chance."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

DEFAULT_ADDRESS = "http://localhost:11434"

CONTEXT_TOKENS = 16_384
"""The context that is asked for. Ollama's own is 4,096 on most machines (its FAQ), and what is
longer it cuts without a word; the same for every call, since another one loads the model again."""

LEAST_SERVED_TOKENS = 4096
"""What Ollama gives a model of which nobody said how long its context is to be, on a machine with
less than 24 GiB of video memory (docs.ollama.com/context-length); on others more."""

_PREFIXES = ("ollama/", "ollama_chat/")
NUM_CTX = "num_ctx"
"""The parameter that says how long a context is to be."""


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
    return {NUM_CTX: CONTEXT_TOKENS, **extra}


def context_of(extra: Mapping[str, Any]) -> int:
    """Return how long a context requests with these parameters ask for, in tokens."""
    asked = extra.get(NUM_CTX)
    return asked if isinstance(asked, int) and asked > 0 else CONTEXT_TOKENS


def served_by_ollama(parameters: object) -> int | None:
    """Return the context that a model's own parameters set, as Ollama shows them line by line."""
    if not isinstance(parameters, str):
        return None
    found = re.search(rf"^{NUM_CTX}\s+(\d{{1,9}})\s*$", parameters, re.M)
    return int(found[1]) or None if found else None
