"""No confinement: the same worker as a plain process, only where asked for by name."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rlm_rag.sandbox.boot import SOURCE_ROOT
from rlm_rag.sandbox.confine.libraries import library_files
from rlm_rag.sandbox.confine.linked import link_libraries
from rlm_rag.sandbox.confine.view import (
    Launch,
    Program,
    WorkerLimits,
    inside_environment,
    interpreter,
)
from rlm_rag.scratch import ScratchFolder

_LAUNCHER = str(Path(__file__).with_name("launch.py"))


class Unconfined:
    """The layer `none`: an empty environment and a scratch folder of its own, nothing more."""

    name = "none"

    def launch(
        self, program: Program, *, packed_path: str | None, limits: WorkerLimits, info_fd: int
    ) -> Launch:
        """Return the command that starts `program` in a new scratch folder."""
        del info_fd
        folder = ScratchFolder()
        scratch = folder.path / "worker"
        scratch.mkdir(mode=0o700)
        libraries = link_libraries(folder.path / "libraries", library_files(limits.packages))
        command = program(str(SOURCE_ROOT), interpreter())
        if sys.platform == "linux":
            plain = [interpreter(), "-I", "-S", "-B", _LAUNCHER, "parent", str(os.getpid())]
            command = [*plain, "plain", str(scratch), "run", *command]
        corpus = None if packed_path is None else str(Path(packed_path).resolve())
        environment = inside_environment(str(scratch))
        if sys.platform == "win32":
            # The interpreter does not start without SYSTEMROOT; texts are UTF-8 there, too.
            root = os.environ.get("SYSTEMROOT", "")
            environment |= {"PYTHONUTF8": "1", "USERPROFILE": str(scratch), "SYSTEMROOT": root}
        return Launch(
            tuple(command),
            environment,
            corpus,
            folder,
            reports_pid=False,
            libraries=str(libraries),
        )
