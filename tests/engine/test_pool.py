"""Runs that share a pool spend no more than its sum together."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag import RLM, Repl, load
from rlm_rag.engine.admission import CallEstimate, LimitReached
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.pool import Pool
from rlm_rag.errors import UsageError
from rlm_rag.models.base import Usage

DOLLAR = CallEstimate(10, 10, 1.0)


def admitted(budget, estimate):
    return asyncio.run(budget.admit(estimate))


def test_what_one_run_has_in_flight_is_not_left_for_another():
    pool = Pool(usd=2.5)
    shares = [pool.share(), pool.share()]
    one, other = (Budget(Limits(), share=share) for share in shares)
    held = admitted(one, DOLLAR)
    admitted(other, DOLLAR)
    with pytest.raises(LimitReached) as refusal:
        asyncio.run(other.admit_final(DOLLAR))
    assert refusal.value.name == "budget_usd"
    one.settle(held, Usage(calls=1, usd=0.9))
    with pytest.raises(LimitReached):
        admitted(other, CallEstimate(0, 0, 1.7))
    assert [share.refused for share in shares] == [False, True]
    assert other.usage.calls == 0
    assert pool.left_usd == pytest.approx(0.6)


@given(
    st.floats(0.5, 5),
    st.lists(
        st.tuples(st.floats(0, 1), st.floats(0, 1), st.sampled_from(["lost", "again", "retry"])),
        max_size=12,
    ),
)
def test_whatever_runs_ask_for_at_once_their_sum_is_kept(usd, calls):
    pool = Pool(usd=usd)

    async def spend(estimate, part, way):
        budget = Budget(Limits(), share=pool.share())
        try:
            held = await budget.admit(CallEstimate(1, 1, estimate))
            await asyncio.sleep(0)
            if way == "retry":
                await budget.admit_retry(held)
            if way == "again":
                budget.settle(held, None)
                held = await budget.admit_again(held)
        except LimitReached:
            return
        budget.settle(held, None if way == "lost" else Usage(calls=1, usd=estimate * part))
        assert pool.spent_usd <= usd + 1e-6

    async def all_of_them():
        async with asyncio.timeout(5):
            await asyncio.gather(*(spend(*call) for call in calls))

    asyncio.run(all_of_them())
    assert pool.left_usd == pytest.approx(max(0, usd - pool.spent_usd))


@pytest.mark.parametrize("admit", [Budget.admit, Budget.admit_final])
def test_beside_a_call_of_another_run_its_whole_prompt_is_counted_as_bytes(admit):
    costly = replace(DOLLAR, more_tokens=90, more_usd=1.0)

    async def both():
        pool = Pool(usd=3.5)
        one, other = (Budget(Limits(), share=pool.share()) for _ in range(2))
        held = await one.admit(costly)
        waiting = asyncio.ensure_future(admit(other, costly))
        await asyncio.sleep(0)
        assert not waiting.done()
        assert pool.left_usd == pytest.approx(2.5)
        one.settle(held, Usage(calls=1, usd=2.0))
        # Alone it goes as it is estimated.
        last = await waiting
        assert last.is_doubtful
        other.settle(last, Usage(calls=1, usd=1.5))
        assert pool.left_usd == pytest.approx(0)

    asyncio.run(both())


def test_a_call_waits_for_money_that_another_run_gives_back():
    async def both():
        pool = Pool(usd=1.5)
        share = pool.share()
        one, other = Budget(Limits(), share=pool.share()), Budget(Limits(), share=share)
        held = await one.admit(DOLLAR)
        waiting = asyncio.ensure_future(other.admit(DOLLAR))
        await asyncio.sleep(0)
        assert not waiting.done()
        one.settle(held, Usage(calls=1, usd=0.25))
        other.settle(await waiting, Usage(calls=1, usd=0.5))
        return pool.spent_usd, share.refused

    assert asyncio.run(both()) == (0.75, False)


def test_a_call_that_was_not_sent_gives_all_back_and_a_lost_one_nothing():
    pool = Pool(usd=3.0, spent_usd=1.0)
    budget = Budget(Limits(), share=pool.share())
    budget.release(admitted(budget, DOLLAR))
    budget.settle(admitted(budget, DOLLAR), None)
    assert (pool.spent_usd, pool.left_usd) == (2.0, 1.0)
    with pytest.raises(LimitReached):
        admitted(budget, CallEstimate(1, 1, None))


def test_a_negative_sum_is_refused():
    with pytest.raises(UsageError):
        Pool(usd=-1.0)


def test_a_repl_keeps_the_sum_of_its_pool(openai_server):
    openai_server.script = lambda _: "seven"
    pool = Pool(usd=4.2)
    options = {"model": "m", "api_base": openai_server.api_base, "price": "1/1000"}
    with load(text="a corpus") as corpus, Repl(corpus, share=pool.share(), **options) as repl:
        said = repl.run("[llm_query(f'{n}').error for n in range(20)]").value
        assert "left of $4.2 for all runs" in said
        assert pool.spent_usd == pytest.approx(repl.usage.usd)
    assert 0 < len(openai_server.received) < 20


def test_a_repl_without_a_model_takes_nothing_of_its_pool():
    pool = Pool(usd=4.2)
    with load(text="a corpus") as corpus, Repl(corpus, share=pool.share()) as repl:
        assert "no model is set" in repl.run("llm_query('x').error").value
    assert pool.left_usd == 4.2


def test_runs_of_several_rlms_keep_one_sum(openai_server):
    openai_server.script = lambda _: "The answer is seven."
    # A request is admitted with 4,096 tokens of output, four dollars, and costs 7 tokens of it.
    pool = Pool(usd=4.2)

    def asked(share):
        rlm = RLM(
            model="m",
            api_base=openai_server.api_base,
            price="1/1000",
            strategy="direct",
            trace=False,
            share=share,
        )
        return rlm.ask(corpus, "What is it?")

    shares = [pool.share() for _ in range(20)]
    with load(text="a corpus") as corpus:
        answers = [asked(share) for share in shares]
    reasons = [answer.stop_reason for answer in answers]
    assert (reasons[0], reasons[-1]) == ("answered", "budget_usd")
    assert [share.refused for share in shares] == [each == "budget_usd" for each in reasons]
    assert pool.spent_usd == pytest.approx(sum(each.usage.usd or 0 for each in answers))
    assert pool.spent_usd <= 4.2
    assert len(openai_server.received) == reasons.count("answered")
