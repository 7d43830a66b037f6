"""A worker in a container, over the streams of `docker run -i`."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rlm_rag.errors import SandboxUnavailableError, UsageError
from rlm_rag.sandbox.boot import SOURCE_ROOT, WORKER_FILES
from rlm_rag.sandbox.confine.libraries import library_files
from rlm_rag.sandbox.confine.view import (
    CORPUS_INSIDE,
    LIBRARIES_INSIDE,
    SCRATCH_INSIDE,
    SOURCES_INSIDE,
    Launch,
    Program,
    WorkerLimits,
    inside_environment,
)

DEFAULT_IMAGE = "python:3.13-slim"
_NOBODY = 65534
# What the client needs to find its engine; nothing else of the environment is its concern.
_CLIENT_VARIABLES = (
    "PATH",
    "HOME",
    "XDG_RUNTIME_DIR",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_CERT_PATH",
    "DOCKER_TLS_VERIFY",
)
_OPTIONS = (
    "--interactive",
    "--rm",
    # A pull would wait on the network, and run what nobody looked at.
    *("--pull", "never"),
    *("--network", "none"),
    *("--ipc", "none"),
    *("--cap-drop", "ALL"),
    *("--security-opt", "no-new-privileges"),
    "--read-only",
    # The frames would be written to the engine's log, answers and all.
    *("--log-driver", "none"),
    *("--hostname", "sandbox"),
    *("--workdir", SCRATCH_INSIDE),
    *("--entrypoint", ""),
)


@dataclass(frozen=True, slots=True)
class Docker:
    """The layer `docker`: the interpreter and its packages are the image's (Python 3.11 or later).

    It needs an engine on this machine, since files are bound, and the image, since none is
    pulled. `executable` is a program that understands `docker run`.
    """

    image: str = DEFAULT_IMAGE
    executable: str = "docker"

    @property
    def name(self) -> str:
        return "docker"

    def launch(
        self, program: Program, *, packed_path: str | None, limits: WorkerLimits, info_fd: int
    ) -> Launch:
        """Return the `docker run` command that starts `program`.

        Raises:
            SandboxUnavailableError: there is no such executable.
            UsageError: packages were named, or the image's name is an option.
        """
        del info_fd
        if limits.packages:
            raise UsageError(
                "the packages of a docker sandbox are those of its image",
                hint="name an image that has them: --sandbox-image",
            )
        if not self.image or self.image.startswith("-"):
            raise UsageError(f"{self.image!r} is not the name of an image")
        client = shutil.which(self.executable)
        if client is None:
            raise SandboxUnavailableError(f"{self.executable} is not installed")
        name = f"rlm-rag-{secrets.token_hex(8)}"
        argv = [client, "run", "--name", name, *_OPTIONS]
        argv += ["--user", _user(packed_path), *_bounds(limits)]
        for variable, value in inside_environment().items():
            argv += ["--env", f"{variable}={value}"]
        for source, target in _mounts(packed_path):
            argv += ["--mount", f"type=bind,readonly,src={source},dst={target}"]
        # Without -S, the image's own packages are importable.
        command = [part for part in program(SOURCES_INSIDE, "python3") if part != "-S"]
        argv += [self.image, *command]
        return Launch(
            tuple(argv),
            _client_environment(os.environ),
            None if packed_path is None else CORPUS_INSIDE,
            reports_pid=False,
            stop=(client, "rm", "--force", name),
        )


def _bounds(limits: WorkerLimits) -> Iterator[str]:
    # The engine kills what passes --memory; below that, the limit on data is a MemoryError.
    yield from ("--memory", str(2 * limits.memory_bytes))
    yield from ("--memory-swap", str(2 * limits.memory_bytes))
    soft, hard = limits.memory_bytes, limits.memory_bytes + limits.reserved_bytes
    yield from ("--ulimit", f"data={soft}:{hard}")
    yield from ("--ulimit", f"nofile={limits.open_files}")
    yield from ("--ulimit", f"fsize={limits.scratch_bytes}")
    yield from ("--ulimit", "core=0")
    yield from ("--pids-limit", str(limits.processes))
    size = f"size={limits.scratch_bytes},nr_inodes={limits.scratch_inodes}"
    yield from ("--tmpfs", f"{SCRATCH_INSIDE}:rw,noexec,nosuid,nodev,mode=1777,{size}")


def _mounts(packed_path: str | None) -> Iterator[tuple[str, str]]:
    for name in WORKER_FILES:
        yield _bindable(SOURCE_ROOT / name), f"{SOURCES_INSIDE}/{name}"
    for path, name in library_files(()):
        yield _bindable(Path(path)), f"{LIBRARIES_INSIDE}/{name}"
    if packed_path is not None:
        yield _bindable(Path(packed_path).resolve()), CORPUS_INSIDE


def _bindable(path: Path) -> str:
    text = str(path)
    if any(mark in text for mark in ',"\n'):
        raise SandboxUnavailableError(f"docker cannot bind a path with a comma or quote: {text}")
    return text


def _user(packed_path: str | None) -> str:
    """Return who the worker is: nobody, or where only its owner may read the corpus, the owner."""
    if packed_path is None:
        return f"{_NOBODY}:{_NOBODY}"
    status = Path(packed_path).stat()
    if status.st_mode & 0o004:
        return f"{_NOBODY}:{_NOBODY}"
    if status.st_uid != 0:
        return f"{status.st_uid}:{_NOBODY}"
    # Root inside would be root: the file's private folder keeps others away from it instead.
    Path(packed_path).chmod(0o444)
    return f"{_NOBODY}:{_NOBODY}"


def _client_environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: environ[name] for name in _CLIENT_VARIABLES if name in environ}
