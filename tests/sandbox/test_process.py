"""A worker's process: its pipes, its limits, and its end."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag.errors import ProtocolError, SandboxUnavailableError, WorkerLostError
from rlm_rag.sandbox.confine.unconfined import Unconfined
from rlm_rag.sandbox.confine.view import Launch, Layer, Program, WorkerLimits
from rlm_rag.sandbox.frames import MAX_FRAME_BYTES
from rlm_rag.sandbox.process import ProcessTransport, open_worker
from tests.sandbox.support import (
    ALL_LAYERS,
    CONFINING,
    lines_of,
    processes_with,
    program,
    until,
)

ROOT = Path(rlm_rag.__file__).parents[1]
ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
STUBBORN = """
import signal, threading, time, os
signal.signal(signal.SIGTERM, signal.SIG_IGN)
try:
    if os.fork() == 0:
        os.setsid()
except PermissionError:
    threading.Thread(target=time.sleep, args=(60,)).start()
print("up", flush=True)
while True:
    time.sleep(60)
"""


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_frames_of_any_size_go_out_and_come_back_in_order(layer: Layer) -> None:
    async def scenario() -> None:
        transport = await open_worker(layer, None, program=program(ECHO))
        try:
            sent = [bytes([65 + n]) * size for n, size in enumerate((1, 70_000, 900_000, 3))]
            sends = asyncio.gather(*(transport.send(frame + b"\n") for frame in sent))
            assert [await transport.receive() for _ in sent] == sent
            await sends
            assert transport.isolation == layer.name
            assert transport.ending == ""
        finally:
            await transport.kill()

    asyncio.run(scenario())


@pytest.mark.parametrize("flood", ["'x' * (2 << 20)", "''"], ids=["oversized", "empty"])
def test_an_oversized_or_empty_frame_is_a_protocol_error(flood: str) -> None:
    async def scenario() -> None:
        code = f"print('fine', flush=True)\nprint({flood}, flush=True)\nimport time; time.sleep(60)"
        transport = await open_worker(Unconfined(), None, program=program(code))
        try:
            assert await transport.receive() == b"fine"
            with pytest.raises(ProtocolError):
                await transport.receive()
        finally:
            await transport.kill()

    assert MAX_FRAME_BYTES < 2 << 20
    asyncio.run(scenario())


class Pretender:
    """Claims a seal that its workers do not have."""

    name = "pretender"

    def launch(
        self, program: Program, *, packed_path: str | None, limits: WorkerLimits, info_fd: int
    ) -> Launch:
        launch = Unconfined().launch(
            program, packed_path=packed_path, limits=limits, info_fd=info_fd
        )
        return replace(launch, kept=0)


def test_a_worker_that_is_not_sealed_is_not_heard_whatever_its_layer_says() -> None:
    missing = "not sealed: its calls are not filtered, it may gain privileges"
    with pytest.raises(ProtocolError, match=missing):
        lines_of(Pretender(), "print('sealed, truly')")


def test_a_flood_nobody_reads_is_left_in_the_pipe() -> None:
    code = "while True: print('x' * 500_000, flush=True)"

    async def scenario() -> None:
        transport = await open_worker(Unconfined(), None, program=program(code))
        try:
            assert await transport.receive()
            await asyncio.sleep(0.2)
            # Held: what is read ahead, one read more, and a frame's beginning.
            assert transport._inbox._ahead < 6 << 20
        finally:
            await transport.kill()

    asyncio.run(scenario())


def test_sending_to_a_worker_that_ended_says_that_it_is_lost_and_how_it_ended() -> None:
    async def scenario() -> None:
        code = "import os, sys\nsys.stderr.write('last words')\nsys.stderr.flush()\nos._exit(3)"
        transport = await open_worker(Unconfined(), None, program=program(code))
        assert await transport.receive() == b""
        with pytest.raises(WorkerLostError):
            await transport.send(b"x" * 200_000 + b"\n")
        await transport.kill()
        assert transport.ending == "exit code 3: last words"
        with pytest.raises(WorkerLostError):
            await transport.send(b"again\n")

    asyncio.run(scenario())


def test_a_send_that_a_worker_never_reads_ends_with_the_worker() -> None:
    async def scenario() -> None:
        code = "import time\ntime.sleep(60)"
        transport = await open_worker(Unconfined(), None, program=program(code))
        sending = asyncio.ensure_future(transport.send(b"x" * (1 << 20)))
        await asyncio.sleep(0.05)
        assert not sending.done()
        await transport.kill()
        with pytest.raises(WorkerLostError):
            await sending

    asyncio.run(scenario())


@pytest.mark.parametrize("layer", CONFINING)
def test_kill_leaves_no_process_whatever_the_worker_started(layer: Layer) -> None:
    async def scenario() -> None:
        token = secrets.token_hex(8)
        transport = await open_worker(layer, None, program=program(STUBBORN, token))
        assert await transport.receive() == b"up"
        assert processes_with(token)
        await transport.kill()
        assert processes_with(token) == []
        await transport.kill()

    asyncio.run(scenario())


@pytest.mark.parametrize("layer", CONFINING)
def test_nothing_outlives_a_host_that_is_killed(layer: Layer, tmp_path: Path) -> None:
    token = secrets.token_hex(8)
    script = tmp_path / "host.py"
    script.write_text(
        f"""
import asyncio
from rlm_rag.sandbox.layers import choose_layer
from rlm_rag.sandbox.process import ProcessTransport, open_worker
from tests.sandbox.support import program

async def main():
    layer = choose_layer({layer.name!r})
    for _ in range(2):
        transport = await open_worker(layer, None, program=program({STUBBORN!r}, {token!r}))
        await transport.receive()
    print("ready", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    with subprocess.Popen(
        [sys.executable, "-B", str(script)], env=environment, stdout=subprocess.PIPE
    ) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"ready\n"
        assert len(processes_with(token)) >= 2
        host.send_signal(signal.SIGKILL)
    assert asyncio.run(until(lambda: processes_with(token) == []))


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_nothing_outlives_a_host_that_is_killed_while_it_starts_workers(layer: Layer) -> None:
    token = secrets.token_hex(8)
    code = f"""
import asyncio
from rlm_rag.sandbox.boot import boot_command
from rlm_rag.sandbox.process import ProcessTransport, open_worker
from tests.sandbox.support import ALL_LAYERS

async def main():
    layer, = [p.values[0] for p in ALL_LAYERS if p.values[0].name == {layer.name!r}]
    print("ready", flush=True)
    while True:
        transport = await open_worker(
            layer, None, program=lambda root, python: [*boot_command(root, python), {token!r}]
        )
        await transport.kill()

asyncio.run(main())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    for delay_seconds in (0.03, 0.035, 0.04, 0.05):
        with subprocess.Popen(
            [sys.executable, "-B", "-c", code], env=environment, stdout=subprocess.PIPE
        ) as host:
            assert host.stdout is not None
            assert host.stdout.readline() == b"ready\n"
            time.sleep(delay_seconds)
            host.send_signal(signal.SIGKILL)
    # The hosts' own command lines hold the token too, and are gone.
    assert asyncio.run(until(lambda: processes_with(token) == []))


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_a_worker_outlives_the_thread_that_started_it(layer: Layer) -> None:
    loop = asyncio.new_event_loop()
    started: list[ProcessTransport] = []

    def start() -> None:
        started.append(loop.run_until_complete(open_worker(layer, None, program=program(ECHO))))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()

    async def scenario() -> None:
        try:
            # A signal that came with the thread's end would have been delivered by now.
            await asyncio.sleep(0.05)
            await started[0].send(b"still there\n")
            assert await started[0].receive() == b"still there"
        finally:
            await started[0].kill()

    loop.run_until_complete(scenario())
    loop.close()


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_a_worker_that_closes_its_pipes_and_goes_on_is_noticed_at_once(layer: Layer) -> None:
    code = "import os, time\nos.closerange(0, 256)\ntime.sleep(60)"
    began = time.monotonic()
    assert lines_of(layer, code) == []
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_a_process_that_was_forked_starts_workers_of_its_own(layer: Layer) -> None:
    lines_of(layer, "pass")
    child = os.fork()
    if not child:
        os._exit(0 if lines_of(layer, "print('mine')") == ["mine"] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_memory_beyond_the_limit_is_a_memory_error_and_the_worker_lives(layer: Layer) -> None:
    code = """
try:
    hoard = bytearray(400 << 20)
    print("OPEN")
except MemoryError:
    print("MemoryError")
print("alive")
"""
    limits = WorkerLimits(memory_bytes=200 << 20)
    assert lines_of(layer, code, limits=limits) == ["MemoryError", "alive"]


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_descriptors_core_files_and_file_sizes_are_limited(layer: Layer) -> None:
    code = """
import resource as r
for what in (r.RLIMIT_NOFILE, r.RLIMIT_CORE, r.RLIMIT_FSIZE, r.RLIMIT_NPROC):
    print(*r.getrlimit(what))
"""
    lines = lines_of(layer, code, limits=WorkerLimits(scratch_bytes=1 << 20))
    assert lines[:3] == ["256 256", "0 0", f"{1 << 20} {1 << 20}"]
    assert lines[3] in ("256 256", f"{1 << 15} {1 << 15}")


def test_the_scratch_folder_of_an_unconfined_worker_is_removed(tmp_path: Path) -> None:
    code = "import os\nopen('left', 'w').close()\nprint(os.getcwd(), os.environ['TMPDIR'])"
    where, temporary = lines_of(Unconfined(), code)[0].split()
    assert where == temporary
    assert not Path(where).exists()


class _Broken:
    """A layer whose launcher cannot do its work."""

    name = "broken"

    def __init__(self, *argv: str) -> None:
        self._argv = argv

    def launch(
        self, program: Program, *, packed_path: str | None, limits: WorkerLimits, info_fd: int
    ) -> Launch:
        return Launch(self._argv, {}, None)


def test_a_launcher_that_is_missing_or_fails_is_said_with_what_it_said() -> None:
    failing = _Broken("/bin/sh", "-c", "echo no such luck >&2; exit 7")
    with pytest.raises(SandboxUnavailableError, match="exit code 7: no such luck"):
        asyncio.run(open_worker(failing, None))
    with pytest.raises(SandboxUnavailableError, match="cannot start /no/launcher"):
        asyncio.run(open_worker(_Broken("/no/launcher"), None))


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_a_cancelled_start_leaves_nothing(layer: Layer) -> None:
    token = secrets.token_hex(8)

    async def scenario() -> None:
        for delay in (0, 0.002, 0.01):
            opening = asyncio.ensure_future(
                open_worker(layer, None, program=program(STUBBORN, token))
            )
            await asyncio.sleep(delay)
            opening.cancel()
            done, _ = await asyncio.wait({opening})
            if not opening.cancelled():
                await done.pop().result().kill()
        assert await until(lambda: processes_with(token) == [])

    asyncio.run(scenario())
