"""The layer of Windows: a job object, which is weak and so must be asked for by name."""

from __future__ import annotations

import sys
from dataclasses import replace

from rlm_rag.errors import SandboxUnavailableError
from rlm_rag.sandbox.confine.unconfined import Unconfined
from rlm_rag.sandbox.confine.view import Launch, Program, WorkerLimits


class JobObject:
    """The layer `job`: bounds memory and processes; files and network stay open."""

    name = "job"
    weakness = "it is weak: it bounds memory and processes, and leaves files and network open"

    def launch(
        self, program: Program, *, packed_path: str | None, limits: WorkerLimits, info_fd: int
    ) -> Launch:
        """Return the command that starts `program`, and what its job allows it.

        Raises:
            SandboxUnavailableError: this is not Windows.
        """
        if sys.platform != "win32":
            raise SandboxUnavailableError("job objects exist on Windows alone")
        launch = Unconfined().launch(
            program, packed_path=packed_path, limits=limits, info_fd=info_fd
        )
        return replace(launch, job_memory_bytes=limits.memory_bytes)
