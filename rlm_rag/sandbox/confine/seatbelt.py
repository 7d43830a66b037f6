"""Confinement on macOS by a profile of its own for `sandbox-exec`; not run on a Mac yet."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from rlm_rag.errors import SandboxUnavailableError
from rlm_rag.sandbox.boot import SOURCE_ROOT
from rlm_rag.sandbox.confine.libraries import library_files
from rlm_rag.sandbox.confine.linked import link_libraries
from rlm_rag.sandbox.confine.view import (
    Launch,
    Program,
    WorkerLimits,
    environment_on_host,
    worker_view,
)
from rlm_rag.scratch import ScratchFolder

_SANDBOX_EXEC = "/usr/bin/sandbox-exec"
# What the system's own libraries and the loader's cache are read from, on macOS 11 to 15.
_SYSTEM = (
    "/usr/lib",
    "/System/Library",
    "/System/Volumes/Preboot/Cryptexes/OS",
    "/private/var/db/dyld",
    "/Library/Preferences/Logging",
)
_DEVICES = ("/dev/null", "/dev/random", "/dev/urandom")


class Seatbelt:
    """The layer `sandbox-exec`: bounds neither memory, threads nor the scratch folder."""

    name = "sandbox-exec"

    def launch(
        self, program: Program, *, packed_path: str | None, limits: WorkerLimits, info_fd: int
    ) -> Launch:
        """Return the `sandbox-exec` command that starts `program`.

        Raises:
            SandboxUnavailableError: this is not macOS.
        """
        del info_fd
        if sys.platform != "darwin":
            raise SandboxUnavailableError("sandbox-exec exists on macOS alone")
        view, files = worker_view(packed_path, limits.packages), library_files(limits.packages)
        folder = ScratchFolder()
        (folder.path / "worker").mkdir(mode=0o700)
        scratch = os.path.realpath(folder.path / "worker")
        libraries = os.path.realpath(link_libraries(folder.path / "libraries", files))
        readable = [*(mount.source for mount in view.mounts), libraries]
        text = profile(view.python, readable=readable, hidden=view.hidden, scratch=scratch)
        argv = [_SANDBOX_EXEC, "-p", text, *program(str(SOURCE_ROOT), view.python)]
        return Launch(
            tuple(argv),
            environment_on_host(scratch),
            None if packed_path is None else os.path.realpath(packed_path),
            folder,
            reports_pid=False,
            libraries=libraries,
        )


def profile(python: str, *, readable: Iterable[str], hidden: Iterable[str], scratch: str) -> str:
    """Return the profile: what is not allowed is denied, and a later rule beats an earlier one.

    The interpreter may be started once, by `sandbox-exec` itself, and cannot fork.
    """
    return "\n".join(
        (
            "(version 1)",
            "(deny default)",
            f"(allow process-exec {_literal(python)})",
            "(allow file-read-metadata)",
            "(allow sysctl-read)",
            "(allow signal (target self))",
            f"(allow file-read-data {_literal('/')} {_literal(str(SOURCE_ROOT / 'rlm_rag'))})",
            *(f"(allow file-read* {_beneath(path)})" for path in (*_SYSTEM, *readable)),
            *(f"(deny file-read-data {_beneath(path)})" for path in hidden),
            *(f"(allow file-read* {_literal(path)})" for path in _DEVICES),
            f"(allow file-write-data {_literal('/dev/null')})",
            f"(allow file-read* file-write* {_beneath(scratch)})",
            "(deny network*)",
            "(deny process-fork)",
            "(deny mach-lookup)",
        )
    )


def _literal(path: str) -> str:
    return f"(literal {_quoted(path)})"


def _beneath(path: str) -> str:
    return f"(subpath {_quoted(path)})"


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
