"""Money under any interleaving: retries, joined calls, cancellations, children, a last call."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.engine.admission import LimitReached
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.calls import ModelCalls, PricedModel
from rlm_rag.engine.counting import Counting
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.past import Past
from rlm_rag.errors import (
    ModelError,
    ModelTimeoutError,
    ProviderServerError,
    RateLimitError,
)
from rlm_rag.models.base import Completion, Message, ModelRequest, Usage
from rlm_rag.models.limiter import Limiter
from rlm_rag.models.prices import ModelFacts, Price
from rlm_rag.models.sharing import SharedReplies
from rlm_rag.models.tokens import count_message_tokens, most_message_tokens
from rlm_rag.trace.recorder import Recorder
from tests.virtual_time import run_virtually

PRICE = Price(input_usd=1e-5, output_usd=1e-4, cached_usd=1e-6)


@dataclass(frozen=True)
class Plan:
    """One call: when it comes, what it asks, what the provider does with it."""

    start: int
    prompt: int
    words: int
    failures: int
    limited: bool
    losses: int
    seconds: int
    share: float
    cancelled_after: int | None
    child: bool
    cap: int | None


class Provider:
    """Bills by what it counts; never returns more than the cap it was sent."""

    name = "simulated"

    def __init__(self, plans: list[Plan]) -> None:
        self.plans = {f"{plan.prompt} " + "word " * plan.words: plan for plan in plans}
        self.requests: dict[str, int] = {}
        self.billed = Usage()
        self.sent = 0
        self.lost = 0

    async def complete(self, request: ModelRequest) -> Completion:
        self.sent += 1
        prompt = request.messages[-1].content
        plan = self.plans[prompt]
        tried = self.requests[prompt] = self.requests.get(prompt, 0) + 1
        assert request.max_output_tokens is not None
        input_tokens = count_message_tokens(request.messages)
        output_tokens = int(request.max_output_tokens * plan.share)
        if plan.losses < tried <= plan.losses + plan.failures:
            await asyncio.sleep(plan.seconds / 2)
            if plan.limited:
                raise RateLimitError("slow down", retry_after_seconds=2)
            raise ProviderServerError("boom")
        # Whoever is cancelled from here on pays all the same.
        usage = Usage(
            calls=1,
            input_tokens=input_tokens,
            cached_tokens=input_tokens // 3,
            output_tokens=output_tokens,
            usd=PRICE.usd(
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                cached_tokens=input_tokens // 3,
            ),
        )
        self.billed += usage
        await asyncio.sleep(plan.seconds)
        if tried <= plan.losses:
            self.lost += 1
            raise ModelTimeoutError("no reply in time")
        return Completion("reply", usage, self.name)


plans = st.builds(
    Plan,
    start=st.integers(0, 6),
    prompt=st.integers(0, 6),
    words=st.sampled_from([0, 30, 400]),
    failures=st.integers(0, 5),
    limited=st.booleans(),
    losses=st.sampled_from([0, 0, 0, 1, 2, 5]),
    seconds=st.integers(0, 8),
    share=st.floats(0, 1),
    cancelled_after=st.one_of(st.none(), st.none(), st.integers(0, 12)),
    child=st.booleans(),
    cap=st.one_of(st.none(), st.integers(1, 600)),
)
limits = st.builds(
    Limits,
    calls=st.one_of(st.none(), st.integers(1, 20)),
    usd=st.floats(0.0, 2.0),
    tokens=st.one_of(st.none(), st.integers(500, 40_000)),
    seconds=st.one_of(st.none(), st.integers(1, 40)),
    concurrency=st.integers(1, 4),
)


def final_call(calls: ModelCalls, model: PricedModel, plan: Plan) -> asyncio.Future[Completion]:
    prompt = f"{plan.prompt} " + "word " * plan.words
    return asyncio.ensure_future(
        calls.complete(model, [Message("user", prompt)], role="root", final=True)
    )


def calls_of(run_id: str, budget: Budget, limits: Limits) -> ModelCalls:
    """What sends the calls of a run, or of its child."""
    return ModelCalls(
        run_id=run_id,
        budget=budget,
        limits=limits,
        recorder=Recorder(None),
        past=Past(),
        keeps_final=run_id == "r",
    )


@given(st.lists(plans, min_size=1, max_size=16), limits)
def test_spend_never_passes_a_limit_and_usage_is_what_was_billed(
    plans: list[Plan], limits: Limits
) -> None:
    provider = Provider(plans)

    async def run() -> tuple[Budget, list[object]]:
        loop = asyncio.get_running_loop()
        budget = Budget(limits, clock=loop.time)
        facts = ModelFacts(price=PRICE, max_output_tokens=1000)
        model = PricedModel(provider, facts, Limiter(limits.concurrency), shared=SharedReplies())
        root, child = calls_of("r", budget, limits), calls_of("r.1", budget, limits)

        async def one(plan: Plan) -> object:
            await asyncio.sleep(plan.start)
            calls = child if plan.child else root
            prompt = f"{plan.prompt} " + "word " * plan.words
            call = asyncio.ensure_future(
                calls.complete(
                    model,
                    [Message("user", prompt)],
                    role="sub",
                    max_output_tokens=plan.cap,
                )
            )
            if plan.cancelled_after is not None:
                loop.call_later(plan.cancelled_after, call.cancel)
            await asyncio.wait([call])
            if call.cancelled():
                return "cancelled"
            error = call.exception()
            assert error is None or isinstance(error, ModelError | LimitReached), error
            return error or call.result()

        async with asyncio.timeout(100_000):
            outcomes = list(await asyncio.gather(*(one(plan) for plan in plans)))
            (last,) = await asyncio.gather(
                final_call(root, model, plans[0]), return_exceptions=True
            )
        assert isinstance(last, Completion | ModelError | LimitReached), last
        assert model.limiter.in_flight == 0
        return budget, outcomes

    budget, outcomes = run_virtually(run())
    billed, usage = provider.billed, budget.usage
    assert billed.usd is not None and usage.usd is not None and limits.usd is not None
    assert billed.usd <= limits.usd + 1e-9
    assert limits.calls is None or provider.sent <= limits.calls
    assert limits.tokens is None or billed.input_tokens + billed.output_tokens <= limits.tokens
    # What was cancelled or lost on its way is counted as its whole estimate, never as less.
    assert usage.calls >= provider.sent
    assert usage.usd >= billed.usd - 1e-9
    assert usage.output_tokens >= billed.output_tokens
    if "cancelled" not in outcomes and not provider.lost:
        assert usage.calls == provider.sent
        assert usage.usd == pytest.approx(billed.usd)
        assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (
            billed.input_tokens,
            billed.output_tokens,
            billed.cached_tokens,
        )
        joined = [o for o in outcomes if isinstance(o, Completion) and o.usage.cached_calls]
        assert usage.cached_calls == len(joined)


async def batch(
    model: PricedModel, limits: Limits, count: int, *, cap: int | None = None
) -> list[Completion | BaseException]:
    """Send so many leaf calls at once; return what became of each."""
    budget = Budget(limits, clock=asyncio.get_running_loop().time)
    calls = calls_of("r", budget, limits)
    asked = (
        calls.complete(model, [Message("user", f"{n} ")], role="sub", max_output_tokens=cap)
        for n in range(count)
    )
    return await asyncio.gather(*asked, return_exceptions=True)


def test_the_affordable_part_of_a_batch_runs() -> None:
    plan = Plan(0, 0, 0, 0, False, 0, 1, 0.1, None, False, None)
    prompts = [Plan(0, n, 0, 0, False, 0, 1, 0.1, None, False, None) for n in range(60)]
    provider = Provider([plan, *prompts])
    # A call may cost 4 cents and costs 0.4: three in flight at first, then what is left over.
    limits = Limits(calls=None, usd=0.16)

    facts = ModelFacts(price=PRICE, max_output_tokens=400)
    done = run_virtually(batch(PricedModel(provider, facts, Limiter(16)), limits, 60))
    ran = sum(isinstance(one, Completion) for one in done)
    assert ran == provider.sent
    assert 25 <= ran < 60
    assert provider.billed.usd is not None and provider.billed.usd <= 0.16
    refused = [str(one) for one in done if isinstance(one, LimitReached)]
    assert len(refused) == 60 - ran and "does not fit" in refused[0]


class CountsMore:
    """Bills 50 tokens for every prompt, which we count as fewer."""

    name = "counts more"

    def __init__(self) -> None:
        self.sent = 0

    async def complete(self, request: ModelRequest) -> Completion:
        assert count_message_tokens(request.messages) < 12
        self.sent += 1
        await asyncio.sleep(1)
        usage = Usage(
            calls=1,
            input_tokens=50,
            output_tokens=1,
            usd=PRICE.usd(input_tokens=50, output_tokens=1),
        )
        return Completion("reply", usage, self.name)


@pytest.mark.parametrize("limits", [Limits(calls=None, tokens=3000), Limits(calls=None, usd=0.04)])
def test_prompts_that_a_provider_counts_higher_pass_a_limit_by_those_in_flight_at_most(
    limits: Limits,
) -> None:
    provider, width = CountsMore(), 4
    model = PricedModel(provider, ModelFacts(price=PRICE), Limiter(width))
    done = run_virtually(batch(model, limits, 250, cap=1))
    sent = sum(isinstance(one, Completion) for one in done)
    assert sent == provider.sent
    assert all(isinstance(one, Completion | LimitReached) for one in done)
    most = (limits.tokens or 0) / 51 if limits.tokens else (limits.usd or 0) / 6e-4
    assert 0.9 * most <= sent <= most + width


TEXTS = {
    "prose": "Beautiful is better than ugly. ",
    "minified": "f(a,b);x=c[1]?d:e;",
    "emoji": "\U0001fae8\U0001f6dc ",
    "rare": "\u9f98\ud7a3 ",
}


@dataclass(frozen=True)
class Counted:
    """A call whose prompt is billed at a share of the most that can be counted in it."""

    kind: str
    times: int
    share: float = 1.0
    start: int = 0
    seconds: int = 1
    child: bool = False
    cap: int = 20

    def prompt(self, number: int) -> str:
        return f"{number} " + TEXTS[self.kind] * self.times


class CountsBytes:
    """Bills up to one token for each byte: the most that a byte-level tokenizer makes of a text."""

    name = "counts bytes"

    def __init__(self, made: dict[str, Counted] | None = None) -> None:
        self.made = made or {}
        self.billed = 0
        self.undercounts: list[int] = []
        self.in_flight = 0
        self.most_at_once = 0
        self.beside_others: list[int] = []

    async def complete(self, request: ModelRequest) -> Completion:
        assert request.max_output_tokens is not None
        made = self.made.get(request.messages[-1].content, Counted("prose", 0))
        tokens = int(most_message_tokens(request.messages) * made.share)
        self.undercounts.append(tokens - count_message_tokens(request.messages))
        self.billed += tokens + request.max_output_tokens
        self.in_flight += 1
        self.most_at_once = max(self.most_at_once, self.in_flight)
        if self.in_flight > 1:
            self.beside_others.append(self.billed)
        await asyncio.sleep(made.seconds)
        self.in_flight -= 1
        output_tokens = request.max_output_tokens
        usd = PRICE.usd(input_tokens=tokens, output_tokens=output_tokens)
        usage = Usage(calls=1, input_tokens=tokens, output_tokens=output_tokens, usd=usd)
        return Completion("reply", usage, self.name)


calls_to_make = st.lists(
    st.builds(
        Counted,
        kind=st.sampled_from(sorted(TEXTS)),
        times=st.one_of(st.just(60), st.integers(1, 60)),
        share=st.one_of(st.just(1.0), st.floats(0, 1)),
        start=st.one_of(st.just(0), st.integers(0, 6)),
        seconds=st.integers(1, 4),
        child=st.booleans(),
        cap=st.integers(1, 300),
    ),
    min_size=4,
    max_size=30,
)


async def asked_of(
    provider: CountsBytes, prompts: list[str], limits: Limits, width: int, *, first: str = ""
) -> None:
    """Send leaf calls at once, after one alone where there is a `first`."""
    budget = Budget(limits, clock=asyncio.get_running_loop().time, keeps_final=False)
    calls = calls_of("r", budget, limits)
    model = PricedModel(provider, ModelFacts(price=PRICE), Limiter(width))

    async def one(prompt: str) -> None:
        await calls.complete(model, [Message("user", prompt)], role="sub", max_output_tokens=20)

    if first:
        await one(first)
    done = await asyncio.gather(*map(one, prompts), return_exceptions=True)
    assert {type(each) for each in done} <= {type(None), LimitReached}
    assert budget.usage.input_tokens + budget.usage.output_tokens == provider.billed


@given(calls_to_make, st.integers(2, 8), st.integers(1_000, 10_000))
def test_whatever_is_counted_in_prompts_a_limit_is_passed_by_one_call_sent_alone_at_most(
    made: list[Counted], width: int, tokens: int
) -> None:
    prompts = {one.prompt(number): one for number, one in enumerate(made)}
    provider = CountsBytes(prompts)
    limits = Limits(calls=None, tokens=tokens, usd=tokens * PRICE.output_usd * 0.2)

    async def run() -> None:
        budget = Budget(limits, clock=asyncio.get_running_loop().time)
        root, child = calls_of("r", budget, limits), calls_of("r.1", budget, limits)
        model = PricedModel(provider, ModelFacts(price=PRICE), Limiter(width))

        async def one(prompt: str, plan: Counted) -> None:
            await asyncio.sleep(plan.start)
            await (child if plan.child else root).complete(
                model,
                [Message("user", prompt)],
                role="root" if plan.child else "sub",
                max_output_tokens=plan.cap,
            )

        asked = (one(prompt, plan) for prompt, plan in prompts.items())
        done = await asyncio.gather(*asked, return_exceptions=True)
        done += await asyncio.gather(
            root.complete(model, [Message("user", "f(a,b);" * 50)], role="root", final=True),
            return_exceptions=True,
        )
        assert {type(each) for each in done} <= {type(None), Completion, LimitReached}
        usage = budget.usage
        assert usage.input_tokens + usage.output_tokens == provider.billed
        assert usage.usd is not None and limits.usd is not None
        worst = max(provider.undercounts, default=0)
        assert usage.usd <= limits.usd + max(0, worst) * PRICE.input_usd + 1e-9

    run_virtually(run())
    assert provider.billed <= tokens + max([0, *provider.undercounts])
    # What was sent beside other calls passes nothing.
    assert max(provider.beside_others, default=0) <= tokens


@pytest.mark.parametrize(("prompts_of_bytes", "at_once"), [(8.1, 8), (3.5, 3), (0.9, 1)])
def test_far_from_a_limit_calls_go_side_by_side_and_near_it_one_at_a_time(
    prompts_of_bytes: float, at_once: int
) -> None:
    prompts = [f"{n} " + TEXTS["prose"] * 60 for n in range(8)]
    most = Counting().most([Message("user", prompts[0])]) + 20
    tokens = int(prompts_of_bytes * most)
    provider = CountsBytes()
    run_virtually(asked_of(provider, prompts, Limits(calls=None, tokens=tokens), 8))
    assert provider.most_at_once == at_once
    assert len(provider.undercounts) == max(1, int(prompts_of_bytes))
    assert at_once == 1 or provider.billed <= tokens


@given(
    st.sampled_from(sorted(TEXTS)),
    st.lists(st.integers(100, 300), min_size=1, max_size=40),
    st.integers(1, 8),
    st.integers(10_000, 300_000),
)
def test_once_a_provider_has_shown_how_it_counts_such_text_no_limit_is_passed(
    kind: str, sizes: list[int], width: int, tokens: int
) -> None:
    provider = CountsBytes()
    prompts = [TEXTS[kind] * times for times in sizes]
    limits = Limits(calls=None, tokens=tokens)
    run_virtually(asked_of(provider, prompts, limits, width, first=TEXTS[kind] * 100))
    assert provider.billed <= tokens
    # What is expected of it is no more than it bills: what fits is sent.
    costs = [most_message_tokens([Message("user", prompt)]) + 20 for prompt in prompts]
    if sum(costs) + costs[0] * 2 <= tokens:
        assert len(provider.undercounts) == 1 + len(prompts)
