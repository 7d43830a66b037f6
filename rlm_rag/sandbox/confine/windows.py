"""The layer of Windows: a job object, which is weak; not run on Windows yet."""

from __future__ import annotations

import sys
from pathlib import Path

from rlm_rag.errors import SandboxUnavailableError
from rlm_rag.sandbox.boot import SOURCE_ROOT
from rlm_rag.sandbox.confine.linked import link_libraries
from rlm_rag.sandbox.confine.view import (
    Launch,
    Program,
    WorkerLimits,
    inside_environment,
    interpreter,
    worker_view,
)
from rlm_rag.scratch import ScratchFolder

_SCRIPT = Path(__file__).with_name("job.py")
_LINE = """\
names = {{"__name__": "job"}}
exec({script!r}, names)
import ctypes
names["enter_job"](ctypes.windll.kernel32, {memory_bytes})
del ctypes, names
exec(compile({code!r}, "<string>", "exec"))
"""


class JobObject:
    """The layer `job`: bounds memory and processes; files and network stay open."""

    name = "job"
    weakness = "it is weak: it bounds memory and processes, and leaves files and network open"

    def launch(
        self, program: Program, *, packed_path: str | None, limits: WorkerLimits, info_fd: int
    ) -> Launch:
        """Return the command of a worker that enters a job of its own before its program.

        Raises:
            SandboxUnavailableError: this is not Windows.
        """
        del info_fd
        if sys.platform != "win32":
            raise SandboxUnavailableError("job objects exist on Windows alone")
        folder = ScratchFolder()
        scratch = folder.path / "worker"
        scratch.mkdir()
        view = worker_view(packed_path, limits.packages)
        libraries = link_libraries(folder.path / "libraries", view)
        return Launch(
            tuple(in_job(program(str(SOURCE_ROOT), interpreter()), limits.memory_bytes)),
            inside_environment(str(scratch)),
            None if packed_path is None else str(Path(packed_path).resolve()),
            folder,
            reports_pid=False,
            libraries=str(libraries),
        )


def in_job(command: list[str], memory_bytes: int) -> list[str]:
    """Return `command`, an interpreter with `-c CODE`, changed to enter a job before CODE."""
    at = command.index("-c") + 1
    script = _SCRIPT.read_text("utf-8")
    line = _LINE.format(script=script, memory_bytes=memory_bytes, code=command[at])
    return [*command[:at], line, *command[at + 1 :]]
