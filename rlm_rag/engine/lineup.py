"""The models of one run: root, sub-model, those of deeper levels, what stands in for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlm_rag.engine.calls import PricedModel
from rlm_rag.engine.counting import Counting
from rlm_rag.engine.fallbacks import Fallbacks
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.pool import Pool, Share
from rlm_rag.engine.refusals import Refusals
from rlm_rag.engine.windows import has_no_window, served_by_servers
from rlm_rag.errors import UsageError
from rlm_rag.models.absent import AbsentModel
from rlm_rag.models.base import LanguageModel
from rlm_rag.models.cache import ReplyCache, default_cache_file
from rlm_rag.models.ollama import NUM_CTX, context_of, is_ollama
from rlm_rag.models.prices import (
    UNKNOWN_WINDOW_TOKENS,
    ModelFacts,
    Price,
    facts_of,
    may_take_schemas,
    parse_price,
)
from rlm_rag.models.providers import replies_from_file
from rlm_rag.models.router import close_model, open_model, provider_name
from rlm_rag.models.schemas import Schemas
from rlm_rag.models.sharing import SharedReplies
from rlm_rag.models.vocabularies import is_served_by_openai

# What this package sets by itself: set from outside, it would break a limit, a reply or a key.
_OWN_PARAMETERS = frozenset(
    {
        *("model", "messages", "n", "stream", "stream_options", "temperature", "timeout"),
        *("max_tokens", "max_completion_tokens", "max_output_tokens", "max_retries"),
        *("num_retries", "fallbacks", "mock_response", "caching", "cache", "callbacks"),
        *("api_key", "api_base", "base_url", "api_version", "custom_llm_provider"),
        *("extra_headers", "headers", "client", "input_cost_per_token", "output_cost_per_token"),
        *("tools", "tool_choice", "functions", "function_call", "web_search_options"),
        # Output caps and numbers of replies, as some providers and servers name them.
        *("max_new_tokens", "max_tokens_to_sample", "maxOutputTokens", "max_length"),
        *("n_predict", "num_predict", "generation_config", "generationConfig"),
        *("best_of", "candidate_count", "candidateCount", "num_return_sequences"),
        # What has a provider search, and put what it finds into the prompt; other models.
        *("plugins", "search_parameters", "enable_search", "models", "prediction"),
    }
)
# Characters of options that hold no schema.
_SHORT_OPTIONS = 100
# Parameters whose own are sent beside all others, or in the place of them.
_BODIES = frozenset({"extra_body", "options"})
# With them other prices hold than those of the table: tiers, Anthropic's fast mode and regions,
# and what is written to its cache.
_PRICED_APART = frozenset(
    {"service_tier", "speed", "inference_geo", "cache_control", "cache_control_injection_points"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelNames:
    """Which models a run uses, as the user spelled them.

    `sub_model` None is `model`. `at_depth` names the root model of children from that depth on
    (1 is a child of the root). `fallbacks` take the place of any model whose provider cannot be
    reached, in order. `allowed` may be named by the code of a block, beside the sub-model.
    """

    model: str
    sub_model: str | None = None
    at_depth: Mapping[int, str] = field(default_factory=dict)
    fallbacks: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()

    @property
    def sub(self) -> str:
        """The sub-model that is asked."""
        return self.sub_model or self.model

    def all(self) -> tuple[str, ...]:
        """Each name once, the root model's first."""
        names = (self.model, self.sub, *self.at_depth.values(), *self.fallbacks, *self.allowed)
        return tuple(dict.fromkeys(names))

    def windows(self, sub_context_window: int | None) -> Mapping[str, int | None]:
        """Return what is said of windows by name, where that is the sub-model's alone."""
        return {} if sub_context_window is None else {self.sub: sub_context_window}

    def root_at(self, depth: int) -> str | None:
        """The root model that was set for children at that depth."""
        named = [level for level in self.at_depth if level <= depth]
        return self.at_depth[max(named)] if named else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """How every model of a run is reached and asked.

    `price` is that of all of them, as `parse_price` reads it, `context_window` in tokens too, but
    for those that `windows` has by name (None: it is not known). `temperature` and `extra` go with
    each request as they are.

    Raises:
        UsageError: a window that is no number of tokens.
    """

    api_base: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    price: str | None = None
    temperature: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    context_window: int | None = None
    windows: Mapping[str, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for tokens in (self.context_window, *self.windows.values()):
            if tokens is not None and (type(tokens) is not int or tokens < 1):
                raise UsageError(
                    f"a context window of {tokens!r} tokens is none",
                    hint="for example context_window=32768",
                )

    def is_told(self, name: str) -> bool:
        """Whether the window of a model, or that it is not known, is said here."""
        return name in self.windows or self.context_window is not None

    def parameters(self, name: str) -> Mapping[str, Any]:
        """Return what goes with each request to a model; Ollama is asked for the window said."""
        told = self._told(name)
        return {NUM_CTX: told, **self.extra} if told and is_ollama(name) else self.extra

    @property
    def given_price(self) -> Price | None:
        """The price that is set, read.

        Raises:
            UsageError: it is none.
        """
        return None if self.price is None else parse_price(self.price)

    def facts(self, name: str) -> ModelFacts:
        """Return what is known of a model that is reached and asked so.

        Raises:
            UsageError: the price is none.
        """
        facts = facts_of(name, api_base=self.api_base, price=self.given_price)
        if self.is_told(name):
            return replace(facts, context_window=self._told(name))
        if is_ollama(name):
            return replace(facts, context_window=context_of(self.extra))
        return facts

    def _told(self, name: str) -> int | None:
        return self.windows.get(name, self.context_window)


@asynccontextmanager
async def open_lineup(
    names: ModelNames,
    settings: ModelSettings,
    *,
    limits: Limits,
    cache: bool | Path = False,
    absent: str | None = None,
    share: Share | None = None,
) -> AsyncIterator[Lineup]:
    """Open a run's models, and the cache of replies where one is asked for; both end with it.

    `cache` True is the user's own, a path another. Nothing is sent, but for a look at what
    servers say of the windows that are not known. With `absent`, which says why, the models have
    their names and figures, need no key, and answer nothing. `share` has the limiters of all runs
    that it is shared with.

    Raises:
        ModelError: a name or key that cannot be used.
        UsageError: a parameter that cannot be set, or a price that is not known under a limit
            in money.
    """
    async with AsyncExitStack() as stack:
        path = default_cache_file() if cache is True else cache
        kept = None
        if path and not absent:
            kept = ReplyCache(Path(path))
            # It may have to wait for another process.
            stack.push_async_callback(asyncio.to_thread, kept.close)
        shared = SharedReplies(kept)
        lineup = Lineup(names, settings, shared=shared, limits=limits, absent=absent, share=share)
        stack.push_async_callback(lineup.aclose)
        if not absent:
            await lineup.find_windows()
        yield lineup


class Lineup:
    """The models of a run; models of one provider share a limiter."""

    def __init__(
        self,
        names: ModelNames,
        settings: ModelSettings,
        *,
        shared: SharedReplies,
        limits: Limits,
        absent: str | None = None,
        share: Share | None = None,
    ) -> None:
        self._absent = absent
        self._names = names
        self._settings = settings
        self._shared = shared
        self._share = share or Pool(concurrency=limits.concurrency).share()
        self._bounds_usd = limits.usd is not None or self._share.usd is not None
        _check_extra(settings.extra, by_table=self._bounds_usd and settings.price is None)
        self._fallbacks: Fallbacks[PricedModel] = Fallbacks()
        self._refusals = Refusals()
        self._models = {name: self._opened(name) for name in names.all()}
        self._fallbacks.models = tuple(self._models[name] for name in names.fallbacks)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What people should know of the cache."""
        return self._shared.warnings

    @property
    def guesses(self) -> tuple[str, ...]:
        """What people should know of windows that nobody told."""
        guessed = self._guessed()
        if not guessed:
            return ()
        return (
            f"the context window of {', '.join(guessed)} is not known, and taken as "
            f"{UNKNOWN_WINDOW_TOKENS:,} tokens where texts are cut: --context-window says it",
        )

    @property
    def windows(self) -> Mapping[str, int | None]:
        """How many tokens each model takes in, by name, None where that is not known."""
        return {name: model.facts.context_window for name, model in self._models.items()}

    async def find_windows(self) -> None:
        """Ask servers for the windows that nobody has said or knows, and take them over."""
        found = await served_by_servers(self._models, self._settings, said=self._share.windows)
        self._learn(found)

    def _learn(self, windows: Mapping[str, int]) -> None:
        for name, tokens in windows.items():
            facts = replace(self._models[name].facts, context_window=tokens)
            self._models[name] = replace(self._models[name], facts=facts)
        self._fallbacks.models = tuple(self._models[name] for name in self._names.fallbacks)

    def _guessed(self) -> list[str]:
        """The models whose window somebody should say, since it is not known."""
        return [
            name
            for name, tokens in self.windows.items()
            if tokens is None and name not in self._settings.windows and not has_no_window(name)
        ]

    @property
    def root(self) -> PricedModel:
        """The root's own model."""
        return self._models[self._names.model]

    @property
    def sub(self) -> PricedModel:
        """The model of leaf calls that name none."""
        return self._models[self._names.sub]

    @property
    def leaves(self) -> Mapping[str, PricedModel]:
        """The models that a block's code may name for a leaf call, by name."""
        return self._by_name(self.sub.name, *self._names.allowed)

    @property
    def roots(self) -> Mapping[str, PricedModel]:
        """The models that a block's code may name for a child, by name."""
        names = self._names
        return self._by_name(names.model, self.sub.name, *names.at_depth.values(), *names.allowed)

    def root_at(self, depth: int) -> PricedModel | None:
        """The root model that was set for children of that depth; None for their parent's."""
        name = self._names.root_at(depth)
        return None if name is None else self._models[name]

    def _by_name(self, *names: str) -> Mapping[str, PricedModel]:
        return {name: self._models[name] for name in names}

    async def aclose(self) -> None:
        """Close every model, in the loop that they were called from."""
        async with AsyncExitStack() as stack:
            for model in self._models.values():
                stack.push_async_callback(close_model, model.model)

    def _opened(self, name: str) -> PricedModel:
        settings = self._settings
        facts, parameters = settings.facts(name), settings.parameters(name)
        if self._bounds_usd and facts.price is None:
            raise _unpriced(name)
        provider = provider_name(name, api_base=settings.api_base)
        return PricedModel(
            self._model(name),
            facts,
            self._share.limiter(provider),
            api_base=settings.api_base,
            temperature=settings.temperature,
            extra=parameters,
            # The reply to a prompt depends on what was asked before it.
            shared=None if replies_from_file(name) else self._shared,
            fallbacks=self._fallbacks,
            refusals=self._refusals,
            counting=Counting(
                name,
                api_base=settings.api_base,
                has_template=self._has_template(name),
                besides=_in_prompts(parameters),
            ),
            schemas=Schemas(may_take_schemas(name, api_base=settings.api_base)),
        )

    def _has_template(self, name: str) -> bool:
        """Whether a server may put around messages what is not known."""
        api_base = self._settings.api_base
        return not has_no_window(name) and not is_served_by_openai(name, api_base)

    def _model(self, name: str) -> LanguageModel:
        settings = self._settings
        if self._absent:
            return AbsentModel(name, self._absent)
        return open_model(
            name,
            api_base=settings.api_base,
            headers=settings.headers,
            price=settings.given_price,
        )


def _in_prompts(extra: Mapping[str, Any]) -> str:
    """Return what providers may put into each prompt of the options, as JSON; "" for nothing.

    A schema is put there, say; what is shorter is none.
    """
    text = json.dumps(dict(extra), default=str)
    return text if len(text) > _SHORT_OPTIONS else ""


def _unpriced(what: str) -> UsageError:
    return UsageError(
        f"the price of {what} is not known, so a limit in dollars cannot be kept",
        hint="give it: --price INPUT/OUTPUT, in dollars a million tokens",
    )


def _check_extra(extra: Mapping[str, Any], *, by_table: bool) -> None:
    """Refuse what would break a limit; `by_table` says that one in money goes by known prices."""
    for name, value in extra.items():
        if name in _OWN_PARAMETERS or not name.isidentifier():
            raise UsageError(
                f"{name!r} cannot be set as a model option",
                hint="limits, temperature, models and addresses have options of their own; "
                "a model option is for example top_p=0.9 or reasoning_effort=low",
            )
        if by_table and name in _PRICED_APART:
            raise _unpriced(f"a {name}")
        if name in _BODIES and isinstance(value, Mapping):
            _check_extra(value, by_table=by_table)
