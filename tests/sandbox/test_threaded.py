"""Pipes that threads read and write, which serve where an event loop cannot wait for them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm_rag.errors import WorkerLostError
from rlm_rag.sandbox import pipes, process
from rlm_rag.sandbox.confine.unconfined import Unconfined
from rlm_rag.sandbox.process import open_worker
from rlm_rag.sandbox.threaded import ThreadOutbox, ThreadReader
from tests.sandbox.sessions import make, run
from tests.sandbox.support import program, until

READ_BYTES = 1 << 16


@pytest.fixture
def threaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every worker's pipes are read and written by threads, none of which is left."""
    monkeypatch.setattr(process, "open_outbox", ThreadOutbox)
    monkeypatch.setattr(pipes, "_open_reader", lambda fd, take: ThreadReader(fd, READ_BYTES, take))
    yield
    names = [thread.name for thread in threading.enumerate()]
    assert not {"rlm-rag-read", "rlm-rag-write"} & set(names)


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def test_a_worker_over_threads_runs_blocks_and_is_interrupted(threaded: None) -> None:
    async def scenario() -> None:
        async with make() as session:
            first = await run(session, "x = 41\nprint(llm_query('hi'))\nx + 1")
            assert (first.stdout, first.value) == ("hi\n", "42")
            endless = await run(session, "while True: pass", block=2, seconds=0.2)
            assert endless.error is not None
            assert endless.error.type == "Timeout"
            assert not endless.restarted
            lost = await run(session, "import os; os._exit(3)", block=3)
            assert lost.restarted
            assert (await run(session, "x", block=4)).value == "41"

    before = descriptors()
    asyncio.run(scenario())
    assert descriptors() == before


def test_frames_of_any_size_go_out_and_come_back_in_order_over_threads(threaded: None) -> None:
    async def scenario() -> None:
        echo = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
        transport = await open_worker(Unconfined(), None, program=program(echo))
        try:
            sent = [bytes([65 + n]) * size for n, size in enumerate((1, 70_000, 900_000, 3))]
            sends = asyncio.gather(*(transport.send(frame + b"\n") for frame in sent))
            assert [await transport.receive() for _ in sent] == sent
            await sends
        finally:
            await transport.kill()

    asyncio.run(scenario())


def test_the_end_of_a_worker_and_its_last_words_come_over_threads(threaded: None) -> None:
    async def scenario() -> None:
        code = "import os, sys\nsys.stderr.write('last words')\nsys.stderr.flush()\nos._exit(3)"
        transport = await open_worker(Unconfined(), None, program=program(code))
        assert await transport.receive() == b""
        with pytest.raises(WorkerLostError, match="closed its input"):
            await transport.send(b"x" * 200_000 + b"\n")
        await transport.kill()
        assert transport.ending == "exit code 3: last words"
        with pytest.raises(WorkerLostError, match="gone"):
            await transport.send(b"again\n")

    asyncio.run(scenario())


def test_a_flood_nobody_takes_is_left_in_the_pipe() -> None:
    async def scenario() -> None:
        taken: list[bytes] = []
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        reader = ThreadReader(reading, 100, taken.append)
        os.write(writing, b"x" * 1000)
        await asyncio.sleep(0.05)
        assert taken == []
        reader.resume()
        assert await until(lambda: len(taken) == 10)
        reader.pause()
        os.write(writing, b"y" * 1000)
        await asyncio.sleep(0.05)
        assert len(taken) <= 11
        os.close(writing)
        reader.flush()
        assert b"".join(taken) == b"x" * 1000 + b"y" * 1000
        assert taken[-1] == b""
        reader.close()

    asyncio.run(scenario())


def test_what_waits_to_be_written_fails_when_its_worker_is_ended(threaded: None) -> None:
    async def scenario() -> None:
        transport = await open_worker(
            Unconfined(), None, program=program("import time\ntime.sleep(60)")
        )
        sending = [transport.send(b"x" * (1 << 20)) for _ in range(2)]
        await asyncio.sleep(0.05)
        assert not any(each.done() for each in sending)
        await transport.kill()
        for each in sending:
            with pytest.raises(WorkerLostError):
                await each

    asyncio.run(scenario())
