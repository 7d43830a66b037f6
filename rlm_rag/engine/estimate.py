"""What a run may cost, told before anything is sent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rlm_rag.corpus import Corpus
from rlm_rag.counts import counted
from rlm_rag.engine.calls import CAP_TOKENS
from rlm_rag.engine.figures import describe
from rlm_rag.engine.images import read_images
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.lineup import ModelNames, ModelSettings
from rlm_rag.engine.prompts.texts import profile_name
from rlm_rag.engine.strategies.choice import choose
from rlm_rag.engine.workload import (
    NOTE_TOKENS,
    Asked,
    Load,
    Task,
    framed_tokens,
    parts_of,
    shortest_call,
    workload,
)
from rlm_rag.models.image_tokens import likely_image_tokens
from rlm_rag.models.prices import UNKNOWN_WINDOW_TOKENS, ModelFacts
from rlm_rag.models.tokens import count_tokens
from rlm_rag.trace.events import MAP_STRATEGY

# A token is about so many bytes of source code or prose (models.tokens).
_BYTES_A_TOKEN = 4
# Counted tokens lie up to a quarter above the provider's (models.tokens), so the low case does too.
_COUNTED_TOO_HIGH = 1.25


@dataclass(frozen=True, slots=True)
class Spend:
    """Requests, tokens and money of one case; `usd` None where a price is not known."""

    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None

    def __add__(self, other: Spend) -> Spend:
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Spend(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            usd,
        )


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run costs if all goes quickly, as usual, or at length.

    `strategy` is the one that it would be answered by; `assumptions` say in sentences what the
    figures rest on.
    """

    low: Spend
    likely: Spend
    high: Spend
    model: str
    sub_model: str
    strategy: str
    assumptions: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The object that `ask --estimate --json` prints."""
        return {"schema_version": 1, **asdict(self)}


@dataclass(frozen=True, slots=True)
class EstimatedModel:
    """A model's name and what is known of it."""

    name: str
    facts: ModelFacts


def estimate(
    corpus: Corpus,
    question: str,
    *,
    names: ModelNames,
    settings: ModelSettings,
    limits: Limits,
    strategy: str = "auto",
    profile: str = "auto",
    images: Sequence[str | Path] = (),
) -> Estimate:
    """Return what answering `question` by a strategy may cost; nothing is sent, no key is needed.

    `auto` is what a run would choose, as far as `settings` know windows. Prompts are not taken to
    be cached by the provider, which makes them cheaper.

    Raises:
        UsageError: as `read_images`.
    """
    root, sub = _estimated(names.model, settings), _estimated(names.sub, settings)
    shown = read_images(images, model=root.name, facts=root.facts)
    profile = profile_name(profile, root.name)
    chosen, calls = strategy, limits.calls or 0
    if strategy == "auto":
        chosen = choose(corpus, question=question, root=root, profile=profile, calls_left=calls)
    task = Task(
        question=question,
        documents=_sizes(corpus, chosen),
        root=root.facts,
        sub=sub.facts,
        limits=limits,
        described=f"{describe(corpus)}\n{question}",
        lines=corpus.line_count,
        is_small=profile == "small",
        images=len(shown),
        image_tokens=sum(likely_image_tokens(image, root.name) for image in shown),
    )
    said = (f"the strategy is {chosen}, which auto takes",) if strategy == "auto" else ()
    return _estimate(chosen, task, root, sub, said=said)


def estimate_tokens(
    question: str,
    corpus_tokens: int,
    *,
    names: ModelNames,
    settings: ModelSettings,
    limits: Limits,
    strategy: str = "rlm",
    profile: str = "auto",
) -> Estimate:
    """Return what a question of a corpus of that size may cost by a strategy (`auto`: as `rlm`)."""
    root, sub = _estimated(names.model, settings), _estimated(names.sub, settings)
    task = Task(
        question=question,
        documents=(corpus_tokens,),
        root=root.facts,
        sub=sub.facts,
        limits=limits,
        described=question,
        is_small=profile_name(profile, root.name) == "small",
    )
    return _estimate("rlm" if strategy == "auto" else strategy, task, root, sub)


def estimate_map(
    tokens: Sequence[int],
    prompt: str,
    *,
    names: ModelNames,
    settings: ModelSettings,
    limits: Limits,
) -> Estimate:
    """Return what asking `prompt` of texts of so many tokens may cost, each for itself."""
    sub = _estimated(names.sub, settings)
    parts = parts_of(tokens, prompt, sub.facts)
    sent = parts if limits.calls is None else min(parts, limits.calls)
    input_tokens = sum(tokens) * sent // max(1, parts) + sent * framed_tokens(prompt)
    loads = {
        name: Load(Asked(), Asked(sent, input_tokens, sent * reply_tokens))
        for name, reply_tokens in NOTE_TOKENS.items()
    }
    replies = "/".join(str(tokens) for tokens in NOTE_TOKENS.values())
    cut = "" if sent == parts else f", of which --max-calls lets {sent:,} be sent"
    said = (
        f"{len(tokens):,} documents of about {sum(tokens):,} tokens, in {parts:,} parts that fit a "
        f"window of {sub.facts.assumed_window:,} tokens{cut}",
        f"low/likely/high: replies of {replies} tokens",
        _price_said(sub),
    )
    shortest = shortest_call(tokens, prompt, sub.facts)
    spends = _spends(loads, sub, sub, limits, shortest=shortest)
    return Estimate(
        **spends,
        model=sub.name,
        sub_model=sub.name,
        strategy=MAP_STRATEGY,
        assumptions=(*_unsendable(loads, spends), *said),
    )


def _estimated(name: str, settings: ModelSettings) -> EstimatedModel:
    return EstimatedModel(name, settings.facts(name))


def _sizes(corpus: Corpus, strategy: str) -> Sequence[int]:
    """Return the tokens of the corpus: of each document, counted, where each is sent."""
    if strategy != "map-reduce":
        return (corpus.total_bytes // _BYTES_A_TOKEN,)
    return [count_tokens(each.content) for each in corpus if each.content.strip()]


def _estimate(
    strategy: str,
    task: Task,
    root: EstimatedModel,
    sub: EstimatedModel,
    *,
    said: tuple[str, ...] = (),
) -> Estimate:
    found = workload(strategy, task)
    models = dict.fromkeys((root, sub))
    # What `rlm` sends does not depend on it.
    guessed = [m.name for m in models if m.facts.context_window is None and strategy != "rlm"]
    windows = (
        f"the window of {name} is not known, and taken as {UNKNOWN_WINDOW_TOKENS:,} tokens: with "
        "another that its server says, or --context-window, the figures are others"
        for name in guessed
    )
    spends = _spends(found.loads, root, sub, task.limits, shortest=found.shortest)
    return Estimate(
        **spends,
        model=root.name,
        sub_model=sub.name,
        strategy=strategy,
        assumptions=(
            *_unsendable(found.loads, spends),
            *said,
            *_images_said(task),
            *found.assumptions,
            *windows,
            "prompts are paid in full: a provider that caches them takes less",
            f"replies stay below {CAP_TOKENS:,} tokens; a model that reasons at length may pass "
            "high",
            *map(_price_said, models),
        ),
    )


def _spends(
    loads: Mapping[str, Load],
    root: EstimatedModel,
    sub: EstimatedModel,
    limits: Limits,
    *,
    shortest: Load | None,
) -> dict[str, Spend]:
    """Return what each case costs within the limits; nothing, where they let no call through.

    The high one has as many calls as fit if each is the `shortest`.
    """
    whole = {name: _spend(name, load, root, sub) for name, load in loads.items()}
    least = _within(whole["low"], limits)
    spends = {
        name: _within(spend, limits, least_calls=least.calls) if least.calls else least
        for name, spend in whole.items()
    }
    if shortest is not None:
        high = whole["high"]
        fitting = min(high.calls, _share(_spend("low", shortest, root, sub), limits))
        spends["high"] = _within(high, limits, least_calls=max(least.calls, int(fitting)))
    return spends


def _images_said(task: Task) -> tuple[str, ...]:
    if not task.images:
        return ()
    each = task.image_tokens // task.images
    return (f"{counted(task.images, 'image')} of {each:,} tokens in every turn",)


def _unsendable(loads: Mapping[str, Load], spends: Mapping[str, Spend]) -> tuple[str, ...]:
    if spends["low"].calls or not loads["low"].calls:
        return ()
    return ("the limits have no room for one call of the usual size: few or none would be sent",)


def _spend(name: str, load: Load, root: EstimatedModel, sub: EstimatedModel) -> Spend:
    usd: float | None = 0.0
    input_tokens = output_tokens = 0
    for asked, model in ((load.root, root), (load.sub, sub)):
        sent = asked.input_tokens
        if name == "low":
            sent = int(sent / _COUNTED_TOO_HIGH)
        input_tokens += sent
        output_tokens += asked.output_tokens
        price = model.facts.price
        if usd is not None:
            usd = (
                None
                if price is None
                else usd + price.usd(input_tokens=sent, output_tokens=asked.output_tokens)
            )
    return Spend(load.calls, input_tokens, output_tokens, usd)


def _within(spend: Spend, limits: Limits, *, least_calls: int = 0) -> Spend:
    """The spend cut at what the limits let through, its parts in proportion.

    Where that is less than one call, and than `least_calls`, it is nothing at all.
    """
    share = min(1.0, _share(spend, limits))
    calls = max(least_calls, int(spend.calls * share))
    if not calls:
        return Spend(0, 0, 0, None if spend.usd is None else 0.0)
    return Spend(
        calls,
        int(spend.input_tokens * share),
        int(spend.output_tokens * share),
        None if spend.usd is None else spend.usd * share,
    )


def _share(spend: Spend, limits: Limits) -> float:
    """Return how many times the limits of tokens and money let a spend through."""
    shares = [math.inf]
    tokens = spend.input_tokens + spend.output_tokens
    if limits.tokens is not None and tokens:
        shares.append(limits.tokens / tokens)
    if limits.usd is not None and spend.usd:
        shares.append(limits.usd / spend.usd)
    return min(shares)


def _price_said(model: EstimatedModel) -> str:
    price = model.facts.price
    if price is None:
        return f"the price of {model.name} is not known (give it: --price INPUT/OUTPUT)"
    return (
        f"{model.name}: ${price.input_usd * 1e6:g} in, ${price.output_usd * 1e6:g} out, "
        "a million tokens"
    )
