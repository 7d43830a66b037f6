"""What a model costs and how much it takes in, from litellm's table, without importing litellm."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeGuard

from rlm_rag.errors import UsageError
from rlm_rag.models.context_size import local_context, local_path
from rlm_rag.models.ollama import CONTEXT_TOKENS, is_ollama
from rlm_rag.models.providers import is_loopback, provider_at, replies_from_file, served_name

UNKNOWN_WINDOW_TOKENS = 8_192
"""Taken for the window of a model of which nothing is known: what small local servers start
with. A larger text is then cut more often than it needs to be, never refused."""

_TABLE_NAME = "model_prices_and_context_window_backup.json"
_TIER = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")
# Models that search by themselves: each search has a fee beside the tokens, by a number of
# searches and a price that nobody tells before.
_SEARCHES = re.compile("sonar|pplx|search-(?:preview|api)|deep-research")
_LANGUAGE_MODES = frozenset({"chat", "completion", "responses"})


@dataclass(frozen=True, slots=True)
class PriceTier:
    """The price of a request whose prompt has more than `above_input_tokens` tokens."""

    above_input_tokens: int
    input_usd: float
    output_usd: float
    cached_usd: float


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars a token. `cached_usd` is for prompt tokens that the provider had cached.

    `tiers` replace the base figures for long prompts, in rising order. Where a model reasons, all
    of its reply costs `reasoning_usd`, if that is more (Qwen's at DashScope).
    """

    input_usd: float
    output_usd: float
    cached_usd: float
    tiers: tuple[PriceTier, ...] = ()
    reasoning_usd: float = 0.0

    def usd(
        self,
        *,
        input_tokens: int,
        output_tokens: int,
        cached_tokens: int = 0,
        reasoning_tokens: int | None = None,
    ) -> float:
        """The cost of one request; `input_tokens` include the cached ones.

        `reasoning_tokens` are those of the output, None where that is not known yet.
        """
        rates: Price | PriceTier = self
        for tier in self.tiers:
            if input_tokens > tier.above_input_tokens:
                rates = tier
        cached = min(cached_tokens, input_tokens)
        output_usd = rates.output_usd
        if reasoning_tokens != 0:
            output_usd = max(output_usd, self.reasoning_usd)
        return (
            (input_tokens - cached) * rates.input_usd
            + cached * rates.cached_usd
            + output_tokens * output_usd
        )


FREE = Price(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model before it is called; None where it is not known."""

    price: Price | None = None
    context_window: int | None = None
    max_output_tokens: int | None = None
    takes_images: bool | None = None

    @property
    def assumed_window(self) -> int:
        """The window in tokens that texts are cut for."""
        return self.context_window or UNKNOWN_WINDOW_TOKENS


def parse_price(text: str) -> Price:
    """A price given by hand: `INPUT/OUTPUT` or `INPUT/CACHED/OUTPUT`, dollars per million tokens.

    Raises:
        UsageError: not two or three numbers that are zero or more.
    """
    try:
        figures = [float(part) / 1e6 for part in text.split("/")]
    except ValueError:
        figures = []
    if len(figures) not in (2, 3) or not all(math.isfinite(f) and f >= 0 for f in figures):
        raise UsageError(
            f"the price {text!r} is not INPUT/OUTPUT in dollars per million tokens",
            hint="for example --price 0.25/2, or 0.25/0.025/2 with the cached prompt's price",
        )
    return Price(input_usd=figures[0], output_usd=figures[-1], cached_usd=figures[-2])


def facts_of(model: str, *, api_base: str | None = None, price: Price | None = None) -> ModelFacts:
    """Price, window and output cap of a model by its name, as the user spelled it.

    `price` overrides the table. Servers on this machine, Ollama's anywhere, `offline`,
    `scripted:` and `replay:` cost nothing; a server elsewhere has a known price only where its
    host is a known provider's. That of a model which searches by itself is not known.
    Reads a 3.4 MB table once (about 40 ms); needs no network.
    """
    if model == "offline":
        return ModelFacts(price=price or FREE, takes_images=False)
    if replies_from_file(model):
        return ModelFacts(price=price or FREE)
    if model.startswith("local:"):
        return ModelFacts(
            price=price or FREE, context_window=local_context(local_path(model)), takes_images=False
        )
    if is_ollama(model):
        return ModelFacts(price=price or FREE, context_window=CONTEXT_TOKENS)
    if api_base is not None and is_loopback(api_base):
        return ModelFacts(price=price or FREE)
    entry = _entry(model, api_base)
    return ModelFacts(
        price=price or (None if _SEARCHES.search(model) else _price(entry)),
        context_window=_count(entry.get("max_input_tokens")) or _count(entry.get("max_tokens")),
        max_output_tokens=_count(entry.get("max_output_tokens")),
        # The table names what a model can do, and is silent on what it cannot.
        takes_images=entry.get("supports_vision") is True if entry else None,
    )


def may_take_schemas(model: str, *, api_base: str | None = None) -> bool:
    """Whether a model may be asked for replies that its provider holds to a JSON schema.

    llama.cpp's server, Ollama, what the table says so of, and a server that the user named, of
    which the table says nothing: that one tells.
    """
    if model == "offline" or replies_from_file(model):
        return False
    if model.startswith("local:") or is_ollama(model):
        return True
    if api_base is not None and is_loopback(api_base):
        return True
    entry = _entry(model, api_base)
    return entry.get("supports_response_schema") is True if entry else api_base is not None


def known_provider(prefix: str) -> bool:
    """Whether the table has models of a provider of that name."""
    return prefix in _providers()


def provider_of(model: str) -> str | None:
    """The provider of a language model that the table knows by its bare name."""
    entry = _table().get(_bare(model))
    if not isinstance(entry, dict) or entry.get("mode") not in _LANGUAGE_MODES:
        return None
    return str(entry.get("litellm_provider", "")).partition("-")[0]


def known_names() -> list[str]:
    """Every language model of the table, spelled with its provider."""
    return [
        name if "/" in name else f"{provider_of(name)}/{name}"
        for name, entry in _table().items()
        if entry.get("mode") in _LANGUAGE_MODES and entry.get("litellm_provider")
    ]


def litellm_folder() -> Path | None:
    """Where litellm's files lie, which it is not imported for; None where it is not installed."""
    # find_spec finds a top-level package without running it: litellm's import takes seconds.
    spec = find_spec("litellm")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    folder = litellm_folder()
    if folder is None:
        return {}
    try:
        table = json.loads((folder / _TABLE_NAME).read_bytes())
    except (OSError, ValueError):
        # Without the table no price is known, and callers say so where they need one.
        return {}
    table.pop("sample_spec", None)
    return {name: entry for name, entry in table.items() if isinstance(entry, dict)}


@cache
def _providers() -> frozenset[str]:
    return frozenset(
        str(entry.get("litellm_provider", "")).partition("-")[0] for entry in _table().values()
    )


def _bare(model: str) -> str:
    # A fine-tuned model costs what the table has for its base: ft:gpt-4o-mini-2024-07-18:org::id.
    return ":".join(model.split(":")[:2]) if model.startswith("ft:") else model


def _entry(model: str, api_base: str | None) -> Mapping[str, Any]:
    if api_base is not None:
        provider = provider_at(api_base)
        if provider is None:
            return {}
        return _entry(f"{provider}/{served_name(model)}", None)
    prefix, slash, rest = model.partition("/")
    table = _table()
    if model in table or not slash:
        return table.get(_bare(model), {})
    entry = table.get(_bare(rest), {})
    provider = str(entry.get("litellm_provider", ""))
    return entry if provider.startswith(prefix) else {}


def _price(entry: Mapping[str, Any]) -> Price | None:
    input_usd, output_usd = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
    if not _is_amount(input_usd) or not _is_amount(output_usd):
        return None
    cached_usd = entry.get("cache_read_input_token_cost")
    reasoning_usd = entry.get("output_cost_per_reasoning_token")
    return Price(
        input_usd=float(input_usd),
        output_usd=float(output_usd),
        cached_usd=float(cached_usd) if _is_amount(cached_usd) else float(input_usd),
        tiers=_tiers(entry, float(output_usd)),
        reasoning_usd=float(reasoning_usd) if _is_amount(reasoning_usd) else 0.0,
    )


def _tiers(entry: Mapping[str, Any], output_usd: float) -> tuple[PriceTier, ...]:
    tiers: list[PriceTier] = []
    for key, input_usd in entry.items():
        match = _TIER.fullmatch(key)
        if match is None or not _is_amount(input_usd):
            continue
        above = f"above_{match[1]}k_tokens"
        output = entry.get(f"output_cost_per_token_{above}")
        cached = entry.get(f"cache_read_input_token_cost_{above}")
        tiers.append(
            PriceTier(
                above_input_tokens=int(match[1]) * 1000,
                input_usd=float(input_usd),
                output_usd=float(output) if _is_amount(output) else output_usd,
                cached_usd=float(cached) if _is_amount(cached) else float(input_usd),
            )
        )
    return tuple(sorted(tiers, key=lambda tier: tier.above_input_tokens))


def _is_amount(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _count(value: object) -> int | None:
    return int(value) if _is_amount(value) and value > 0 else None
