"""What a run may cost, told before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rlm_rag.corpus import Corpus
from rlm_rag.engine.calls import CAP_TOKENS
from rlm_rag.engine.figures import describe
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.lineup import ModelNames, ModelSettings
from rlm_rag.engine.prompts.texts import load_profile
from rlm_rag.models.prices import ModelFacts, facts_of, parse_price
from rlm_rag.models.tokens import count_tokens

# A token is about so many bytes of source code or prose (models.tokens).
_BYTES_A_TOKEN = 4
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


@dataclass(frozen=True, slots=True)
class Spend:
    """Requests, tokens and money of one case; `usd` None where a price is not known."""

    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None


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
    root = _estimated(names.model, settings)
    sub = _estimated(names.sub_model or names.model, settings)
    told = f"{load_profile('standard').system}\n{describe(corpus)}\n{question}"
    first_tokens = count_tokens(told)
    corpus_tokens = corpus.total_bytes // _BYTES_A_TOKEN
    cases = {
        name: _within(_spend(habits, first_tokens, corpus_tokens, root, sub, limits), limits)
        for name, habits in HABITS.items()
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


def _estimated(name: str, settings: ModelSettings) -> EstimatedModel:
    price = None if settings.price is None else parse_price(settings.price)
    return EstimatedModel(name, facts_of(name, api_base=settings.api_base, price=price))


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
    pieces = int(corpus_tokens * habits.share) // (habits.prompt_tokens or 1)
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
    for model in dict.fromkeys((root, sub)):
        price = model.facts.price
        said.append(
            f"the price of {model.name} is not known (give it: --price INPUT/OUTPUT)"
            if price is None
            else f"{model.name}: ${price.input_usd * 1e6:g} in, ${price.output_usd * 1e6:g} out, "
            "a million tokens"
        )
    return tuple(said)
