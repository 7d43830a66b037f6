"""A batch's calls: in order, boundedly many begun, none left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.engine import subcalls
from rlm_rag.engine.subcalls import MOST_AT_ONCE, LeafReply, gather_within
from tests.virtual_time import run_virtually


def test_no_more_than_a_bounded_part_of_a_batch_is_begun_at_a_time() -> None:
    made = running = most = 0

    async def one(number: int) -> LeafReply:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(number % 3)
        running -= 1
        return LeafReply(str(number))

    def calls() -> Iterator[object]:
        nonlocal made
        for number in range(5000):
            made += 1
            assert made <= 5000
            yield one(number)

    replies = run_virtually(gather_within(calls(), None))  # type: ignore[arg-type]
    assert [reply.text for reply in replies] == [str(number) for number in range(5000)]
    assert most == MOST_AT_ONCE


@given(
    st.lists(st.integers(0, 9), max_size=30),
    st.one_of(st.none(), st.integers(1, 12)),
    st.integers(1, 5),
)
def test_what_is_not_there_in_time_is_stopped_and_says_so(
    durations: list[int], seconds: int | None, at_once: int
) -> None:
    ended: list[int] = []

    async def one(number: int, duration: int) -> LeafReply:
        try:
            await asyncio.sleep(duration + 0.5)
        finally:
            ended.append(number)
        return LeafReply(str(number))

    async def run() -> list[LeafReply]:
        calls = (one(number, duration) for number, duration in enumerate(durations))
        replies = await gather_within(calls, seconds)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return replies

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subcalls, "MOST_AT_ONCE", at_once)
        replies = run_virtually(run())
    assert len(replies) == len(durations)
    for number, reply in enumerate(replies):
        assert reply.text == str(number) or "no reply within" in reply.text
        assert not reply.ok or number in ended
    if seconds is None:
        assert all(reply.ok for reply in replies)


def test_a_failure_of_our_own_stops_the_rest_and_is_raised() -> None:
    ended: list[int] = []

    async def one(number: int) -> LeafReply:
        try:
            await asyncio.sleep(number)
            if number == 2:
                raise RuntimeError("a defect")
            return LeafReply("")
        finally:
            ended.append(number)

    with pytest.raises(RuntimeError, match="a defect"):
        run_virtually(gather_within((one(number) for number in range(10)), None))
    assert sorted(ended) == list(range(10))


def test_calls_that_are_refused_at_once_let_others_run_meanwhile() -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    async def refused() -> LeafReply:
        return LeafReply("Error: not sent", error="not sent")

    async def run() -> None:
        beating = asyncio.ensure_future(beat())
        await gather_within((refused() for _ in range(20 * MOST_AT_ONCE)), None)
        beating.cancel()

    run_virtually(run())
    assert beats >= 20
