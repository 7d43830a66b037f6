"""Near a limit prompts are counted with care: lone calls and the last one pass no limit either."""

from __future__ import annotations

import asyncio
import base64
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.distributed.desk import Terms
from rlm_rag.distributed.remote import RemoteAccount
from rlm_rag.engine import counting
from rlm_rag.engine.admission import CallEstimate, LimitReached
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.calls import LEAST_REPLY_TOKENS, PricedModel
from rlm_rag.engine.counting import Counting
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.pool import Pool, Share
from rlm_rag.errors import ModelTimeoutError
from rlm_rag.models import vocabularies
from rlm_rag.models.base import Completion, Message, ModelRequest, Usage
from rlm_rag.models.limiter import Limiter
from rlm_rag.models.prices import ModelFacts, Price
from rlm_rag.models.tokens import count_message_tokens, framing_tokens
from tests.distributed.near import NearLine
from tests.engine.test_money import calls_of
from tests.virtual_time import run_virtually

PRICE = Price(input_usd=1e-5, output_usd=2e-5, cached_usd=1e-6)
DICE = random.Random(5)
# An example plays whole runs: a quarter of what the profile has, 10, and 75 with --deep.
FEW = settings(max_examples=settings().max_examples // 4)


def drawn(first: int, last: int) -> str:
    """Characters of a script, at random."""
    return "".join(chr(DICE.randrange(first, last)) for _ in range(300))


TEXTS = {
    "bytes": DICE.randbytes(600).decode("latin-1"),
    "chinese": drawn(0x4E00, 0x9FFF),
    "emoji": drawn(0x1F300, 0x1FAFF),
    "french": "Il rêvait déjà d'être ailleurs, à la lisière d'une forêt où l'on n'entend rien. "
    * 8,
    "hex": DICE.randbytes(300).hex(),
    "korean": drawn(0xAC00, 0xD7A3),
    "ligatures": "\ufdfa\ufdfb " * 40,
    "numbers": "\n".join(f"{DICE.random() * 1000:.6f},{DICE.randrange(10**9)}" for _ in range(30)),
    "minified": "!function(a,b){var c=a.d;if(c>1){return b(c.e,a[0])}}(x,y);" * 9,
    "prose": "Beautiful is better than ugly. " * 20,
}


@dataclass(frozen=True)
class Plan:
    """A call, and what becomes of it."""

    kind: str
    chars: int
    start: int = 0
    seconds: int = 1
    share: float = 1.0
    losses: int = 0
    cancelled_after: int | None = None
    child: bool = False
    cap: int = 300


@cache
def highest(text: str) -> int:
    """What the tokenizer that makes most of a text makes of it, uncut; some set digits apart."""
    counts = [vocabularies._vocabulary(name) for name in vocabularies.NAMES]
    known = [count for count in counts if count is not None]
    pieces = [piece for piece in re.split("([0-9])", text) if piece]
    return max(max(count(text), sum(map(count, pieces))) for count in known)


def billed(text: str) -> int:
    """What the provider counts in a prompt of one message."""
    return framing_tokens([Message("user", text)]) + highest(text)


class Provider:
    """Bills what the highest tokenizer counts, and never more than the cap as a reply."""

    name = "counts highest"

    def __init__(self, plans: dict[str, Plan]) -> None:
        self.plans = plans
        self.tried: dict[str, int] = {}
        self.billed = Usage()

    async def complete(self, request: ModelRequest) -> Completion:
        assert request.max_output_tokens is not None
        prompt = request.messages[-1].content
        plan = self.plans[prompt]
        tried = self.tried[prompt] = self.tried.get(prompt, 0) + 1
        input_tokens, output_tokens = billed(prompt), int(request.max_output_tokens * plan.share)
        usd = PRICE.usd(input_tokens=input_tokens, output_tokens=output_tokens)
        usage = Usage(1, input_tokens=input_tokens, output_tokens=output_tokens, usd=usd)
        self.billed += usage
        await asyncio.sleep(plan.seconds)
        if tried <= plan.losses:
            raise ModelTimeoutError("no reply in time")
        return Completion("reply", usage, self.name)


def prompts_of(plans: list[Plan]) -> dict[str, Plan]:
    return {f"{n} {TEXTS[plan.kind][: plan.chars]}": plan for n, plan in enumerate(plans)}


async def played(
    provider: Provider, limits: Limits, *, width: int = 4, share: Share | None = None
) -> tuple[Budget, dict[str, object]]:
    """Send every call of the provider's, the last one as the root's last; return what came."""
    loop = asyncio.get_running_loop()
    budget = Budget(limits, clock=loop.time, share=share)
    root, child = calls_of("r", budget, limits), calls_of("r.1", budget, limits)
    facts = ModelFacts(price=PRICE, max_output_tokens=1000)
    model = PricedModel(provider, facts, Limiter(width))
    *prompts, last = provider.plans

    async def one(prompt: str) -> object:
        plan = provider.plans[prompt]
        await asyncio.sleep(plan.start)
        return await (child if plan.child else root).complete(
            model,
            [Message("user", prompt)],
            role="root" if plan.child else "sub",
            max_output_tokens=plan.cap,
        )

    tasks = [asyncio.ensure_future(one(prompt)) for prompt in prompts]
    for task, prompt in zip(tasks, prompts, strict=True):
        after = provider.plans[prompt].cancelled_after
        if after is not None:
            loop.call_later(after, task.cancel)
    async with asyncio.timeout(100_000):
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        final = root.complete(model, [Message("user", last)], role="root", final=True)
        outcomes += await asyncio.gather(final, return_exceptions=True)
    known = Completion | LimitReached | ModelTimeoutError | asyncio.CancelledError
    assert all(isinstance(outcome, known) for outcome in outcomes), outcomes
    return budget, dict(zip(provider.plans, outcomes, strict=True))


plans = st.lists(
    st.builds(
        Plan,
        kind=st.sampled_from(sorted(TEXTS)),
        chars=st.sampled_from([20, 150, 600]),
        start=st.one_of(st.just(0), st.integers(0, 9)),
        seconds=st.integers(0, 6),
        share=st.one_of(st.just(1.0), st.floats(0, 1)),
        losses=st.sampled_from([0, 0, 0, 0, 1, 6]),
        cancelled_after=st.one_of(st.none(), st.none(), st.integers(0, 9)),
        child=st.booleans(),
        cap=st.integers(1, 400),
    ),
    min_size=1,
    max_size=16,
)


@FEW
@given(plans, st.integers(300, 9_000), st.floats(0.5, 2.0), st.integers(1, 6))
def test_whatever_bundled_tokenizer_counts_no_limit_is_passed(
    plans: list[Plan], tokens: int, part: float, width: int
) -> None:
    provider = Provider(prompts_of(plans))
    limits = Limits(calls=None, tokens=tokens, usd=tokens * part * 1.3e-5)
    budget, _ = run_virtually(played(provider, limits, width=width))
    spent, counted = provider.billed, budget.usage
    assert spent.usd is not None and counted.usd is not None and limits.usd is not None
    assert spent.input_tokens + spent.output_tokens <= tokens
    assert spent.usd <= limits.usd + 1e-9
    # What was cancelled counts for no less than it cost, nor for more than there was.
    assert spent.usd - 1e-9 <= counted.usd <= limits.usd + 1e-9
    assert counted.input_tokens + counted.output_tokens <= tokens


@given(plans, st.integers(300, 9_000), st.booleans())
def test_nothing_is_refused_that_fits_when_it_is_counted_with_care(
    plans: list[Plan], tokens: int, one_by_one: bool
) -> None:
    calm = [replace(plan, losses=0, cancelled_after=None) for plan in plans]
    prompts = prompts_of(calm)
    provider = Provider(prompts)
    limits = Limits(calls=None, tokens=tokens)

    async def run() -> None:
        budget = Budget(limits, keeps_final=False)
        calls = calls_of("r.1", budget, limits)
        model = PricedModel(provider, ModelFacts(), Limiter(4))

        async def one(prompt: str) -> str | None:
            cap = prompts[prompt].cap
            try:
                await calls.complete(
                    model, [Message("user", prompt)], role="sub", max_output_tokens=cap
                )
            except LimitReached:
                return prompt
            return None

        if one_by_one:
            refused = [await one(prompt) for prompt in prompts]
        else:
            refused = list(await asyncio.gather(*map(one, prompts)))
        left = budget.tokens_left()
        assert left is not None
        for prompt in filter(None, refused):
            asked = [Message("user", prompt)]
            estimated = model.counting.estimated(count_message_tokens(asked), asked)
            careful = max(billed(prompt) + model.counting._added, estimated)
            assert careful + min(prompts[prompt].cap, LEAST_REPLY_TOKENS) > left

    run_virtually(run())
    assert provider.billed.input_tokens + provider.billed.output_tokens <= tokens


@FEW
@given(plans, plans, st.integers(300, 9_000), st.booleans())
def test_runs_that_share_a_sum_keep_it_in_one_process_and_in_several(
    some: list[Plan], others: list[Plan], tokens: int, far: bool
) -> None:
    providers = [Provider(prompts_of(plans)) for plans in (some, others)]
    usd = tokens * 1.3e-5

    async def run() -> None:
        line, pool = NearLine(), Pool(usd=usd)
        await line.ask("open", "run", Terms(usd=usd))
        shares = [
            RemoteAccount(line, "run", f"node{n}", usd=usd).share() if far else pool.share()
            for n in range(2)
        ]
        limits = Limits(calls=None)
        both = (
            played(provider, limits, share=share)
            for provider, share in zip(providers, shares, strict=True)
        )
        await asyncio.gather(*both)
        await line.settled()
        spent = await line.ask("spent_usd", "run") if far else pool.spent_usd
        billed = sum(provider.billed.usd or 0.0 for provider in providers)
        assert billed - 1e-9 <= spent <= usd + 1e-9

    run_virtually(run())


@FEW
@given(plans, plans, st.integers(300, 9_000))
def test_children_in_other_processes_pass_no_limit_of_their_run(
    some: list[Plan], others: list[Plan], tokens: int
) -> None:
    providers = [Provider(prompts_of(plans)) for plans in (some, others)]
    limits = Limits(calls=None, tokens=tokens)

    async def run() -> None:
        line = NearLine()
        await line.ask("open", "run", Terms(limits=limits))
        shares = [RemoteAccount(line, "run", f"node{n}", usd=None).share() for n in range(2)]
        both = (
            played(provider, limits, share=share)
            for provider, share in zip(providers, shares, strict=True)
        )
        await asyncio.gather(*both)

    run_virtually(run())
    spent = [provider.billed for provider in providers]
    assert sum(each.input_tokens + each.output_tokens for each in spent) <= tokens


async def leaf(provider: Provider, prompt: str, limits: Limits) -> Budget:
    """Send one call alone, without a root whose last one is kept back."""
    budget = Budget(limits, keeps_final=False)
    model = PricedModel(provider, ModelFacts(price=PRICE), Limiter(1))
    cap = provider.plans[prompt].cap
    await calls_of("r.1", budget, limits).complete(
        model, [Message("user", prompt)], role="sub", max_output_tokens=cap
    )
    return budget


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The prompts that are counted with care."""
    counted: list[str] = []

    def noted(messages: tuple[Message, ...], **of: object) -> int | None:
        counted.extend(message.content for message in messages)
        return vocabularies.highest_message_tokens(messages, **of)  # type: ignore[arg-type]

    monkeypatch.setattr(counting, "highest_message_tokens", noted)
    yield counted


def test_only_near_a_limit_is_a_prompt_counted_with_care(counts: list[str]) -> None:
    prompts = prompts_of([Plan("korean", 300)])
    (prompt,) = prompts
    run_virtually(leaf(Provider(prompts), prompt, Limits(tokens=100_000)))
    run_virtually(leaf(Provider(prompts), prompt, Limits()))
    assert counts == []
    tokens = billed(prompt) + 300
    budget = run_virtually(leaf(Provider(prompts), prompt, Limits(tokens=tokens)))
    assert counts == [prompt]
    assert budget.tokens_left() == 0


def test_a_reply_is_shortened_before_a_prompt_is_refused() -> None:
    prompts = prompts_of([Plan("korean", 300, cap=1_000)])
    (prompt,) = prompts
    least = billed(prompt) + LEAST_REPLY_TOKENS
    budget = run_virtually(leaf(Provider(prompts), prompt, Limits(tokens=least)))
    assert budget.usage.output_tokens == LEAST_REPLY_TOKENS
    provider = Provider(prompts)
    with pytest.raises(LimitReached, match="does not fit"):
        run_virtually(leaf(provider, prompt, Limits(tokens=least - 1)))
    assert provider.billed == Usage()


def test_without_tokenizers_a_prompt_counts_for_more_than_it_is_estimated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prompts = prompts_of([Plan("korean", 300, share=0.0)])
    (prompt,) = prompts
    # What the provider bills, counted while there are tokenizers.
    billed(prompt)
    monkeypatch.setattr(vocabularies, "_loaded", lambda name: None)
    estimated = count_message_tokens([Message("user", prompt)])
    with pytest.raises(LimitReached):
        run_virtually(leaf(Provider(prompts), prompt, Limits(tokens=estimated * 5 // 4 + 300)))
    run_virtually(leaf(Provider(prompts), prompt, Limits(tokens=estimated * 2 + 300)))


def test_what_is_kept_for_the_last_call_is_counted_with_care_near_a_limit() -> None:
    async def run() -> None:
        budget = Budget(Limits(tokens=1_000))
        counted = [CallEstimate(120, 50)]

        async def careful() -> CallEstimate:
            return counted.pop()

        budget.expect_final(CallEstimate(100, 50), counted=careful)
        assert budget.tokens_left() == 850
        assert await budget.count_final()
        assert budget.tokens_left() == 830
        assert not await budget.count_final()

    asyncio.run(run())


class MiniProvider:
    """Bills an image as OpenAI does for gpt-4o-mini: 25,501 tokens for 1,024 pixels squared."""

    name = "gpt-4o-mini"

    def __init__(self) -> None:
        self.billed = 0

    async def complete(self, request: ModelRequest) -> Completion:
        assert request.max_output_tokens is not None
        usage = Usage(1, input_tokens=25_501 + 9, output_tokens=request.max_output_tokens)
        self.billed += usage.input_tokens + usage.output_tokens
        return Completion("reply", usage, self.name)


@pytest.mark.parametrize("tokens", [5_000, 25_000, 26_000, 60_000, 80_000])
def test_images_pass_no_limit_either(tokens: int) -> None:
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\4\0\0\0\4\0\x08\2\0\0\0"
    image = f"data:image/png;base64,{base64.b64encode(header).decode()}"
    provider = MiniProvider()

    async def run() -> list[object]:
        calls = calls_of("r", Budget(Limits(tokens=tokens), keeps_final=False), Limits())
        model = PricedModel(provider, ModelFacts(), Limiter(4), counting=Counting("gpt-4o-mini"))
        asked = [
            calls.complete(
                model, [Message("user", f"{n}", (image,))], role="sub", max_output_tokens=100
            )
            for n in range(4)
        ]
        return list(await asyncio.gather(*asked, return_exceptions=True))

    outcomes = run_virtually(run())
    sent = [outcome for outcome in outcomes if isinstance(outcome, Completion)]
    assert all(isinstance(each, Completion | LimitReached) for each in outcomes)
    assert len(sent) == min(4, tokens // 25_710)
    assert provider.billed <= tokens


class LongTemplate:
    """Bills 680 tokens for what it puts before each prompt, as xAI does for a Grok 4."""

    name = "grok-4"

    def __init__(self) -> None:
        self.billed = 0

    async def complete(self, request: ModelRequest) -> Completion:
        assert request.max_output_tokens is not None
        usage = Usage(1, input_tokens=690, output_tokens=request.max_output_tokens)
        self.billed += usage.input_tokens + usage.output_tokens
        await asyncio.sleep(1)
        return Completion("reply", usage, self.name)


@pytest.mark.parametrize("model", ["xai/grok-4", "served/elsewhere"])
@pytest.mark.parametrize("tokens", [3_000, 8_000, 14_000])
def test_long_templates_pass_no_limit_either(model: str, tokens: int) -> None:
    provider = LongTemplate()

    async def run() -> list[object]:
        calls = calls_of("r", Budget(Limits(tokens=tokens), keeps_final=False), Limits())
        counting = Counting(model, has_template=True)
        priced = PricedModel(provider, ModelFacts(), Limiter(16), counting=counting)
        asked = [
            calls.complete(priced, [Message("user", f"{n}")], role="sub", max_output_tokens=300)
            for n in range(20)
        ]
        return list(await asyncio.gather(*asked, return_exceptions=True))

    outcomes = run_virtually(run())
    assert all(isinstance(each, Completion | LimitReached) for each in outcomes)
    assert tokens - 1_100 <= provider.billed <= tokens
