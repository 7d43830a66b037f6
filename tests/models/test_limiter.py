"""The limiter: never wider than it may be, in order, and free of deadlocks."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.models.limiter import Limiter


def test_no_more_than_its_width_run_at_once_and_all_get_a_turn() -> None:
    limiter = Limiter(3)
    running = most = 0
    order: list[int] = []

    async def one(number: int) -> None:
        nonlocal running, most
        async with limiter.permit():
            order.append(number)
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1

    async def run() -> None:
        await asyncio.gather(*(one(number) for number in range(50)))

    asyncio.run(run())
    assert most == 3
    assert order == list(range(50))
    assert limiter.in_flight == 0


def test_requests_that_were_throttled_together_halve_it_once() -> None:
    limiter = Limiter(16)

    async def run() -> None:
        gate = asyncio.Event()

        async def one() -> None:
            async with limiter.permit() as permit:
                await gate.wait()
                permit.throttled()

        calls = [asyncio.create_task(one()) for _ in range(16)]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*calls)

    asyncio.run(run())
    assert limiter.width == 8


def test_it_recovers_slowly_and_never_beyond_its_width() -> None:
    limiter = Limiter(4)

    async def round_of(successes: int) -> None:
        for _ in range(successes):
            async with limiter.permit() as permit:
                permit.succeeded()

    async def throttle() -> None:
        async with limiter.permit() as permit:
            permit.throttled()

    for _ in range(5):
        asyncio.run(throttle())
    assert limiter.width == 1
    asyncio.run(round_of(1))
    assert limiter.width == 2
    asyncio.run(round_of(1))
    assert limiter.width == 2
    asyncio.run(round_of(100))
    assert limiter.width == 4


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=40), st.integers(1, 4))
def test_cancelled_waiters_never_keep_a_turn(plans: list[tuple[bool, int]], width: int) -> None:
    limiter = Limiter(width)

    async def one(steps: int) -> None:
        async with limiter.permit():
            for _ in range(steps):
                await asyncio.sleep(0)

    async def run() -> None:
        calls = [(asyncio.create_task(one(steps)), cancel) for cancel, steps in plans]
        for number, (call, cancel) in enumerate(calls):
            if number % 3 == 0:
                await asyncio.sleep(0)
            if cancel:
                call.cancel()
        async with asyncio.timeout(5):
            await asyncio.gather(*(call for call, _ in calls), return_exceptions=True)
            async with limiter.permit():
                assert limiter.in_flight == 1

    asyncio.run(run())
    assert limiter.in_flight == 0


def test_a_width_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Limiter(0)
