"""Confinement by Linux namespaces of its own, with no program but the interpreter."""

from __future__ import annotations

import sys

from rlm_rag.errors import SandboxUnavailableError
from rlm_rag.sandbox.confine.launch_line import launch_line
from rlm_rag.sandbox.confine.rooted import rooted
from rlm_rag.sandbox.confine.view import (
    DEVICES,
    SCRATCH_INSIDE,
    Launch,
    Program,
    WorkerLimits,
    inside_environment,
)


class Namespaces:
    """The layer `namespaces`: needs Linux 5.12 and user namespaces open to the user."""

    name = "namespaces"

    def launch(
        self, program: Program, *, packed_path: str | None, limits: WorkerLimits, info_fd: int
    ) -> Launch:
        """Return the launcher's command that starts `program`.

        Raises:
            SandboxUnavailableError: this is not Linux.
        """
        if sys.platform != "linux":
            raise SandboxUnavailableError("namespaces exist on Linux alone")
        worker = rooted(program, packed_path, limits)
        view = worker.view
        steps = ["info", str(info_fd), "spaces", "own" if worker.identity.user else "new"]
        for mount in view.mounts:
            steps += ["bind", mount.source, mount.target]
        for folder in view.hidden:
            steps += ["hide", folder]
        for path, target in view.links:
            steps += ["link", path, target]
        for device in DEVICES:
            steps += ["device", device]
        size, inodes = str(limits.scratch_bytes), str(limits.scratch_inodes)
        steps += ["scratch", SCRATCH_INSIDE, size, inodes, "run", *worker.command]
        return Launch(
            tuple(launch_line(view.python, steps)),
            inside_environment(),
            worker.corpus,
            kept=worker.identity.kept,
        )
