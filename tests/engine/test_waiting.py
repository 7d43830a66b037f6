"""Who waits is called in the order in which all came."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from rlm_rag.engine.waiting import Line


def needing(room: list[int], least: int) -> Callable[[], int | None]:
    """An attempt that gives what room there is, where it is enough."""
    return lambda: room[0] if room[0] >= least else None


async def waiting(line: Line, room: list[int], needs: list[int]) -> tuple[list[int], list]:
    came: list[int] = []

    async def wait(number: int, least: int) -> None:
        await line.until(needing(room, least))
        came.append(number)

    tasks = [asyncio.create_task(wait(number, least)) for number, least in enumerate(needs)]
    await asyncio.sleep(0)
    return came, tasks


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize("calls", [1, 2, 3, 5])
def test_those_who_are_called_in_vain_keep_their_places(calls: int) -> None:
    async def run() -> list[int]:
        line, room = Line(), [0]
        came, _ = await waiting(line, room, [1] * 5)
        for _ in range(calls):
            line.call_next()
        await settle()
        assert came == []
        room[0] = 1
        line.call_next()
        await settle()
        return came

    assert asyncio.run(run()) == [0, 1, 2, 3, 4]


def test_who_gives_up_is_passed_over_and_hands_on_a_call_that_has_come() -> None:
    async def run() -> list[int]:
        line, room = Line(), [0]
        came, tasks = await waiting(line, room, [1] * 4)
        tasks[0].cancel()
        await settle()
        room[0] = 1
        line.call_next()
        tasks[1].cancel()
        await settle()
        return came

    assert asyncio.run(run()) == [2, 3]


def test_an_attempt_that_fails_calls_the_next() -> None:
    async def run() -> list[int]:
        line, room = Line(), [0]

        def failing() -> None:
            if room[0]:
                raise ValueError("no")

        failed = asyncio.create_task(line.until(failing))
        await asyncio.sleep(0)
        came, _ = await waiting(line, room, [1, 1])
        room[0] = 1
        line.call_next()
        await settle()
        with pytest.raises(ValueError, match="no"):
            await failed
        return came

    assert asyncio.run(run()) == [0, 1]
