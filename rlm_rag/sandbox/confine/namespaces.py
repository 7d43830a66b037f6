"""Confinement by Linux namespaces of its own, with no program but the interpreter."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rlm_rag.errors import SandboxUnavailableError
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

_LAUNCHER = str(Path(__file__).with_name("launch.py"))


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
        argv = [view.python, "-I", "-S", "-B", _LAUNCHER]
        argv += ["parent", str(os.getpid()), "info", str(info_fd)]
        for mount in view.mounts:
            argv += ["bind", mount.source, mount.target]
        for folder in view.hidden:
            argv += ["hide", folder]
        for path, target in view.links:
            argv += ["link", path, target]
        for device in DEVICES:
            argv += ["device", device]
        size, inodes = str(limits.scratch_bytes), str(limits.scratch_inodes)
        argv += ["scratch", SCRATCH_INSIDE, size, inodes]
        argv += ["run", *program(SOURCES_INSIDE, view.python)]
        corpus = None if packed_path is None else CORPUS_INSIDE
        return Launch(tuple(argv), inside_environment(), corpus)
