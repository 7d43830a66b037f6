"""A worker at its limits: of memory, of time, of restarts, of its host's patience."""

from __future__ import annotations

import asyncio
import time

import pytest

from rlm_rag.errors import WorkerLostError
from rlm_rag.sandbox.boot import worker_hash
from rlm_rag.sandbox.calls import uncounted
from rlm_rag.sandbox.confine.unconfined import Unconfined
from rlm_rag.sandbox.confine.view import Layer, WorkerLimits
from rlm_rag.sandbox.session import ServiceCall, ServiceReply, Session, WorkerSetup
from tests.sandbox.sessions import echo, make, run
from tests.sandbox.support import ALL_LAYERS, CONFINING, program

SMALL = WorkerLimits(memory_bytes=300 << 20)
BACKTRACKING = "import re\nx = 2\nre.match(r'(a+)+$', 'a' * 60 + 'b')"


def small(layer: Layer) -> Session:
    return Session(layer=layer, packed_path=None, serve=echo, setup=WorkerSetup(), limits=SMALL)


@pytest.mark.parametrize("layer", CONFINING)
def test_more_memory_than_the_limit_is_a_memory_error_and_the_worker_lives(layer: Layer) -> None:
    ways = [
        "y = bytes(1 << 30)",
        "y = [0] * (1 << 28)",
        "y = 'x' * (1 << 30)",
        "y = []\nwhile True: y.append(bytes(1 << 20))",
        "y = {}\nfor n in range(1 << 40): y[n] = str(n)",
        "import mmap\ny = mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\ny",
        "y = ''.join(str(n) for n in range(1 << 40))",
    ]

    async def scenario() -> None:
        async with small(layer) as session:
            await run(session, "x = 1")
            for block, code in enumerate(ways, 2):
                result = await run(session, code, block=2 * block, seconds=30)
                assert result.error is not None
                assert result.error.type in ("MemoryError", "OSError"), (code, result.error)
                assert not result.restarted
                result = await run(session, "y = None\nx", block=2 * block + 1)
                assert (result.value, result.restarted) == ("1", False), code

    asyncio.run(scenario())


def test_a_block_that_filled_all_memory_is_reported_whole() -> None:
    code = "y = []\nprint('before')\nwhile True: y.append(bytes(1000))"

    async def scenario() -> None:
        async with small(Unconfined()) as session:
            result = await run(session, code, seconds=30)
            assert result.error is not None
            assert (result.error.type, result.stdout) == ("MemoryError", "before\n")
            assert "line 3" in result.error.traceback
            assert (await run(session, "len(y) > 1000", block=2)).value == "True"

    asyncio.run(scenario())


@pytest.mark.parametrize("layer", ALL_LAYERS)
@pytest.mark.parametrize(
    "code",
    ["x = 2\nwhile True: pass", "x = 2\nimport time\ntime.sleep(60)", BACKTRACKING],
    ids=["loop", "sleep", "regex"],
)
def test_an_interrupt_arrives_within_a_fifth_of_a_second(layer: Layer, code: str) -> None:
    async def scenario() -> None:
        async with make(layer=layer, grace=2) as session:
            await run(session, "1")
            result = await run(session, code, block=2, seconds=0.3)
            assert result.error is not None
            assert (result.error.type, result.restarted) == ("Timeout", False)
            assert result.seconds < 0.3 + 0.2
            assert (await run(session, "x", block=3)).value == "2"

    asyncio.run(scenario())


def test_one_interrupt_is_one_exception() -> None:
    code = """
caught = 0
try:
    import time
    time.sleep(60)
except KeyboardInterrupt:
    caught += 1
"""

    async def scenario() -> None:
        async with make() as session:
            result = await run(session, code, seconds=0.2)
            assert result.error is not None
            assert (result.error.type, result.error.traceback) == ("Timeout", "")
            assert (await run(session, "caught", block=2)).value == "1"

    asyncio.run(scenario())


def test_a_block_that_no_interrupt_stops_is_killed_when_the_grace_is_over() -> None:
    async def scenario() -> None:
        async with make(grace=0.5) as session:
            await run(session, "x = 1")
            began = time.monotonic()
            result = await run(session, "sum(range(1 << 60))", block=2, seconds=0.2)
            assert 0.6 < time.monotonic() - began < 3
            assert result.restarted
            assert (await run(session, "x", block=3)).value == "1"

    asyncio.run(scenario())


def test_the_wait_for_a_silent_host_ends() -> None:
    async def silent(call: ServiceCall) -> ServiceReply:
        with uncounted():
            await asyncio.sleep(60)
        return await echo(call)

    names = ("llm_query", "search")
    setup = WorkerSetup(services=names, waiting=frozenset(names), await_seconds=0.3)

    async def scenario() -> None:
        session = Session(layer=Unconfined(), packed_path=None, serve=silent, setup=setup)
        async with session:
            result = await run(session, "r = llm_query('a')\nr.ok, search('b')", seconds=0.2)
            assert (result.value, result.error) == ("(False, [])", None)
            assert result.stderr.count("no reply came within 0.3 seconds") == 2

    asyncio.run(scenario())


def test_the_session_names_the_hash_of_the_hosts_own_files_whatever_the_worker_says() -> None:
    lying = """
import sys, time
sys.stdout.write('{"t":"hello","version":1,"python":"3","worker":"lie","layers":{}}' + chr(10))
sys.stdout.flush()
time.sleep(60)
"""

    async def scenario() -> None:
        async with make(start=program(lying)) as session:
            assert session.worker_hash == worker_hash()

    asyncio.run(scenario())


def test_a_fourth_loss_ends_it() -> None:
    async def scenario() -> None:
        async with make() as session:
            await run(session, "x = 1")
            for block in (2, 3, 4):
                assert (await run(session, "import os\nos._exit(1)", block=block)).restarted
            assert (await run(session, "x", block=5)).value == "1"
            with pytest.raises(WorkerLostError, match="lost too often"):
                await run(session, "import os\nos._exit(1)", block=6)
            with pytest.raises(WorkerLostError):
                await run(session, "x", block=7)
            looked = await session.look("x", block=7, timeout_seconds=2, output_chars=100)
            assert looked.value == "1"

    asyncio.run(scenario())
