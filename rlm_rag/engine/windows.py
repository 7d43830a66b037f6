"""What servers of one's own say of the context that they serve, where nobody else has said it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rlm_rag.models.ollama import context_of, is_ollama
from rlm_rag.models.providers import replies_from_file

if TYPE_CHECKING:
    from rlm_rag.engine.lineup import ModelSettings

Said = dict[tuple[str | None, str], int]
"""Windows by the address of the server and the model's name."""


async def served_by_servers(
    names: Iterable[str], settings: ModelSettings, *, said: Said | None = None
) -> Mapping[str, int]:
    """Return the windows in tokens of those models whose servers tell them.

    No server is asked for one that is told in `settings` or known by its name, nor for what it
    has `said` before, which is added to. Nothing but the models' names is sent.
    """
    said = {} if said is None else said
    api_base, headers = settings.api_base, settings.headers
    open_names = [name for name in names if not settings.is_told(name) and not has_no_window(name)]
    found = {name: said[api_base, name] for name in open_names if (api_base, name) in said}
    asked = [name for name in open_names if name not in found]
    ollama = [name for name in asked if is_ollama(name)]
    unknown = [name for name in asked if settings.facts(name).context_window is None]
    if ollama or (unknown and api_base is not None):
        # Not before: runs that ask no server would pay for the import of an HTTP client.
        from rlm_rag.models.served_window import served_windows, trained_window

        if unknown and api_base is not None:
            found |= await served_windows(unknown, api_base=api_base, headers=headers)
        for name in ollama:
            trained = await trained_window(name, api_base=api_base, headers=headers)
            if trained is not None:
                found[name] = trained
    said.update({(api_base, name): tokens for name, tokens in found.items()})
    return {name: _given(name, tokens, settings) for name, tokens in found.items()}


async def with_served_windows(settings: ModelSettings, names: Iterable[str]) -> ModelSettings:
    """Return the settings with the windows that servers tell of these models, for an estimate."""
    served = await served_by_servers(names, settings)
    return replace(settings, windows={**served, **settings.windows})


def _given(name: str, tokens: int, settings: ModelSettings) -> int:
    """The window of a model that can have so many tokens: Ollama's have what they are asked for."""
    return min(tokens, context_of(settings.extra)) if is_ollama(name) else tokens


def has_no_window(name: str) -> bool:
    """Whether a model is none that reads a prompt."""
    return name == "offline" or replies_from_file(name)
