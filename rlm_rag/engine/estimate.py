"""What a run may cost, told before anything is sent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rlm_rag.corpus import Corpus
from rlm_rag.engine.calls import CAP_TOKENS
from rlm_rag.engine.figures import describe
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.lineup import ModelNames, ModelSettings
from rlm_rag.engine.prompts.texts import load_profile
from rlm_rag.engine.strategies.retrieve import MOST_TOKENS, WINDOW_SHARE
from rlm_rag.models.prices import ModelFacts
from rlm_rag.models.tokens import count_tokens

# A token is about so many bytes of source code or prose (models.tokens).
_BYTES_A_TOKEN = 4
# What a part of a text is sent with besides (material).
_FRAME_TOKENS = 60
# Parts end at borders: of what would fit, 0.64 to 0.74 was used with this package's own files.
_FILLED = 0.7
# Of the window, at least this part is there for the prompt and the text (material).
_TEXT_SHARE = 0.75
# Counted tokens lie up to a quarter above the provider's (models.tokens), so the low case does too.
_COUNTED_TOO_HIGH = 1.25


@dataclass(frozen=True, slots=True)
class Habits:
    """How a root model goes about a question.

    `reply_tokens` and `shown_tokens` are those of a turn's reply and of the output it is shown;
    `sub_calls` its leaf calls, of `prompt_tokens` and `answer_tokens` each; `share` the part of
    the corpus that is handed to sub-models besides.
    """

    turns: int
    reply_tokens: int
    shown_tokens: int
    sub_calls: int
    prompt_tokens: int
    answer_tokens: int
    share: float


# Low: the answer lies in what one search shows. Likely: a few looks, a handful of pieces read by
# sub-models. High: long outputs in many turns, and the whole corpus read once by sub-models.
HABITS: Mapping[str, Habits] = {
    "low": Habits(2, 60, 30, 0, 0, 0, 0.0),
    "likely": Habits(5, 300, 1_200, 6, 2_000, 200, 0.0),
    "high": Habits(14, 1_000, 4_000, 60, 6_000, 800, 1.0),
}


# The corpus, its passages or the notes on it in one prompt; `high` looks, or mends its form, once
# more.
_ONE_PROMPT: Mapping[str, Habits] = {
    "low": Habits(1, 60, 0, 0, 0, 0, 0.0),
    "likely": Habits(1, 300, 0, 0, 0, 0, 0.0),
    "high": Habits(2, 1_000, 0, 0, 0, 0, 0.0),
}
_NOTE_TOKENS = {"low": 20, "likely": 100, "high": 800}
_MAPPED: Mapping[str, Habits] = {
    name: replace(habits, prompt_tokens=6_000, answer_tokens=_NOTE_TOKENS[name], share=1.0)
    for name, habits in _ONE_PROMPT.items()
}


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

    `assumptions` say in sentences what the figures rest on.
    """

    low: Spend
    likely: Spend
    high: Spend
    model: str
    sub_model: str
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
) -> Estimate:
    """Return what answering `question` may cost; nothing is sent, and no key is looked for.

    Prompts are not taken to be cached by the provider, which makes them cheaper.
    """
    return estimate_tokens(
        f"{describe(corpus)}\n{question}",
        corpus.total_bytes // _BYTES_A_TOKEN,
        names=names,
        settings=settings,
        limits=limits,
    )


def estimate_tokens(
    told: str,
    corpus_tokens: int,
    *,
    names: ModelNames,
    settings: ModelSettings,
    limits: Limits,
    strategy: str = "rlm",
) -> Estimate:
    """Return what a question of a corpus of that size may cost by a strategy (`auto`: as `rlm`).

    `told` is what the first prompt says besides its instructions.
    """
    root, sub = _estimated(names.model, settings), _estimated(names.sub, settings)
    first_tokens = count_tokens(f"{load_profile('standard').system}\n{told}")
    habits_of, shown_tokens = _strategy(strategy, corpus_tokens, root)
    cases = {
        name: _within(
            _spend(habits, first_tokens + shown_tokens, corpus_tokens, root, sub, limits), limits
        )
        for name, habits in habits_of.items()
    }
    low = cases["low"]
    usd = None if low.usd is None else low.usd / _COUNTED_TOO_HIGH
    cases["low"] = Spend(
        low.calls, int(low.input_tokens / _COUNTED_TOO_HIGH), low.output_tokens, usd
    )
    return Estimate(
        **cases,
        model=root.name,
        sub_model=sub.name,
        assumptions=_assumptions(first_tokens, corpus_tokens, root, sub, limits),
    )


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
    window = sub.facts.assumed_window
    prompt_tokens = count_tokens(prompt) + _FRAME_TOKENS
    room = max(1, int(window * _TEXT_SHARE) - prompt_tokens)
    parts = sum(1 if each <= room else math.ceil(each / (room * _FILLED)) for each in tokens)
    input_tokens = sum(tokens) + parts * prompt_tokens
    cases = {}
    for name, reply_tokens in _NOTE_TOKENS.items():
        sent = int(input_tokens / _COUNTED_TOO_HIGH) if name == "low" else input_tokens
        output_tokens, price = parts * reply_tokens, sub.facts.price
        usd = None
        if price is not None:
            usd = price.usd(input_tokens=sent, output_tokens=output_tokens)
        cases[name] = _within(Spend(parts, sent, output_tokens, usd), limits)
    replies = "/".join(str(tokens) for tokens in _NOTE_TOKENS.values())
    said = (
        f"{len(tokens):,} documents of about {sum(tokens):,} tokens, in {parts:,} parts that fit a "
        f"window of {window:,} tokens",
        f"low/likely/high: replies of {replies} tokens",
    )
    return Estimate(
        **cases, model=sub.name, sub_model=sub.name, assumptions=(*said, _price_said(sub))
    )


def _estimated(name: str, settings: ModelSettings) -> EstimatedModel:
    return EstimatedModel(name, settings.facts(name))


def _strategy(
    strategy: str, corpus_tokens: int, root: EstimatedModel
) -> tuple[Mapping[str, Habits], int]:
    """Return a strategy's habits, and the tokens of the corpus that its first prompt shows."""
    window = root.facts.assumed_window
    match strategy:
        case "direct":
            return _ONE_PROMPT, min(corpus_tokens, window)
        case "retrieve":
            return _ONE_PROMPT, min(corpus_tokens, MOST_TOKENS, int(window * WINDOW_SHARE))
        case "map-reduce":
            pieces = corpus_tokens // _MAPPED["likely"].prompt_tokens + 1
            return _MAPPED, pieces * _NOTE_TOKENS["likely"]
        case _:
            return HABITS, 0


def _spend(
    habits: Habits,
    first_tokens: int,
    corpus_tokens: int,
    root: EstimatedModel,
    sub: EstimatedModel,
    limits: Limits,
) -> Spend:
    turns = min(habits.turns, limits.iterations)
    # The prompt of each turn holds all turns before it.
    grown = habits.reply_tokens + habits.shown_tokens
    root_input = turns * first_tokens + grown * turns * (turns - 1) // 2
    root_output = turns * habits.reply_tokens
    pieces = math.ceil(corpus_tokens * habits.share / (habits.prompt_tokens or 1))
    sub_calls = habits.sub_calls + pieces
    if limits.calls is not None:
        sub_calls = max(0, min(sub_calls, limits.calls - turns))
    sub_input = sub_calls * habits.prompt_tokens
    sub_output = sub_calls * habits.answer_tokens
    usd = None
    if root.facts.price is not None and sub.facts.price is not None:
        usd = root.facts.price.usd(input_tokens=root_input, output_tokens=root_output)
        usd += sub.facts.price.usd(input_tokens=sub_input, output_tokens=sub_output)
    return Spend(turns + sub_calls, root_input + sub_input, root_output + sub_output, usd)


def _within(spend: Spend, limits: Limits) -> Spend:
    """The spend cut at what the limits let through, its parts in proportion."""
    shares = [1.0]
    tokens = spend.input_tokens + spend.output_tokens
    if limits.tokens is not None and tokens:
        shares.append(limits.tokens / tokens)
    if limits.usd is not None and spend.usd:
        shares.append(limits.usd / spend.usd)
    share = min(shares)
    return Spend(
        max(1, int(spend.calls * share)),
        int(spend.input_tokens * share),
        int(spend.output_tokens * share),
        None if spend.usd is None else spend.usd * share,
    )


def _assumptions(
    first_tokens: int,
    corpus_tokens: int,
    root: EstimatedModel,
    sub: EstimatedModel,
    limits: Limits,
) -> tuple[str, ...]:
    turns = "/".join(str(min(h.turns, limits.iterations)) for h in HABITS.values())
    leaves = "/".join(str(h.sub_calls) for h in HABITS.values())
    said = [
        f"the first prompt has about {first_tokens:,} tokens, the corpus {corpus_tokens:,}",
        f"low/likely/high: {turns} turns, {leaves} sub-calls; high also has the whole corpus read "
        "once by sub-models, as far as --max-calls allows",
        "prompts are paid in full: a provider that caches them takes less",
        f"replies stay below {CAP_TOKENS:,} tokens; a model that reasons at length may pass high",
    ]
    return (*said, *map(_price_said, dict.fromkeys((root, sub))))


def _price_said(model: EstimatedModel) -> str:
    price = model.facts.price
    if price is None:
        return f"the price of {model.name} is not known (give it: --price INPUT/OUTPUT)"
    return (
        f"{model.name}: ${price.input_usd * 1e6:g} in, ${price.output_usd * 1e6:g} out, "
        "a million tokens"
    )
