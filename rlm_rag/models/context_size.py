"""How long a context a local model gets on this machine."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from rlm_rag.models.free_memory import free_memory_bytes
from rlm_rag.models.gguf import ModelShape, read_shape

PREFIX = "local:"
SLOTS = 2
"""Requests served at the same time: the root's own prompt stays in one while sub-calls use the
other, so that the server's cache of it holds from turn to turn."""

MOST_CONTEXT_TOKENS = 16_384
LEAST_CONTEXT_TOKENS = 2_048
MEMORY_SHARE = 0.25
"""Of the memory that the weights leave, at most this part goes to the caches of keys and values."""


def context_tokens(shape: ModelShape, free_bytes: int | None, weights_bytes: int = 0) -> int:
    """Return the context size, for each slot, that a model gets with so much free memory.

    Its weights, `weights_bytes` of them, are yet to be loaded into it.
    """
    room = max(0, (free_bytes or 0) - weights_bytes) * MEMORY_SHARE
    fits = int(room / (shape.cache_bytes * SLOTS))
    most = min(shape.trained_tokens, MOST_CONTEXT_TOKENS)
    return max(min(fits, most), min(LEAST_CONTEXT_TOKENS, shape.trained_tokens))


def local_path(model: str) -> Path:
    """Return the file of a model that is named `local:FILE`."""
    return Path(model.removeprefix(PREFIX)).expanduser().resolve()


@cache
def local_context(path: Path) -> int:
    """Return the context size that a GGUF file's model gets, the same for the whole program.

    Raises:
        ModelNotFoundError: no such file, or no GGUF file.
    """
    shape = read_shape(path)
    return context_tokens(shape, free_memory_bytes(), path.stat().st_size)
