"""The thread whose event loop serves synchronous callers."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

from rlm_rag.engine.loop_thread import LoopThread, loop_thread


async def name_of_thread() -> str:
    return threading.current_thread().name


def test_coroutines_run_on_the_one_thread_from_any_other() -> None:
    thread = LoopThread()
    names: list[str] = []
    callers = [
        threading.Thread(target=lambda: names.append(thread.run(name_of_thread())))
        for _ in range(4)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    thread.stop()
    assert names == ["rlm-rag-loop"] * 4


def test_it_serves_a_caller_whose_own_loop_is_running() -> None:
    async def inside() -> str:
        return loop_thread().run(name_of_thread())

    assert asyncio.run(inside()) == "rlm-rag-loop"


def test_an_exception_reaches_the_caller() -> None:
    async def fails() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        loop_thread().run(fails())


def test_stopping_cancels_what_runs_and_a_later_call_starts_anew() -> None:
    thread = LoopThread()
    ended = threading.Event()

    async def sleeps() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    future = thread.submit(sleeps())
    thread.run(name_of_thread())
    thread.stop()
    assert ended.wait(5)
    assert future.cancelled()
    assert thread.run(name_of_thread()) == "rlm-rag-loop"
    thread.stop()
    thread.stop()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_gets_a_loop_of_its_own() -> None:
    loop_thread().run(name_of_thread())
    child = os.fork()
    if child == 0:
        code = 0 if loop_thread().run(name_of_thread()) == "rlm-rag-loop" else 1
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_is_awaited_on_the_loop_has_ended_where_it_is_cancelled() -> None:
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            ended.append("whole")

    async def given_up() -> list[str]:
        task = asyncio.create_task(loop_thread().awaited(slow()))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return list(ended)

    async def number() -> int:
        return 3

    assert loop_thread().run(given_up()) == ["whole"]
    assert asyncio.run(loop_thread().awaited(number())) == 3
