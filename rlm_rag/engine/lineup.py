"""The models of one run: root, sub-model, those of deeper levels, what stands in for them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from rlm_rag.engine.calls import PricedModel
from rlm_rag.engine.fallbacks import Fallbacks
from rlm_rag.errors import UsageError
from rlm_rag.models.limiter import Limiter
from rlm_rag.models.prices import facts_of, parse_price
from rlm_rag.models.router import close_model, open_model, provider_name, replies_in_order
from rlm_rag.models.sharing import SharedReplies


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

    def all(self) -> tuple[str, ...]:
        """Each name once, the root model's first."""
        sub = (self.sub_model,) if self.sub_model else ()
        names = (self.model, *sub, *self.at_depth.values(), *self.fallbacks, *self.allowed)
        return tuple(dict.fromkeys(names))

    def root_at(self, depth: int) -> str:
        """The root model of an RLM at that depth, 0 being the root's own."""
        named = [level for level in self.at_depth if level <= depth]
        return self.at_depth[max(named)] if named else self.model


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """How every model of a run is reached and asked.

    `price` is that of all of them, as `parse_price` reads it. `temperature` and `extra` go with
    each request as they are.
    """

    api_base: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    price: str | None = None
    temperature: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


class Lineup:
    """The models of a run, opened; models of one provider share a limiter. `aclose` it.

    Raises:
        ModelError: a name or key that cannot be used.
        UsageError: a price that is not known under a limit in money.
    """

    def __init__(
        self,
        names: ModelNames,
        settings: ModelSettings,
        *,
        shared: SharedReplies,
        concurrency: int,
        priced: bool,
    ) -> None:
        self._names = names
        self._settings = settings
        self._shared = shared
        self._concurrency = concurrency
        self._limiters: dict[str, Limiter] = {}
        self._fallbacks: Fallbacks[PricedModel] = Fallbacks()
        self._models = {name: self._opened(name, priced=priced) for name in names.all()}
        self._fallbacks.models = tuple(self._models[name] for name in names.fallbacks)

    @property
    def root(self) -> PricedModel:
        """The root's own model."""
        return self._models[self._names.model]

    @property
    def sub(self) -> PricedModel:
        """The model of leaf calls that name none."""
        return self._models[self._names.sub_model or self._names.model]

    @property
    def offered(self) -> tuple[str, ...]:
        """The names that a block's code may give as `model`, the sub-model's first."""
        return tuple(dict.fromkeys((self.sub.name, *self._names.allowed)))

    def root_at(self, depth: int) -> PricedModel:
        """The root model of a child at that depth which names none."""
        return self._models[self._names.root_at(depth)]

    def named(self, name: str) -> PricedModel | None:
        """The model that a block's code names; None where it is not offered."""
        return self._models[name] if name in self.offered else None

    async def aclose(self) -> None:
        """Close every model, in the loop that they were called from."""
        async with AsyncExitStack() as stack:
            for model in self._models.values():
                stack.push_async_callback(close_model, model.model)

    def _opened(self, name: str, *, priced: bool) -> PricedModel:
        settings = self._settings
        price = None if settings.price is None else parse_price(settings.price)
        facts = facts_of(name, api_base=settings.api_base, price=price)
        if priced and facts.price is None:
            raise UsageError(
                f"the price of {name} is not known, so a limit in dollars cannot be kept",
                hint="give it: --price INPUT/OUTPUT, in dollars a million tokens",
            )
        provider = provider_name(name, api_base=settings.api_base)
        return PricedModel(
            open_model(name, api_base=settings.api_base, headers=settings.headers, price=price),
            facts,
            self._limiters.setdefault(provider, Limiter(self._concurrency)),
            api_base=settings.api_base,
            temperature=settings.temperature,
            extra=settings.extra,
            shared=None if replies_in_order(name) else self._shared,
            fallbacks=self._fallbacks,
        )
