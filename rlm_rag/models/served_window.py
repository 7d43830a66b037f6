"""How long a context a server of one's own serves, where it says so."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from rlm_rag.models.ollama import DEFAULT_ADDRESS, LEAST_SERVED_TOKENS, served_by_ollama
from rlm_rag.models.openai_compatible import certificates
from rlm_rag.models.providers import (
    CHAT_ENDPOINT,
    checked_api_base,
    is_loopback,
    key_of_address,
    provider_at,
    sent_headers,
    served_name,
)

ASK_SECONDS = 5.0
"""What a run waits at most. A server of one's own answers in milliseconds, but for llama.cpp's
while it reads a long prompt, when it would not take the first call either."""
MAX_ANSWER_BYTES = 8 << 20
MOST_WINDOW_TOKENS = 100_000_000
"""More than this is believed of no server: ten times the 10 million of Llama 4 Scout."""
_DIGITS = 9
# Of an entry of `/v1/models`: vLLM and SGLang say max_model_len, LM Studio loaded_context_length,
# gateways context_length, context_window or max_context_length.
_SERVED = (
    *("max_model_len", "loaded_context_length", "context_length", "context_window"),
    *("max_context_window", "max_context_length"),
)


async def served_windows(
    names: Sequence[str], *, api_base: str, headers: Mapping[str, str] | None = None
) -> Mapping[str, int]:
    """Return how many tokens a server takes in, prompt and reply, for those of `names` it tells.

    What was asked for at its start counts, not what the model was trained for; of several
    figures the smallest. It has `ASK_SECONDS`; no model is asked anything. A server that cannot
    be reached, refuses, or says something else, such as more than `MOST_WINDOW_TOKENS`, tells none.
    """
    base = checked_api_base(api_base).removesuffix(CHAT_ENDPOINT)
    key, _ = key_of_address(base)
    found: dict[str, int] = {}
    async with _asking(base, sent_headers(key, headers)) as asking:
        for name in names:
            tokens = await asking.window(served_name(name))
            if tokens is not None:
                found[name] = tokens
    return found


async def trained_window(
    name: str, *, api_base: str | None, headers: Mapping[str, str] | None = None
) -> int | None:
    """Return the longest context that a model of Ollama's can have, whatever is asked for.

    None where the server, at `OLLAMA_API_BASE` without an `api_base`, does not say.
    """
    base = checked_api_base(api_base or os.environ.get("OLLAMA_API_BASE") or DEFAULT_ADDRESS)
    async with _asking(base, sent_headers(None, headers)) as asking:
        return _trained(await asking.shown(name.partition("/")[2]))
    return None


@asynccontextmanager
async def _asking(base: str, headers: Mapping[str, str]) -> AsyncIterator[_Asking]:
    """Give what asks a server; where that fails, or takes `ASK_SECONDS`, the body just ends."""
    client = httpx.AsyncClient(
        headers=headers,
        trust_env=not is_loopback(base),
        verify=certificates(base),
        timeout=ASK_SECONDS,
    )
    async with client:
        # What is not told is taken as not known, which the run says.
        with suppress(httpx.HTTPError, httpx.InvalidURL, OSError, ValueError):
            async with asyncio.timeout(ASK_SECONDS):
                yield _Asking(client, base)


@dataclass(slots=True)
class _Asking:
    """What one server is asked, its list of models once."""

    client: httpx.AsyncClient
    base: str
    entries: Sequence[Mapping[str, Any]] | None = field(default=None, init=False)

    @property
    def root(self) -> str:
        """The address without the protocol's version, where servers have what is their own."""
        return self.base.removesuffix("/v1")

    async def window(self, name: str) -> int | None:
        if self.entries is None:
            self.entries = _rows(await self.answer("GET", f"{self.base}/models"), "data")
        entry = _entry(self.entries, name)
        figures = [*_served(entry)]
        if provider_at(self.base) is None:
            if not figures or entry.get("owned_by") == "llamacpp":
                figures += await self._of_llama_cpp(name)
            if not figures:
                figures += await self._of_lm_studio(name) or await self._of_ollama(name)
        return min(figures, default=None)

    async def _of_llama_cpp(self, name: str) -> list[int]:
        # A server of several models would load one that it is asked about.
        asked = {"model": name, "autoload": "false"}
        said = _object(await self.answer("GET", f"{self.root}/props", params=asked))
        settings = _object(said.get("default_generation_settings"))
        return [*_counts(settings.get("n_ctx"))]

    async def _of_lm_studio(self, name: str) -> list[int]:
        rows = _rows(await self.answer("GET", f"{self.root}/api/v0/models"), "data")
        # A model that is not loaded has its longest context there, not the one it will get.
        loaded = [row for row in rows if row.get("id") == name]
        return [tokens for row in loaded for tokens in _counts(row.get("loaded_context_length"))]

    async def _of_ollama(self, name: str) -> list[int]:
        running = await self.answer("GET", f"{self.root}/api/ps")
        if not isinstance(_object(running).get("models"), list):
            return []
        for row in _rows(running, "models"):
            is_it = name in (row.get("name"), str(row.get("name")).removesuffix(":latest"))
            if is_it and (figures := [*_counts(row.get("context_length"))]):
                return figures
        shown = await self.shown(name)
        said = [*_counts(served_by_ollama(shown.get("parameters")))] or [LEAST_SERVED_TOKENS]
        return [*said, *_counts(_trained(shown))] if shown else []

    async def shown(self, name: str) -> Mapping[str, Any]:
        """Return what Ollama shows of a model, nothing where it has none of that name."""
        said = await self.answer("POST", f"{self.root}/api/show", json={"model": name})
        return _object(said)

    async def answer(self, method: str, url: str, **asked: Any) -> Any:
        """Return the JSON of a 200, None for everything else."""
        async with self.client.stream(method, url, **asked) as response:
            if response.status_code != 200:
                return None
            data = bytearray()
            async for piece in response.aiter_bytes():
                data += piece
                if len(data) > MAX_ANSWER_BYTES:
                    return None
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            return None


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _rows(answer: Any, key: str) -> list[Mapping[str, Any]]:
    rows = _object(answer).get(key)
    return [_object(row) for row in rows] if isinstance(rows, list) else []


def _entry(entries: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    for entry in entries:
        aliases = entry.get("aliases")
        if entry.get("id") == name or (isinstance(aliases, list) and name in aliases):
            return entry
    # Servers of one model take any name for it.
    return entries[0] if len(entries) == 1 else {}


def _served(entry: Mapping[str, Any]) -> Iterator[int]:
    for key in _SERVED:
        yield from _counts(entry.get(key))
    yield from _counts(_object(entry.get("meta")).get("n_ctx"))


def _trained(shown: Mapping[str, Any]) -> int | None:
    """Return the one figure of a model's description that is named ARCHITECTURE.context_length."""
    described = _object(shown.get("model_info")).items()
    figures = [value for key, value in described if key.endswith(".context_length")]
    return min((tokens for figure in figures for tokens in _counts(figure)), default=None)


def _counts(value: Any) -> Iterator[int]:
    """Yield a value that is a believable number of tokens, or is one in digits."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _DIGITS:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_WINDOW_TOKENS:
        yield value
