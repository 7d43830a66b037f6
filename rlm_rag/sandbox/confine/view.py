"""What a worker may see: the interpreter, its own sources, the packed corpus, and a scratch folder.

Every layer builds the same view from this description, so that a worker cannot tell them apart.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from rlm_rag.sandbox.boot import SOURCE_ROOT, WORKER_ENVIRONMENT, WORKER_FILES
from rlm_rag.sandbox.confine.libraries import library_files
from rlm_rag.scratch import ScratchFolder

SOURCES_INSIDE = "/worker"
CORPUS_INSIDE = "/corpus.packed"
LIBRARIES_INSIDE = "/libraries"
SCRATCH_INSIDE = "/scratch"
# What an interpreter and the worker take before a block does anything, with as much to spare.
LEAST_MEMORY_BYTES = 64 << 20
# Not /dev/zero: a shared map of it is memory that no limit counts.
DEVICES = ("/dev/null", "/dev/random", "/dev/urandom")

Program = Callable[[str, str], list[str]]
"""(folder of the worker's sources, interpreter), both as seen inside, to a command line."""


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """What one worker may use of the machine.

    `memory_bytes` bounds private memory (RLIMIT_DATA: RLIMIT_AS would count the mapped corpus);
    `processes` counts threads too; `packages` are installed packages that model code may import,
    by name. `reserved_bytes` come on top of the memory, so that a worker can report what a block
    ran out of it for.
    """

    memory_bytes: int = 4 << 30
    scratch_bytes: int = 256 << 20
    scratch_inodes: int = 10_000
    processes: int = 256
    open_files: int = 256
    packages: tuple[str, ...] = ()
    reserved_bytes: int = 64 << 20


@dataclass(frozen=True, slots=True)
class Mount:
    """One file or folder of the host, bound read-only at `target`."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class View:
    """The whole file system of a worker, parents before children.

    `hidden` are folders inside mounts that appear empty; `links` are (path, what it points to).
    """

    mounts: tuple[Mount, ...]
    hidden: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    python: str


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start one worker: the command, and what its host must know of it.

    `corpus` is the packed file's path as the worker sees it; `folder` is a scratch folder on
    the host, to be closed after the worker's end; `reports_pid` says that the launcher writes
    `{"child-pid": n}` to the descriptor it was given, the worker being another process;
    `takes_ends` says that the worker is given the numbers of its stdin and stdout as its last
    arguments, and that no process between holds either open; `libraries` is the folder of
    packages as the worker sees it; `stop` is a command that ends a worker which is no process of
    this host, and is limited by its own command then; `kept` is the mask of capabilities that a
    sealed worker keeps, None where it is not sealed; `job_memory_bytes` bounds the private memory
    of a worker of Windows, and it to one process, 0 where nothing does.
    """

    argv: tuple[str, ...]
    environment: dict[str, str]
    corpus: str | None
    folder: ScratchFolder | None = None
    reports_pid: bool = True
    takes_ends: bool = False
    libraries: str = LIBRARIES_INSIDE
    stop: tuple[str, ...] = ()
    kept: int | None = None
    job_memory_bytes: int = 0


class Layer(Protocol):
    """One way to confine a worker."""

    @property
    def name(self) -> str:
        """The name by which it is asked for, and shown by `doctor` and the trace."""
        ...

    def launch(
        self, program: Program, *, packed_path: str | None, limits: WorkerLimits, info_fd: int
    ) -> Launch:
        """Return how to start `program`; nothing is started yet.

        Raises:
            SandboxUnavailableError: this machine lacks what the layer needs.
        """
        ...


def report_file() -> BinaryIO:
    """Return a new file for `info_fd`, in memory where there are such, so that no disk is needed.

    No pipe: a launcher whose host died would die of it before its worker can notice, and leave
    that waiting for ever.
    """
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("rlm-rag-report"), "w+b")  # noqa: PTH123 a descriptor
    return cast(BinaryIO, tempfile.TemporaryFile())


def inside_environment(scratch: str = SCRATCH_INSIDE) -> dict[str, str]:
    """Return the whole environment of a worker whose scratch folder is `scratch`."""
    return {**WORKER_ENVIRONMENT, "HOME": scratch, "TMPDIR": scratch}


def environment_on_host(scratch: str) -> dict[str, str]:
    """Return the environment of a worker that sees the host's folders, most of them closed.

    The system's time zones would be found and not opened; those of a package `tzdata` can be.
    """
    return {**inside_environment(scratch), "PYTHONTZPATH": ""}


def interpreter() -> str:
    """Return the real path of the interpreter beneath any virtual environment."""
    base = getattr(sys, "_base_executable", None) or sys.executable
    return os.path.realpath(base)


def worker_view(packed_path: str | None, packages: tuple[str, ...] = ()) -> View:
    """Return the view of a worker over `packed_path` (no corpus where it is None).

    Raises:
        MissingExtraError: one of `packages` is not installed.
    """
    fixed = _interpreter_view()
    mounts = [*fixed.mounts, *_source_mounts()]
    for path, name in library_files(packages):
        mounts.append(Mount(path, f"{LIBRARIES_INSIDE}/{name}"))
    if packed_path is not None:
        mounts.append(Mount(os.path.realpath(packed_path), CORPUS_INSIDE))
    return View(tuple(mounts), fixed.hidden, fixed.links, fixed.python)


@cache
def _interpreter_view() -> View:
    python = interpreter()
    wanted = {python, *_standard_library(), *_shared_libraries(), "/etc/ld.so.cache"}
    if python.startswith("/nix/store/"):
        wanted.add("/nix/store")
    kept: list[str] = []
    for path in sorted(wanted):
        if Path(path).exists() and not any(path.startswith(f"{above}/") for above in kept):
            kept.append(path)
    hidden = sorted({str(folder) for path in kept for folder in _package_folders(Path(path))})
    links = [(path, str(Path(path).readlink())) for path in _library_folders() if _is_link(path)]
    if not any(path.startswith("/tmp/") for path in kept):
        links.append(("/tmp", SCRATCH_INSIDE))
    return View(tuple(Mount(path, path) for path in kept), tuple(hidden), tuple(links), python)


def _standard_library() -> set[str]:
    folders = (sysconfig.get_path("stdlib"), sysconfig.get_config_var("DESTSHARED"))
    return {os.path.realpath(folder) for folder in folders if folder}


def _shared_libraries() -> set[str]:
    """The system's library folders, and the libraries beside an interpreter outside /usr."""
    found = {path for path in _library_folders() if Path(path).is_dir() and not _is_link(path)}
    multiarch = sysconfig.get_config_var("MULTIARCH")
    exact = Path("/usr/lib") / multiarch if multiarch else None
    if exact is not None and exact.is_dir():
        found.add(str(exact))
    elif "/usr/lib64" not in found:
        found.add("/usr/lib")
    library = sysconfig.get_config_var("INSTSONAME")
    folder = sysconfig.get_config_var("LIBDIR")
    if library and folder:
        found.add(str(Path(folder) / library))
    if sys.base_prefix not in ("/", "/usr", "/usr/local"):
        found.update(map(str, Path(sys.base_prefix, "lib").glob("*.so*")))
    return found


def _library_folders() -> tuple[str, ...]:
    return ("/lib", "/lib64", "/usr/lib64")


def _is_link(path: str) -> bool:
    return Path(path).is_symlink()


def _package_folders(path: Path) -> Iterator[Path]:
    """Folders of installed packages that a mount of `path` would show."""
    for name in ("site-packages", "dist-packages"):
        for pattern in (name, f"python*/{name}"):
            yield from path.glob(pattern)


def _source_mounts() -> Iterator[Mount]:
    _compile_sources()
    for name in WORKER_FILES:
        source = SOURCE_ROOT / name
        compiled = Path(importlib.util.cache_from_source(str(source)))
        for path in (source, compiled):
            if path.is_file() and path.is_relative_to(SOURCE_ROOT):
                inside = f"{SOURCES_INSIDE}/{path.relative_to(SOURCE_ROOT)}"
                yield Mount(str(path), inside)


@cache
def _compile_sources() -> None:
    """Compile the worker's sources once a process: a worker cannot keep what it compiles."""
    for name in WORKER_FILES:
        source = SOURCE_ROOT / name
        if source.is_file():
            module = name.removesuffix(".py").replace("/", ".")
            SourceFileLoader(module, str(source)).get_code(module)
