"""Confinement by Linux namespaces of its own, with no program but the interpreter."""

from __future__ import annotations

import sys

from rlm_rag.errors import SandboxUnavailableError
from rlm_rag.sandbox.confine.identity import ADMINISTER, CHOWN, worker_identity
from rlm_rag.sandbox.confine.launch_line import launch_line
from rlm_rag.sandbox.confine.sealed import sealed
from rlm_rag.sandbox.confine.view import (
    CORPUS_INSIDE,
    DEVICES,
    SCRATCH_INSIDE,
    SOURCES_INSIDE,
    Launch,
    Program,
    WorkerLimits,
    inside_environment,
    worker_view,
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
        view = worker_view(packed_path, limits.packages)
        identity = worker_identity(
            (mount.source for mount in view.mounts), needs=CHOWN | ADMINISTER
        )
        steps = ["info", str(info_fd), "spaces", "own" if identity.user else "new"]
        for mount in view.mounts:
            steps += ["bind", mount.source, mount.target]
        for folder in view.hidden:
            steps += ["hide", folder]
        for path, target in view.links:
            steps += ["link", path, target]
        for device in DEVICES:
            steps += ["device", device]
        size, inodes = str(limits.scratch_bytes), str(limits.scratch_inodes)
        steps += ["scratch", SCRATCH_INSIDE, size, inodes]
        command = sealed(
            program(SOURCES_INSIDE, view.python),
            readable=("/",),
            writable=(SCRATCH_INSIDE, "/dev/null"),
            landlock=1,
            identity=identity,
            scratch=SCRATCH_INSIDE,
        )
        steps += ["run", *command]
        corpus = None if packed_path is None else CORPUS_INSIDE
        argv = launch_line(view.python, steps)
        return Launch(tuple(argv), inside_environment(), corpus, kept=identity.kept)
