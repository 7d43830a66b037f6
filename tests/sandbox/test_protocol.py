"""Workers that do not keep to the protocol, and what becomes of their sessions."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from rlm_rag.errors import SandboxUnavailableError
from rlm_rag.sandbox.confine.view import Program
from rlm_rag.sandbox.session import (
    MAX_OUTSTANDING_CALLS,
    ServiceCall,
    ServiceReply,
)
from tests.sandbox.sessions import echo, make, run
from tests.sandbox.support import program

HELLO = {"t": "hello", "version": 1, "python": "3", "worker": "w", "layers": {}}
DONE = {
    "t": "done",
    "block": 1,
    "stdout": "",
    "stderr": "",
    "stdout_cut": 0,
    "stderr_cut": 0,
    "value": None,
    "error": None,
    "answer": None,
    "overwritten": [],
    "variables": [],
    "memory": [],
    "seconds": 0.0,
}
PIECE = {"t": "piece", "name": "x", "data": "AA==", "last": True}
CALL = {"t": "call", "call": 1, "block": 1, "name": "search", "args": [], "kwargs": {}}


def peer(*frames: object, hello: object = HELLO) -> Program:
    """A worker that greets, and answers its first block with `frames`, given as text or JSON."""
    texts = [frame if isinstance(frame, str) else json.dumps(frame) for frame in frames]
    code = f"""
import sys, time
def say(line):
    sys.stdout.write(line + chr(10))
    sys.stdout.flush()
say({json.dumps(hello)!r})
for line in sys.stdin:
    if '"exec"' in line:
        for frame in {texts!r}:
            say(frame)
time.sleep(60)
"""
    return program(code)


@pytest.mark.parametrize(
    "frames",
    [
        ["garbage"],
        ["[]"],
        ["{}"],
        [{"t": "boo"}],
        ['{"t":"done","block":NaN}'],
        [json.dumps(DONE).replace("0.0", "1e999")],
        ["[" * 200 + "]" * 200],
        ['{"t":"call","call":9,"block":1,"name":"x","args":' + "[" * 5000 + "]" * 5000 + "}"],
        [HELLO],
        [{**DONE, "block": 7}],
        [{**DONE, "extra": 1}],
        [{**DONE, "stdout": 5}],
        [{**DONE, "variables": [["a", "b", "c"]] * 201}],
        [{**DONE, "answer": {"content": 1, "ready": True}}],
        [{**CALL, "call": -1}],
        [{**CALL, "call": True}],
        [{**CALL, "name": "x" * 1000}],
        [CALL, CALL],
        ['{"t":"part","id":1,"last":false,"data":"{"}', json.dumps(DONE)],
        ["\\u00e9"],
        [{"t": "piece", "name": "x", "data": 1, "last": True}],
        [PIECE, PIECE],
        [{**PIECE, "last": False}, {"t": "snapshot", "block": 1, "gone": []}],
        [{"t": "snapshot", "block": 1, "gone": ["x"] * 10_001}],
        [{"t": "restored", "names": []}],
    ],
    ids=lambda frames: str(frames)[:60],
)
def test_a_worker_that_breaks_the_protocol_is_ended_and_the_host_goes_on(frames: list[Any]) -> None:
    async def forever(call: ServiceCall) -> ServiceReply:
        await asyncio.sleep(60)
        return await echo(call)

    async def scenario() -> None:
        async with make(forever, start=peer(*frames)) as session:
            result = await run(session, "1", seconds=5)
            assert result.error is not None
            assert (result.error.type, result.restarted) == ("WorkerLost", True)

    asyncio.run(scenario())


def test_a_bomb_of_brackets_in_parts_ends_its_worker_alone() -> None:
    bomb = f"""
import json, sys, time
print({json.dumps(HELLO)!r}, flush=True)
for line in sys.stdin:
    if '"exec"' in line:
        for n in range(40):
            text = '{{"t":"call","args":[' if n == 0 else ""
            part = {{"t": "part", "id": 1, "last": n == 39, "data": text + "[]," * 300_000}}
            print(json.dumps(part), flush=True)
time.sleep(60)
"""

    async def scenario() -> None:
        async with make(start=program(bomb)) as session:
            result = await run(session, "1", seconds=20)
            assert result.error is not None
            assert "items" in result.error.message
            assert result.restarted

    asyncio.run(scenario())


def test_a_second_done_ends_the_worker_after_the_first_was_taken() -> None:
    async def scenario() -> None:
        async with make(start=peer(DONE, DONE)) as session:
            assert (await run(session, "1")).error is None
            await asyncio.sleep(0.1)
            assert (await run(session, "1")).restarted

    asyncio.run(scenario())


def test_a_flood_of_calls_is_refused_beyond_the_bound() -> None:
    served: list[int] = []
    release = asyncio.Event()

    async def hold(call: ServiceCall) -> ServiceReply:
        served.append(call.call)
        await release.wait()
        return await echo(call)

    async def scenario() -> None:
        calls = [{**CALL, "call": number} for number in range(3 * MAX_OUTSTANDING_CALLS)]
        async with make(hold, start=peer(*calls, DONE)) as session:
            assert (await run(session, "1")).error is None
            assert len(served) == MAX_OUTSTANDING_CALLS
            release.set()

    asyncio.run(scenario())


def test_calls_whose_arguments_are_too_large_together_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rlm_rag.sandbox.calls.MAX_OUTSTANDING_BYTES", 20_000)
    held: list[int] = []
    release = asyncio.Event()

    async def hold(call: ServiceCall) -> ServiceReply:
        held.append(call.call)
        await release.wait()
        return await echo(call)

    async def scenario() -> None:
        calls = [{**CALL, "call": n, "args": ["x" * 6_000]} for n in range(10)]
        async with make(hold, start=peer(*calls, DONE)) as session:
            assert (await run(session, "1")).error is None
            assert held == [0, 1, 2]
            release.set()
            await asyncio.sleep(0)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (program("import time\ntime.sleep(60)"), "nothing for 0.3 s"),
        (program("raise SystemExit(5)"), "exit code 5"),
        (peer(hello={**HELLO, "version": 2}), "version 2"),
        (peer(hello=DONE), "not a greeting"),
        (program("import no_such_module"), "No module named"),
    ],
    ids=["silent", "exits", "version", "no-greeting", "import"],
)
def test_a_worker_that_does_not_greet_is_said_to_be_unavailable(start: Program, said: str) -> None:
    async def scenario() -> None:
        with pytest.raises(SandboxUnavailableError) as caught:
            await make(start=start, start_seconds=0.3).start()
        assert said in caught.value.message

    asyncio.run(scenario())
