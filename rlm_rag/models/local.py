"""`local:FILE.gguf`: a model of this machine, served by a process of our own while it is used."""

from __future__ import annotations

import asyncio
import atexit
import os
import subprocess
import threading
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from rlm_rag.child import command, environment
from rlm_rag.errors import MissingExtraError, ModelError
from rlm_rag.models.base import Completion, ModelRequest
from rlm_rag.models.context_size import SLOTS, local_context, local_path
from rlm_rag.models.openai_compatible import OpenAiCompatibleModel
from rlm_rag.models.prices import Price

START_SECONDS = 120.0
TEMPERATURE = 0.0
"""Where none is asked for: the server's own of 0.8 costs code of small models its names, and the
same question would be answered otherwise each time."""
# Idle threads of OpenMP that spin keep the cores from those that work: 0.3 tokens a second then.
_QUIET_THREADS = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"}


class LocalModel:
    """A GGUF file as a model; its server starts at the first call and ends with the program.

    Raises:
        MissingExtraError: xllamacpp is not installed.
        ModelNotFoundError: no such file, or no GGUF file.
    """

    def __init__(self, name: str, *, price: Price | None = None) -> None:
        self._name = name
        self._path = local_path(name)
        self._context_tokens = local_context(self._path)
        if find_spec("xllamacpp") is None:
            raise MissingExtraError(
                f"xllamacpp, which serves {name}, is not installed",
                hint="pip install 'rlm-rag[local]'",
            )
        self._price = price
        self._served: OpenAiCompatibleModel | None = None

    @property
    def name(self) -> str:
        """The model's name as the user spelled it."""
        return self._name

    async def complete(self, request: ModelRequest) -> Completion:
        """Send one request to the model's server, which is started where it does not run.

        Raises:
            ModelError: the server does not start, or could not serve the request.
        """
        server = await asyncio.to_thread(_SERVERS.running, self._path, self._context_tokens)
        if self._served is None:
            self._served = OpenAiCompatibleModel(
                self._name, api_base=server.api_base, price=self._price
            )
        if request.temperature is None:
            request = replace(request, temperature=TEMPERATURE)
        return await self._served.complete(request)

    async def aclose(self) -> None:
        """Close the connections; the server stays for the next question, with its cache."""
        if self._served is not None:
            await self._served.aclose()


def served_at(name: str) -> str:
    """Return the API base of the server of `local:FILE.gguf`, which is started where it is not.

    Raises:
        ModelNotFoundError: no such file, or no GGUF file.
        ModelError: the server does not start.
    """
    path = local_path(name)
    return _SERVERS.running(path, local_context(path)).api_base


@dataclass(frozen=True, slots=True)
class _Server:
    process: subprocess.Popen[bytes]
    api_base: str


class _Servers:
    """The servers of this program, one for each model file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_path: dict[Path, _Server] = {}

    def running(self, path: Path, context: int) -> _Server:
        """Return the server of a file; one that died is started again."""
        with self._lock:
            server = self._by_path.get(path)
            if server is not None and server.process.poll() is not None:
                _end(server.process)
                server = None
            if server is None:
                server = self._by_path[path] = _start(path, context)
            return server

    def close(self) -> None:
        """End all of them."""
        with self._lock:
            for server in self._by_path.values():
                _end(server.process)
            self._by_path.clear()


_SERVERS = _Servers()
atexit.register(_SERVERS.close)
if hasattr(os, "register_at_fork"):
    # The parent's servers are its own.
    os.register_at_fork(after_in_child=_SERVERS.__init__)  # type: ignore[misc]


def _start(path: Path, context: int) -> _Server:
    threads = str(os.cpu_count() or 1)
    process = subprocess.Popen(
        command("rlm_rag.models.local_server", str(path), str(context), str(SLOTS), threads),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment() | _QUIET_THREADS,
    )
    timer = threading.Timer(START_SECONDS, process.kill)
    timer.start()
    try:
        assert process.stdout is not None
        address = process.stdout.readline().decode("utf-8", "replace").strip()
    finally:
        timer.cancel()
    if urlsplit(address).hostname != "127.0.0.1":
        _end(process)
        raise ModelError(
            f"the server of {path} did not start within {START_SECONDS:g} s",
            hint="the file may be damaged, or larger than the memory; rlm-rag doctor says more",
        )
    return _Server(process, f"{address}/v1")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
