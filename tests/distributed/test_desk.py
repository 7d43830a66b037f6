"""One desk for all processes: no limit is passed, whatever they ask for, give back, or die of."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.distributed.desk import Terms
from rlm_rag.distributed.remote import RemoteAccount
from rlm_rag.engine.admission import CallEstimate, LimitReached
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.limits import Limits
from rlm_rag.models.base import Usage

from .near import NearLine

DOLLAR = CallEstimate(10, 10, 1.0)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(2):
            return await work

    return asyncio.run(bounded())


def account(line: NearLine, holder: str, **options: Any) -> RemoteAccount:
    return RemoteAccount(line, "run", holder, **{"usd": None, **options})


HOW = st.sampled_from(["paid", "lost", "again", "retry", "unsent", "cancelled", "dead"])
CALLS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), HOW), max_size=10)


@given(st.floats(0.5, 4), st.integers(1, 6), st.booleans(), CALLS)
def test_whatever_processes_ask_for_no_limit_is_passed(
    usd: float, calls: int, as_one_run: bool, asked: list[tuple[float, float, str]]
) -> None:
    limits = Limits(usd=usd, calls=calls) if as_one_run else None
    terms = Terms(usd=None if as_one_run else usd, limits=limits, keeps_final=False)

    async def spend(line: NearLine, at: int, most: float, part: float, how: str) -> None:
        share = account(line, f"node{at}", usd=terms.usd).share()
        budget = Budget(limits or Limits(), share=share, keeps_final=False)
        try:
            held = await budget.admit(CallEstimate(1, 1, most))
            if how == "again":
                budget.settle(held, None)
                held = await budget.admit_again(held)
        except LimitReached:
            return
        try:
            if how == "retry":
                await budget.admit_retry(held)
        except LimitReached:
            how = "paid"
        if how == "dead":
            await line.ask("lose", f"node{at}")
        elif how == "unsent":
            budget.release(held)
        else:
            requests = 2 if how == "retry" else 1
            usage = Usage(calls=requests, input_tokens=1, usd=most * part)
            budget.settle(held, None if how == "lost" else usage)

    async def all_of_them() -> None:
        line = NearLine()
        await line.desk.open("run", terms)
        tasks = [asyncio.create_task(spend(line, at, *one)) for at, one in enumerate(asked)]
        await asyncio.sleep(0)
        for task, (_, _, how) in zip(tasks, asked, strict=True):
            if how == "cancelled":
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await line.settled()
        ledger = line.desk._ledgers["run"]
        assert ledger.pool.spent_usd <= usd + 1e-6
        if ledger.budget is not None:
            assert ledger.budget.usage.calls <= calls
            # Nothing is held for anybody any more.
            assert ledger.budget.calls_left() == calls - ledger.budget.usage.calls
        elif ledger.pool.left_usd is not None:
            assert ledger.pool.left_usd == pytest.approx(max(0, usd - ledger.pool.spent_usd))

    run(all_of_them())


def test_requests_in_flight_are_as_many_as_one_process_might_have() -> None:
    async def work() -> tuple[int, int]:
        line, under_way, most = NearLine(), 0, 0
        await line.desk.open("run", Terms(concurrency=3))

        async def request(at: int) -> None:
            nonlocal under_way, most
            turns = account(line, f"node{at % 4}").limiter("http://server")
            async with turns.permit(f"run{at}") as leave:
                under_way += 1
                most = max(most, under_way)
                await asyncio.sleep(0)
                under_way -= 1
                leave.succeeded()

        await asyncio.gather(*map(request, range(20)))
        await line.settled()
        return most, line.desk._ledgers["run"].pool.limiter("http://server").in_flight

    assert run(work()) == (3, 0)


def test_a_provider_that_asks_one_process_to_slow_down_is_spared_by_all() -> None:
    async def work() -> int:
        line = NearLine()
        await line.desk.open("run", Terms(concurrency=8))
        async with account(line, "node1").limiter("there").permit() as leave:
            leave.throttled(0.0)
        await line.settled()
        return line.desk._ledgers["run"].pool.limiter("there").width

    assert run(work()) == 4


def test_turns_and_places_of_a_process_that_died_are_given_to_others() -> None:
    async def work() -> list[str]:
        line, got, held = NearLine(), list[str](), asyncio.Event()
        terms = Terms(concurrency=1, limits=Limits(live_children=1))
        await line.desk.open("run", terms)

        async def hold(holder: str, for_ever: bool) -> None:
            mine = account(line, holder, deepest=1)
            async with mine.place(1), mine.limiter("there").permit():
                got.append(holder)
                held.set()
                if for_ever:
                    await asyncio.Event().wait()

        dead = asyncio.create_task(hold("dead", True))
        await held.wait()
        waiting = asyncio.create_task(hold("dead too", False))
        living = asyncio.create_task(hold("living", False))
        await asyncio.sleep(0.01)
        await line.ask("lose", "dead too")
        await line.ask("lose", "dead")
        await living
        with pytest.raises(LimitReached):
            await waiting
        dead.cancel()
        await asyncio.wait([dead])
        return got

    assert run(work()) == ["dead", "living"]


def test_the_last_call_of_a_root_is_kept_back_from_its_children() -> None:
    async def work() -> list[str]:
        line, said = NearLine(), list[str]()
        limits = Limits(calls=3)
        await line.desk.open("run", Terms(limits=limits))
        root = Budget(limits, share=account(line, "root", follows=False).share())
        child = Budget(limits, share=account(line, "node").share(), keeps_final=False)
        root.settle(await root.admit(DOLLAR, role="root"), Usage(calls=1))
        await line.settled()
        child.settle(await child.admit(DOLLAR), Usage(calls=1))
        await line.settled()
        # The child has heard of the call of the root, and of the one that is kept back.
        said.append(str(child.gone.calls))
        try:
            await child.admit(DOLLAR)
        except LimitReached as reached:
            said.append(reached.name)
        root.settle(await root.admit_final(DOLLAR), Usage(calls=1))
        await line.settled()
        return said

    assert run(work()) == ["3", "budget_calls"]


def test_a_call_waits_for_what_another_process_gives_back() -> None:
    async def work() -> float:
        line = NearLine()
        await line.desk.open("run", Terms(usd=1.5))
        one = Budget(Limits(), share=account(line, "one", usd=1.5).share())
        other = Budget(Limits(), share=account(line, "other", usd=1.5).share())
        held = await one.admit(DOLLAR)
        waiting = asyncio.create_task(other.admit(DOLLAR))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        one.settle(held, Usage(calls=1, usd=0.25))
        other.settle(await waiting, Usage(calls=1, usd=0.5))
        await line.settled()
        return float(await line.ask("spent_usd", "run"))

    assert run(work()) == 0.75
