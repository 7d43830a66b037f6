"""Runs small programs under the sandbox's layers, and finds what is left of them."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rlm_rag.sandbox.confine.bubblewrap import Bubblewrap
from rlm_rag.sandbox.confine.landlock import Landlock
from rlm_rag.sandbox.confine.namespaces import Namespaces
from rlm_rag.sandbox.confine.unconfined import Unconfined
from rlm_rag.sandbox.confine.view import Layer, Program, WorkerLimits
from rlm_rag.sandbox.process import open_worker

_needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bwrap is not installed")
IN_NAMESPACES = [
    pytest.param(Bubblewrap(), id="bwrap", marks=_needs_bwrap),
    pytest.param(Namespaces(), id="namespaces"),
]
CONFINING = [*IN_NAMESPACES, pytest.param(Landlock(), id="landlock")]
ALL_LAYERS = [*CONFINING, pytest.param(Unconfined(), id="none")]


def program(code: str, *arguments: str) -> Program:
    """A bare interpreter that runs `code` instead of the worker."""

    def command(_: str, python: str) -> list[str]:
        return [python, "-s", "-P", "-S", "-B", "-c", code, *arguments]

    return command


def lines_of(
    layer: Layer,
    code: str,
    *arguments: str,
    packed: Path | None = None,
    limits: WorkerLimits | None = None,
) -> list[str]:
    """What `code` prints under `layer`, line by line, after it was told to go on."""

    async def gather() -> list[str]:
        waiting = f"import sys\nsys.stdin.readline()\n{code}"
        transport = await open_worker(
            layer, packed, limits=limits, program=program(waiting, *arguments)
        )
        try:
            await transport.send(b"go\n")
            lines = []
            while line := await transport.receive():
                lines.append(line.decode())
            return lines
        finally:
            await transport.kill()

    return asyncio.run(gather())


def processes_with(token: str) -> list[int]:
    """The processes whose command line holds `token`, this one and the ended ones apart."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if token.encode() in command:
            found.append(int(entry.name))
    return found


async def until(holds: Callable[[], bool], *, seconds: float = 5) -> bool:
    """Wait until `holds` is true, at most `seconds`; say whether it is."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not holds():
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True
