"""Confinement by the `bwrap` program, version 0.8 or later."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from rlm_rag.errors import SandboxUnavailableError
from rlm_rag.sandbox.confine.rooted import rooted
from rlm_rag.sandbox.confine.view import (
    DEVICES,
    SCRATCH_INSIDE,
    Launch,
    Program,
    View,
    WorkerLimits,
    inside_environment,
)

# The worker is its namespace's first process, so that it dies with all that it started.
_OPTIONS = (
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--as-pid-1",
    "--die-with-parent",
    "--new-session",
    "--clearenv",
    *("--cap-drop", "ALL"),
    # For the worker's last step before its program: to bound the scratch folder's files, to drop.
    *("--cap-add", "CAP_SYS_ADMIN"),
    *("--cap-add", "CAP_SETPCAP"),
    *("--hostname", "sandbox"),
)
_NEW_USER_SPACE = ("--unshare-user", "--uid", "1000", "--gid", "1000")
_BECOME_ANOTHER = (
    *("--cap-add", "CAP_SETUID"),
    *("--cap-add", "CAP_SETGID"),
    *("--cap-add", "CAP_CHOWN"),
    *("--cap-add", "CAP_DAC_READ_SEARCH"),
)


class Bubblewrap:
    """The layer `bwrap`."""

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
        worker = rooted(program, packed_path, limits, beneath_bwrap=True)
        user = _BECOME_ANOTHER if worker.identity.user else _NEW_USER_SPACE
        argv = [path, *_OPTIONS, *user, "--info-fd", str(info_fd)]
        for name, value in inside_environment().items():
            argv += ["--setenv", name, value]
        argv += _file_system(worker.view, limits)
        argv += ["--chdir", SCRATCH_INSIDE, "--", *worker.command]
        return Launch(
            tuple(argv),
            inside_environment(),
            worker.corpus,
            # Its monitor would hold the worker's first three descriptors open, and no others.
            takes_ends=True,
            kept=worker.identity.kept,
        )


def _file_system(view: View, limits: WorkerLimits) -> Iterator[str]:
    # What bwrap makes on its own way is open to its owner alone.
    places = [*(mount.target for mount in view.mounts), *DEVICES]
    for folder in sorted({str(above) for place in places for above in Path(place).parents}):
        yield from ("--dir", folder)
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
