"""Confinement by Landlock and seccomp alone, where a machine allows no namespaces."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from rlm_rag.errors import SandboxUnavailableError
from rlm_rag.sandbox.boot import SOURCE_ROOT
from rlm_rag.sandbox.confine.identity import worker_identity
from rlm_rag.sandbox.confine.launch_line import launch_line
from rlm_rag.sandbox.confine.libraries import library_files
from rlm_rag.sandbox.confine.linked import link_libraries
from rlm_rag.sandbox.confine.sealed import sealed
from rlm_rag.sandbox.confine.view import (
    DEVICES,
    Launch,
    Program,
    View,
    WorkerLimits,
    environment_on_host,
    worker_view,
)
from rlm_rag.scratch import ScratchFolder

# Nobody can make a folder there, root included.
NOWHERE = "/proc/nonexistent"
# The first that refuses to truncate; the filter refuses what the later ones would.
_LOWEST_VERSION = 3


class Landlock:
    """The layer `landlock`: needs Linux 6.2; its worker writes nothing at all.

    Paths are the host's own: their existence and modes can be asked for, their contents not.
    """

    name = "landlock"

    def launch(
        self, program: Program, *, packed_path: str | None, limits: WorkerLimits, info_fd: int
    ) -> Launch:
        """Return the launcher's command that starts `program`.

        Raises:
            SandboxUnavailableError: this is not Linux.
        """
        del info_fd
        if sys.platform != "linux":
            raise SandboxUnavailableError("Landlock exists on Linux alone")
        view = worker_view(packed_path, limits.packages)
        folder = ScratchFolder()
        link_libraries(folder.path, library_files(limits.packages))
        sources = [*(mount.source for mount in view.mounts), str(folder.path)]
        identity = worker_identity(sources, needs=0, whole_path=True)
        command = sealed(
            program(str(SOURCE_ROOT), view.python),
            readable=[*_shown(view), str(folder.path), *DEVICES],
            listed=_listed(view),
            writable=("/dev/null",),
            landlock=_LOWEST_VERSION,
            identity=identity,
        )
        argv = launch_line(view.python, ["plain", "/", "run", *command])
        corpus = None if packed_path is None else os.path.realpath(packed_path)
        return Launch(
            tuple(argv),
            environment_on_host(NOWHERE),
            corpus,
            folder,
            reports_pid=False,
            libraries=str(folder.path),
            kept=identity.kept,
        )


def _shown(view: View) -> Iterator[str]:
    for mount in view.mounts:
        yield from _without(mount.source, view.hidden)


@cache
def _without(path: str, hidden: tuple[str, ...]) -> tuple[str, ...]:
    """`path`, or all in it apart from `hidden`, since Landlock cannot take back a folder's part."""
    if path in hidden:
        return ()
    if not _holds(path, hidden):
        return (path,)
    inside = (_without(str(entry), hidden) for entry in sorted(Path(path).iterdir()))
    return tuple(each for paths in inside for each in paths)


def _listed(view: View) -> Iterator[str]:
    """Folders whose names alone may be read: an import looks for its file in its folder's list."""
    yield str(SOURCE_ROOT / "rlm_rag")
    for mount in view.mounts:
        if _holds(mount.source, view.hidden):
            yield mount.source


def _holds(path: str, hidden: tuple[str, ...]) -> bool:
    return any(each.startswith(f"{path}/") for each in hidden)
