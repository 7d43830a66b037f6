"""Chooses how workers are confined: the strongest layer that passes a self-test, or none by name.

The self-test runs the layer's real launcher over a probe that tries to reach canaries which the
host laid out; a layer is used only where every attempt failed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from rlm_rag.errors import SandboxUnavailableError, UsageError
from rlm_rag.sandbox.cloud.providers import PROVIDERS, open_cloud
from rlm_rag.sandbox.confine import probe
from rlm_rag.sandbox.confine.bubblewrap import Bubblewrap
from rlm_rag.sandbox.confine.landlock import Landlock
from rlm_rag.sandbox.confine.namespaces import Namespaces
from rlm_rag.sandbox.confine.seatbelt import Seatbelt
from rlm_rag.sandbox.confine.unconfined import Unconfined
from rlm_rag.sandbox.confine.view import (
    CORPUS_INSIDE,
    SOURCES_INSIDE,
    Launch,
    Layer,
    WorkerLimits,
    report_file,
)
from rlm_rag.sandbox.confine.windows import JobObject
from rlm_rag.sandbox.docker import DEFAULT_IMAGE, Docker
from rlm_rag.sandbox.opening import Isolation
from rlm_rag.sandbox.process import run_stop
from rlm_rag.sandbox.spawn import start_process
from rlm_rag.scratch import ScratchFolder

if TYPE_CHECKING:
    from rlm_rag.sandbox.confine.job import Job

__all__ = ["LAYER_NAMES", "Layer", "choose_layer", "self_test", "verdicts"]

# Strongest first; those of another system say so when they are asked.
_BY_SYSTEM: dict[str, tuple[Layer, ...]] = {
    "linux": (Bubblewrap(), Namespaces(), Landlock()),
    "darwin": (Seatbelt(),),
    "win32": (JobObject(),),
}
_CONFINING = _BY_SYSTEM.get(sys.platform, ())
_BY_NAME = {layer.name: layer for system in _BY_SYSTEM.values() for layer in system}
LAYER_NAMES = ("auto", *_BY_NAME, "docker", *PROVIDERS, "none")
# What a container lets its programs do, within it.
_OPEN_IN_DOCKER = frozenset(
    {"write to a device", "start a process", "ask the kernel about its networks"}
)
_NONE = (
    "`--sandbox none` runs model-written code without any confinement and must be asked for by name"
)
_HINTS = {
    "linux": f"install bubblewrap, or open user namespaces to this user; {_NONE}",
    "win32": "run rlm-rag in WSL, or take `--sandbox docker` or a provider; `--sandbox job` bounds "
    f"memory and processes alone, {_NONE}",
}

_PROBE_SECONDS = 15
_PROBE_LIMITS = (
    WorkerLimits(memory_bytes=probe.JOB_MEMORY_BYTES) if sys.platform == "win32" else WorkerLimits()
)
_PRINTED_BYTES = 1 << 20
_FLAGS = ("-s", "-P", "-S", "-B")
_WORKS = "the corpus and the scratch folder: work"

_lock = threading.Lock()
_verdicts: dict[str, str] = {}
_probing: list[tuple[subprocess.Popen[bytes], Job | None]] = []


def choose_layer(name: str = "auto", *, image: str = DEFAULT_IMAGE) -> Isolation:
    """Return the layer called `name`; `auto` is the strongest that passes its self-test here.

    `docker`, over `image`, and the providers are never chosen unless named; a provider's
    isolation is its own, and not tested.

    A self-test runs once a process, at the first use of its layer, and takes about 50 ms.
    `none` confines nothing, and `job` next to nothing: neither is chosen unless named.

    Raises:
        UsageError: there is no layer of that name.
        MissingExtraError: a provider's SDK is not installed.
        SandboxUnavailableError: no layer asked for passed; says what each self-test found.
    """
    if name not in LAYER_NAMES:
        raise UsageError(f"no sandbox is called {name!r}", hint=f"one of {', '.join(LAYER_NAMES)}")
    if name == "none":
        return Unconfined()
    if name in PROVIDERS:
        return open_cloud(name)
    asked = _CONFINING if name == "auto" else (_BY_NAME.get(name) or Docker(image),)
    found = []
    for layer in asked:
        against = (_weakness(layer) if name == "auto" else "") or verdict(layer)
        if not against:
            return layer
        found.append(f"{layer.name}: {against}")
    raise _none_works(name, "; ".join(found), image)


def _weakness(layer: Layer) -> str:
    """Return what keeps a layer that works from being chosen unless it is named; "" if nothing."""
    return layer.weakness if isinstance(layer, JobObject) else ""


def _none_works(name: str, found: str, image: str) -> SandboxUnavailableError:
    if name == "docker":
        return SandboxUnavailableError(
            f"no container starts ({found})",
            hint=f"start the engine, or get the image: docker pull {image}",
        )
    if name != "auto":
        hint = "`--sandbox auto` takes the strongest that does, and `rlm-rag doctor` names it"
        return SandboxUnavailableError(
            f"the sandbox {name} does not work on this machine ({found})",
            hint=_HINTS["win32"] if sys.platform == "win32" else hint,
        )
    return SandboxUnavailableError(
        f"no sandbox works on this machine ({found})",
        hint=_HINTS.get(sys.platform, _HINTS["linux"]),
    )


def verdict(layer: Layer) -> str:
    """Return what the layer's self-test found wrong, "" where it passed; kept for the process."""
    with _lock:
        key = layer.image if isinstance(layer, Docker) else layer.name
        if key not in _verdicts:
            _verdicts[key] = "; ".join(self_test(layer))
        return _verdicts[key]


def verdicts() -> dict[str, str]:
    """Return the verdict on each layer of this system by its name, strongest first."""
    return {layer.name: verdict(layer) for layer in _CONFINING}


def self_test(layer: Layer) -> list[str]:
    """Return what `layer` does not hold against, or why it does not start; empty where it holds.

    Raises:
        SandboxUnavailableError: the temporary folder has no room for the test, or it was
            abandoned.
    """
    with _canaries() as canaries:
        try:
            printed, said = _probe(layer, canaries)
        except _AbandonedError:
            raise
        except (SandboxUnavailableError, OSError, subprocess.TimeoutExpired) as error:
            return [str(error)]
    in_docker = isinstance(layer, Docker)
    open_to = _OPEN_IN_DOCKER if in_docker else frozenset()
    # A container's system is Linux, whatever its host's is.
    system = "linux" if in_docker else sys.platform
    tried = probe.attempts(canaries.arguments(CORPUS_INSIDE), system)
    wanted = [f"{name}: blocked" for name in tried if name not in open_to]
    told = [line for line in printed if line.partition(":")[0] not in open_to]
    if told == [*wanted, _WORKS]:
        return []
    bad = [line for line in told if line.endswith(": OPEN")]
    return bad or [said or "the probe did not finish"]


@dataclass(frozen=True, slots=True)
class _Canaries:
    folder: Path
    port: int
    abstract: str

    @property
    def packed(self) -> Path:
        return self.folder / "corpus"

    def arguments(self, corpus: str) -> list[str]:
        # With slashes, so that a container of a Windows host does not take one for a mere name.
        folder = self.folder.as_posix()
        paths = [f"{folder}/canary", str(self.port), f"{folder}/socket"]
        return [str(os.getpid()), *paths, self.abstract, corpus]


@contextlib.contextmanager
def _canaries() -> Iterator[_Canaries]:
    """Lay out what a probe must not reach: files, and listeners of three kinds."""
    abstract = f"rlm-rag-{secrets.token_hex(8)}"
    with contextlib.ExitStack() as stack:
        folder = _canary_folder(stack)
        port = 0
        addresses: list[tuple[int, Any]] = [(socket.AF_INET, ("127.0.0.1", 0))]
        if sys.platform == "linux":
            # Named through a descriptor, since a socket's path holds no more than 107 bytes.
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, handle)
            addresses.append((socket.AF_UNIX, f"/proc/self/fd/{handle}/socket"))
            addresses.append((socket.AF_UNIX, f"\0{abstract}"))
        for family, address in addresses:
            listener = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
            listener.bind(address)
            listener.listen(8)
            if family == socket.AF_INET:
                port = listener.getsockname()[1]
        yield _Canaries(folder, port, abstract)


def _canary_folder(stack: contextlib.ExitStack) -> Path:
    try:
        scratch = ScratchFolder()
        stack.callback(scratch.close)
        (scratch.path / "canary").write_text("canary")
        (scratch.path / "corpus").write_bytes(b"corpus")
        (scratch.path / "corpus").chmod(0o600)
    except OSError as error:
        raise SandboxUnavailableError(
            f"the sandbox cannot be tested: {tempfile.gettempdir()} cannot be written "
            f"({error.strerror})",
            hint="free space there, or set TMPDIR to a folder with more room",
        ) from error
    return scratch.path


def _probe(layer: Layer, canaries: _Canaries) -> tuple[list[str], str]:
    """Run the probe under `layer`; return the lines it printed, and what its launcher said."""
    source = Path(probe.__file__).read_text("utf-8")

    def program(sources: str, python: str) -> list[str]:
        corpus = CORPUS_INSIDE if sources == SOURCES_INSIDE else str(canaries.packed)
        return [python, *_FLAGS, "-c", source, *canaries.arguments(corpus)]

    with report_file() as info:
        launch = layer.launch(
            program,
            packed_path=str(canaries.packed),
            limits=_PROBE_LIMITS,
            info_fd=info.fileno(),
        )
        try:
            stdout, stderr = _run_probe(launch, info.fileno())
        finally:
            if launch.stop:
                run_stop(launch)
            if launch.folder is not None:
                launch.folder.close()
    said = stderr.decode("utf-8", "replace").strip().splitlines()
    return stdout.decode("utf-8", "replace").splitlines(), said[-1] if said else ""


def _run_probe(launch: Launch, info_fd: int) -> tuple[bytes, bytes]:
    with report_file() as printed, report_file() as said:
        with Path(os.devnull).open("rb") as nothing:
            ends = (nothing.fileno(), printed.fileno(), said.fileno())
            process, job = start_process(launch, ends, info_fd)
        probing = (process, job)
        _probing.append(probing)
        try:
            process.wait(timeout=_PROBE_SECONDS)
        except BaseException:
            _kill(process, job)
            process.wait()
            raise
        finally:
            if job is not None:
                job.close()
        texts = [_text(file) for file in (printed, said)]
    if probing not in _probing:
        raise _AbandonedError("the sandbox's self-test was interrupted")
    _probing.remove(probing)
    return texts[0], texts[1]


def _text(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read(_PRINTED_BYTES)


class _AbandonedError(SandboxUnavailableError):
    """Says nothing about the layer."""


def abandon_self_test() -> None:
    """End the self-tests that run in other threads now, for a process that is interrupted."""
    while _probing:
        process, job = _probing.pop()
        if process.returncode is None:
            _kill(process, job)


def _kill(process: subprocess.Popen[bytes], job: Job | None) -> None:
    if job is not None:
        job.end()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
