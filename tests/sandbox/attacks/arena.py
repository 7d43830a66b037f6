"""What attacks aim at, laid out on this machine, and how a layer fares against all of them."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import importlib.util
import json
import os
import py_compile
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import rlm_rag
from rlm_rag.sandbox.boot import SOURCE_ROOT
from rlm_rag.sandbox.confine.landlock import Landlock
from rlm_rag.sandbox.confine.unconfined import Unconfined
from rlm_rag.sandbox.confine.view import (
    CORPUS_INSIDE,
    SOURCES_INSIDE,
    Layer,
    WorkerLimits,
    interpreter,
)
from rlm_rag.sandbox.process import ProcessTransport, open_worker
from tests.sandbox.attacks.attack import Attack
from tests.sandbox.support import program

TIGHT = WorkerLimits(
    memory_bytes=256 << 20,
    scratch_bytes=16 << 20,
    scratch_inodes=500,
    processes=64,
    open_files=128,
)
WIDE = WorkerLimits(
    memory_bytes=1 << 40,
    scratch_bytes=1 << 40,
    processes=4096,
    open_files=4096,
)
PATIENCE_SECONDS = 30.0
_RUNNER = Path(__file__).with_name("runner.py")


@contextlib.contextmanager
def arena() -> Iterator[dict[str, Any]]:
    """Yield what the attacks are told; every file of it is open to all, so that no mode helps."""
    # Python may have been told to leave no compiled files, and one of them is a target.
    py_compile.compile(str(SOURCE_ROOT / "rlm_rag" / "errors.py"))
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="rlm-rag-arena-"))
        stack.callback(shutil.rmtree, folder)
        folder.chmod(0o777)
        for name in ("secret", "target", "corpus"):
            (folder / name).write_text("canary")
            (folder / name).chmod(0o666)
        opened = stack.enter_context((folder / "secret").open())
        key = secrets.token_hex(8)
        victim = stack.enter_context(
            subprocess.Popen(
                ["sleep", "600"], env={**os.environ, "API_KEY": key}, start_new_session=True
            )
        )
        stack.callback(victim.kill)
        yield {
            "marker": "canary",
            "key": key,
            "folder": str(folder),
            "secret": str(folder / "secret"),
            "target": str(folder / "target"),
            "corpus": str(folder / "corpus"),
            "home": str(Path.home()),
            "home_names": _names_at_home(),
            "project": str(Path(rlm_rag.__file__).parents[1]),
            "host": os.getpid(),
            "victim": victim.pid,
            "descriptor": opened.fileno(),
            "handle": _handle(folder / "secret").hex(),
            "disk": next((str(disk) for disk in Path("/dev").glob("[vs]d[a-z]")), ""),
            "memory": TIGHT.memory_bytes,
            "scratch": TIGHT.scratch_bytes,
            "inodes": TIGHT.scratch_inodes,
            "processes": TIGHT.processes,
            "files": TIGHT.open_files,
            **_sockets(folder, opened.fileno(), stack),
        }


def _names_at_home() -> list[str]:
    """What lies in the user's folder, apart from the way to the interpreter, which a view shows."""
    names = {entry.name for entry in Path.home().iterdir()}
    return sorted(names - set(Path(interpreter()).parts))


def _handle(path: Path) -> bytes:
    """The kernel's handle of a file (struct file_handle), b"" where it gives none."""
    room = ctypes.create_string_buffer((128).to_bytes(4, "little"), 136)
    name = getattr(ctypes.CDLL(None), "name_to_handle_at", None)
    if name is None or name(-100, str(path).encode(), room, ctypes.byref(ctypes.c_int()), 0) < 0:
        return b""
    return room.raw


def _sockets(folder: Path, given: int, stack: contextlib.ExitStack) -> dict[str, Any]:
    def listener(family: int, address: Any, kind: int = socket.SOCK_STREAM) -> socket.socket:
        made = stack.enter_context(socket.socket(family, kind))
        made.bind(address)
        if kind == socket.SOCK_STREAM:
            made.listen(64)
        if isinstance(address, str) and not address.startswith("\0"):
            Path(address).chmod(0o777)
        return made

    abstract = f"rlm-rag-{secrets.token_hex(8)}"
    tcp = listener(socket.AF_INET, ("127.0.0.1", 0))
    tcp6 = listener(socket.AF_INET6, ("::1", 0))
    giver = listener(socket.AF_UNIX, str(folder / "giver"))
    listener(socket.AF_UNIX, str(folder / "socket"))
    listener(socket.AF_UNIX, f"\0{abstract}")
    listener(socket.AF_UNIX, str(folder / "datagrams"), socket.SOCK_DGRAM)

    def give() -> None:
        with contextlib.suppress(OSError):
            while True:
                with giver.accept()[0] as asker:
                    socket.send_fds(asker, [b"x"], [given])

    threading.Thread(target=give, daemon=True).start()
    stack.callback(giver.shutdown, socket.SHUT_RDWR)
    return {
        "abstract": abstract,
        "tcp": tcp.getsockname()[1],
        "tcp6": tcp6.getsockname()[1],
        "socket": str(folder / "socket"),
        "giver": str(folder / "giver"),
        "datagrams": str(folder / "datagrams"),
    }


def outcomes(
    layer: Layer, attacks: Iterable[Attack], facts: dict[str, Any]
) -> dict[str, tuple[bool, str]]:
    """Return, by title, whether each attack won under `layer`, and if not, why."""
    return asyncio.run(_outcomes(layer, list(attacks), facts))


async def _outcomes(
    layer: Layer, attacks: list[Attack], facts: dict[str, Any]
) -> dict[str, tuple[bool, str]]:
    found: dict[str, tuple[bool, str]] = {}
    transport: ProcessTransport | None = None
    try:
        for attack in attacks:
            if transport is None or attack.alone:
                if transport is not None:
                    await transport.kill()
                transport = await _runner(layer, facts)
            await transport.send(json.dumps(attack.code).encode() + b"\n")
            async with asyncio.timeout(PATIENCE_SECONDS):
                answer = await transport.receive()
            if answer:
                won, why = json.loads(answer)
                found[attack.title] = (won, why)
            else:
                await transport.kill()
                # The program that took the runner's place ends with 0.
                found[attack.title] = (transport.ending == "exit code 0", transport.ending)
                transport = None
    finally:
        if transport is not None:
            await transport.kill()
    return found


async def _runner(layer: Layer, facts: dict[str, Any]) -> ProcessTransport:
    is_free = isinstance(layer, Unconfined)
    transport = await open_worker(
        layer,
        Path(facts["corpus"]),
        limits=WIDE if is_free else TIGHT,
        program=program(_RUNNER.read_text()),
    )
    on_host = is_free or isinstance(layer, Landlock)
    sources = str(SOURCE_ROOT) if on_host else SOURCES_INSIDE
    seen = {
        **facts,
        "corpus": facts["corpus"] if on_host else CORPUS_INSIDE,
        "sources": sources,
        "compiled": importlib.util.cache_from_source(f"{sources}/rlm_rag/errors.py"),
    }
    await transport.send(json.dumps(seen).encode() + b"\n")
    return transport
