"""Confinement by the `bwrap` program, version 0.8 or later."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from rlm_rag.errors import SandboxUnavailableError
from rlm_rag.sandbox.confine.view import (
    CORPUS_INSIDE,
    DEVICES,
    SCRATCH_INSIDE,
    SOURCES_INSIDE,
    Launch,
    Program,
    View,
    WorkerLimits,
    inside_environment,
    worker_view,
)

# Without --unshare-user the namespaces of a host that is root would stay owned by the host's.
# The worker is its namespace's first process, so that it dies with all that it started.
_OPTIONS = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--disable-userns",
    "--as-pid-1",
    "--die-with-parent",
    "--new-session",
    "--clearenv",
    *("--cap-drop", "ALL"),
    *("--uid", "1000"),
    *("--gid", "1000"),
    *("--hostname", "sandbox"),
)


class Bubblewrap:
    """The layer `bwrap`; it cannot bound the number of files in the scratch folder."""

    name = "bwrap"

    def launch(
        self, program: Program, *, packed_path: str | None, limits: WorkerLimits, info_fd: int
    ) -> Launch:
        """Return the `bwrap` command that starts `program`.

        Raises:
            SandboxUnavailableError: `bwrap` is not on PATH.
        """
        path = shutil.which("bwrap")
        if path is None:
            raise SandboxUnavailableError("bwrap is not installed")
        view = worker_view(packed_path, limits.packages)
        argv = [path, *_OPTIONS, "--info-fd", str(info_fd)]
        for name, value in inside_environment().items():
            argv += ["--setenv", name, value]
        argv += _file_system(view, limits)
        argv += ["--chdir", SCRATCH_INSIDE, "--", *program(SOURCES_INSIDE, view.python)]
        corpus = None if packed_path is None else CORPUS_INSIDE
        return Launch(tuple(argv), inside_environment(), corpus)


def _file_system(view: View, limits: WorkerLimits) -> Iterator[str]:
    for mount in view.mounts:
        yield from ("--ro-bind", mount.source, mount.target)
    for folder in view.hidden:
        yield from ("--tmpfs", folder, "--remount-ro", folder)
    for path, target in view.links:
        yield from ("--symlink", target, path)
    for device in DEVICES:
        yield from ("--dev-bind", device, device)
    yield from ("--perms", "0700", "--size", str(limits.scratch_bytes), "--tmpfs", SCRATCH_INSIDE)
    yield from ("--remount-ro", "/")
