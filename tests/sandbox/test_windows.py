"""Workers on Windows. Elsewhere the worker runs with Windows' calls, stood in for by POSIX's."""

from __future__ import annotations

import asyncio
import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag.packing import pack
from rlm_rag.sandbox import layers
from rlm_rag.sandbox.blocks import ServiceCall, ServiceReply
from rlm_rag.sandbox.boot import boot_command
from rlm_rag.sandbox.confine.unconfined import Unconfined
from rlm_rag.sandbox.confine.view import Layer, Program
from rlm_rag.sandbox.confine.windows import JobObject
from rlm_rag.sandbox.process import ProcessTransport, open_worker
from tests.sandbox.sessions import make, run
from tests.sandbox.support import lines_of, program, until
from tests.stand_in_windows import WITH_WINDOWS, WITHOUT_POSIX

ROOT = Path(rlm_rag.__file__).parents[1]
windows = pytest.mark.skipif(sys.platform != "win32", reason="needs Windows")
elsewhere = pytest.mark.skipif(sys.platform == "win32", reason="Windows needs no stand-in")
LAYERS = [pytest.param(layer, id=layer.name) for layer in (JobObject(), Unconfined())]


def as_on_windows(sources: str, python: str) -> list[str]:
    """A worker whose interpreter has Windows' calls in place of POSIX's."""
    command = boot_command(sources, python)
    return [*command[:-1], WITHOUT_POSIX + WITH_WINDOWS + command[-1]]


async def lives(layer: Layer, start: Program = boot_command) -> None:
    """Take a worker through all that is done otherwise on Windows."""
    async with make(layer=layer, start=start, grace=2) as session:
        looked = await run(session, "import sys\n'rlm_rag.sandbox.inside.windows' in sys.modules")
        assert looked.value == "True"
        told = await run(session, "import os\nx = 41\nprint('\N{SNOWMAN}')\nos.write(1, b'raw')")
        assert (told.stdout, told.error) == ("raw\N{SNOWMAN}\n", None)
        much = await run(session, "print('y' * 3_000_000)\nos.write(2, b'err')", block=2)
        assert (much.stdout_cut, much.stderr) == (3_000_001 - 20_000, "err")
        moved = await run(session, "d = os.open(os.devnull, os.O_WRONLY)\nos.dup2(d, 1)", block=3)
        assert moved.error is None
        assert (await run(session, "print(llm_query('back'))", block=4)).stdout == "back\n"
        endless = "while True:\n try:\n  while True: pass\n except BaseException: pass"
        for block, code in enumerate(("while True: pass", endless), 5):
            late = await run(session, code, block=block, seconds=0.2)
            assert late.error is not None
            assert (late.error.type, late.restarted) == ("Timeout", False)
        written = "path = os.environ['TMPDIR'] + '/a'\nopen(path, 'w').write('\N{SNOWMAN}')"
        assert (await run(session, f"{written}\nopen(path).read()", block=7)).value == "'☃'"
        assert (await run(session, "def f(): return x + 1", block=8)).error is None
        lost = await run(session, "os._exit(5)", block=9)
        assert lost.error is not None
        assert (lost.error.message, lost.lost) == ("the worker process ended (exit code 5)", ())
        assert (await run(session, "f()", block=10)).value == "42"


@elsewhere
def test_a_worker_needs_no_call_of_posix() -> None:
    asyncio.run(lives(Unconfined(), as_on_windows))


@windows
@pytest.mark.parametrize("layer", LAYERS)
def test_a_worker_lives_on_windows(layer: Layer) -> None:
    asyncio.run(lives(layer))


@windows
@pytest.mark.parametrize("code", ["import time; time.sleep(60)", "llm_query('never')"])
def test_what_waits_on_windows_is_interrupted_too(code: str) -> None:
    async def never(_: ServiceCall) -> ServiceReply:
        await asyncio.sleep(60)
        return ServiceReply("")

    async def scenario() -> None:
        async with make(never, layer=JobObject(), grace=2) as session:
            late = await run(session, code, seconds=0.2)
            assert late.error is not None
            assert (late.error.type, late.restarted) == ("Timeout", False)
            assert late.seconds < 1.5

    asyncio.run(scenario())


@windows
def test_a_worker_on_windows_maps_its_corpus(tmp_path: Path) -> None:
    packed = tmp_path / "corpus"
    pack([("a.txt", "\N{SNOWMAN}\n")], packed)

    async def scenario() -> None:
        async with make(layer=JobObject(), packed=packed) as session:
            assert (await run(session, "context[0]['content']")).value == "'☃\\n'"

    asyncio.run(scenario())


def lives_on(pid: int) -> bool:
    """Whether a process of Windows runs."""
    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(kernel.OpenProcess(0x1000, 0, pid))
    code = ctypes.c_uint32()
    running = bool(handle) and bool(kernel.GetExitCodeProcess(handle, ctypes.byref(code)))
    kernel.CloseHandle(handle)
    return running and code.value == 259


@windows
@pytest.mark.parametrize("layer", LAYERS)
def test_nothing_on_windows_outlives_a_host_that_is_killed(layer: Layer, tmp_path: Path) -> None:
    script = tmp_path / "host.py"
    script.write_text(
        f"""
import asyncio
from rlm_rag.sandbox.confine.unconfined import Unconfined
from rlm_rag.sandbox.confine.windows import JobObject
from rlm_rag.sandbox.process import open_worker
from tests.sandbox.support import program

async def main():
    code = "print('up', flush=True); import time; time.sleep(60)"
    transport = await open_worker({type(layer).__name__}(), None, program=program(code))
    await transport.receive()
    print(transport.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""
    )
    with subprocess.Popen(
        [sys.executable, "-B", str(script)], cwd=ROOT, stdout=subprocess.PIPE
    ) as host:
        assert host.stdout is not None
        worker = int(host.stdout.readline())
        assert lives_on(worker)
        host.kill()
    assert asyncio.run(until(lambda: not lives_on(worker)))


@windows
def test_what_a_worker_on_windows_started_ends_with_it() -> None:
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid, flush=True)\nchild.wait()"
    )

    async def scenario() -> None:
        transport = await open_worker(Unconfined(), None, program=program(code))
        assert isinstance(transport, ProcessTransport)
        child = int(await transport.receive())
        assert lives_on(child)
        await transport.kill()
        assert not lives_on(transport.pid)
        assert await until(lambda: not lives_on(child))

    asyncio.run(scenario())


@windows
@pytest.mark.parametrize("layer", LAYERS)
def test_a_worker_in_a_job_has_no_privilege(layer: Layer) -> None:
    tell = """
import ctypes
token, size, data = ctypes.c_void_p(), ctypes.c_uint32(), ctypes.create_string_buffer(4096)
kernel, advapi = ctypes.WinDLL("kernel32"), ctypes.WinDLL("advapi32")
own = ctypes.c_void_p(-1)
advapi.OpenProcessToken(own, 8, ctypes.byref(token))
print(advapi.GetTokenInformation(token, 3, data, 4096, ctypes.byref(size)))
count = int.from_bytes(data[:4], "little")
print(sorted(int.from_bytes(data[at : at + 8], "little") for at in range(4, 4 + 12 * count, 12)))
"""
    asked, privileges = (line.strip() for line in lines_of(layer, tell))
    assert asked == "1"
    assert (privileges == "[23]") == (layer.name == "job")


def in_wine() -> bool:
    return sys.platform == "win32" and hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")


@windows
@pytest.mark.skipif(in_wine(), reason="Wine enforces no limit of a job")
def test_a_job_passes_its_self_test() -> None:
    assert layers.self_test(JobObject()) == []
