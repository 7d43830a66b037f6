"""Places for children: bounded, and no nesting of parents that wait can stall."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.engine.slots import Slots


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 5))
def test_parents_that_wait_for_children_never_stall_and_the_bound_holds(most, deepest, width):
    async def tree():
        slots = Slots(most, deepest)
        live, peak, ran = 0, 0, 0

        async def child(depth):
            nonlocal live, peak, ran
            async with slots.place(depth):
                live += 1
                peak = max(peak, live)
                await asyncio.sleep(0)
                if depth < slots.deepest:
                    await asyncio.gather(*(child(depth + 1) for _ in range(width)))
                ran += 1
                live -= 1

        async with asyncio.timeout(20):
            await asyncio.gather(*(child(1) for _ in range(width)))
        return peak, ran, slots.deepest

    peak, ran, reached = asyncio.run(tree())
    assert peak <= most
    assert ran == sum(width**depth for depth in range(1, reached + 1))


def test_a_cancelled_wait_hands_its_turn_on():
    async def three():
        slots = Slots(1, 1)
        done = []

        async def child(name):
            async with slots.place(1):
                await asyncio.sleep(0.01)
                done.append(name)

        tasks = [asyncio.create_task(child(name)) for name in "abc"]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.wait(tasks)
        return done

    assert asyncio.run(three()) == ["a", "c"]


def test_all_places_are_used_where_children_have_no_children():
    async def many():
        slots = Slots(4, 1)
        live, peak = 0, 0

        async def child():
            nonlocal live, peak
            async with slots.place(1):
                live += 1
                peak = max(peak, live)
                await asyncio.sleep(0.001)
                live -= 1

        await asyncio.gather(*(child() for _ in range(10)))
        return peak

    assert asyncio.run(many()) == 4
