"""The limiter: never wider than it may be, in order, and free of deadlocks."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.models.limiter import Limiter
from tests.virtual_time import run_virtually


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


async def call(limiter: Limiter, owner: str, seconds: float, ended: dict[str, float]) -> None:
    async with limiter.permit(owner):
        await asyncio.sleep(seconds)
    ended[owner] = asyncio.get_running_loop().time()


@pytest.mark.parametrize("arrival_seconds", [0.0, 0.1, 0.5, 0.9, 5.3])
@pytest.mark.parametrize("spread", [0.0, 0.9])
def test_ten_calls_beside_a_thousand_end_within_twice_their_time_alone(
    arrival_seconds: float, spread: float
) -> None:
    ended: dict[str, float] = {}

    async def run() -> None:
        limiter = Limiter(16)
        async with asyncio.TaskGroup() as group:
            for number in range(1000):
                seconds = 1.0 - spread * (number % 16) / 16
                group.create_task(call(limiter, "large", seconds, ended))
            await asyncio.sleep(arrival_seconds)
            for _ in range(10):
                group.create_task(call(limiter, "small", 1.0, ended))

    run_virtually(run())
    # Alone they take one second, all at once.
    assert ended["small"] - arrival_seconds <= 2.0 + 1e-9
    assert ended["large"] < 70


def test_two_large_batches_share_the_provider_evenly() -> None:
    order: list[str] = []

    async def one(limiter: Limiter, owner: str) -> None:
        async with limiter.permit(owner):
            order.append(owner)
            await asyncio.sleep(1)

    async def run() -> None:
        limiter = Limiter(8)
        async with asyncio.TaskGroup() as group:
            for owner in ("a", "b"):
                for _ in range(400):
                    group.create_task(one(limiter, owner))

    run_virtually(run())
    for end in range(100, 800, 100):
        assert abs(order[:end].count("a") - end / 2) <= 0.15 * end + 8


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 20), st.integers(0, 30), st.booleans()),
        max_size=80,
    ),
    st.integers(1, 6),
)
def test_nobody_is_passed_by_more_than_three_for_each_one_before_them(
    plans: list[tuple[int, int, int, bool]], width: int
) -> None:
    started: list[int] = []
    ahead: dict[int, int] = {}
    before: dict[int, int] = {}

    async def one(limiter: Limiter, number: int, owner: int, start: int, seconds: int) -> None:
        await asyncio.sleep(start)
        ahead[number], before[number] = limiter.waiting, len(started)
        async with limiter.permit(owner) as permit:
            started.append(number)
            assert limiter.in_flight <= width
            await asyncio.sleep(seconds)
            if plans[number][3]:
                permit.throttled(seconds)
            else:
                permit.succeeded()

    async def run() -> None:
        limiter = Limiter(width)
        async with asyncio.TaskGroup() as group:
            for number, (owner, start, seconds, _) in enumerate(plans):
                group.create_task(one(limiter, number, owner, start, seconds))
        assert (limiter.in_flight, limiter.waiting) == (0, 0)

    run_virtually(run())
    assert sorted(started) == list(range(len(plans)))
    for position, number in enumerate(started):
        assert position - before[number] <= 4 * (ahead[number] + 1)


def test_a_pause_holds_everybody_and_ends_by_itself() -> None:
    ended: dict[str, float] = {}

    async def run() -> None:
        limiter = Limiter(4)
        async with limiter.permit("first") as permit:
            permit.throttled(60)
        async with asyncio.TaskGroup() as group:
            group.create_task(call(limiter, "a", 1, ended))
            group.create_task(call(limiter, "b", 1, ended))
            await asyncio.sleep(30)
            group.create_task(call(limiter, "c", 1, ended))

    run_virtually(run())
    assert ended == {"a": 61.0, "b": 61.0, "c": 62.0}


def test_it_settles_below_what_a_provider_takes_at_once() -> None:
    refused = sent = 0

    async def run() -> float:
        limiter, running = Limiter(16), 0

        async def one() -> None:
            nonlocal running, refused, sent
            again = False
            while True:
                async with limiter.permit(again=again) as permit:
                    sent += 1
                    running += 1
                    try:
                        if running <= 6:
                            await asyncio.sleep(1)
                            permit.succeeded()
                            return
                        await asyncio.sleep(0.01)
                        refused += 1
                        permit.throttled(1)
                    finally:
                        running -= 1
                again = True

        await asyncio.gather(*(one() for _ in range(600)))
        return asyncio.get_running_loop().time()

    # At best a hundred seconds, six at a time.
    assert run_virtually(run()) < 130
    assert refused < 40
