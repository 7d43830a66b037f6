"""git run as a reader of foreign repositories: nothing that one configures is run by it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import IO

from rlm_rag.shown import with_bytes

_CONFIG = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "core.alternateRefsCommand=",
    "credential.helper=",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    # A tree of another owner is only read, so its ownership is no danger.
    "safe.directory=*",
    "safe.bareRepository=all",
)


class GitFailure(Exception):
    """git ended with an error; the text is the first line of what it said."""


def git_program() -> str | None:
    """Return where git is installed, or None."""
    return shutil.which("git")


def git_outputs(
    git: str,
    folder: str,
    *commands: Sequence[str],
    protocols: str = "",
    heard: list[bytes] | None = None,
) -> list[bytes]:
    """Run git commands in `folder`, side by side, and return what each wrote.

    `protocols` are those that they may open, as `GIT_ALLOW_PROTOCOL` lists them. What
    they said on standard error goes to `heard`.

    Raises:
        GitFailure: one ended with an error; the others are ended.
        OSError: git could not be run.
    """
    started: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            started.append(start_git(git, folder, command, protocols=protocols))
        return [git_output(process, heard=heard) for process in started]
    finally:
        for process in started:
            end_git(process)


def start_git(
    git: str,
    folder: str,
    arguments: Sequence[str],
    *,
    protocols: str = "",
    stdin: int | IO[bytes] = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start git in `folder`, its output in pipes.

    Raises:
        OSError: it could not be run.
    """
    return subprocess.Popen(
        [git, "--no-pager", *(part for item in _CONFIG for part in ("-c", item)), *arguments],
        cwd=folder,
        env=git_environment(os.environ, protocols),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # An interrupt of the terminal is ours to answer.
        start_new_session=os.name == "posix",
    )


def end_git(process: subprocess.Popen[bytes]) -> None:
    """Make sure that a started git, and what it started, runs no more; idempotent."""
    if process.poll() is None:
        try:
            if os.name == "posix":
                os.killpg(process.pid, 9)
            else:
                process.kill()
        except ProcessLookupError:
            pass
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def git_environment(environ: Mapping[str, str], protocols: str = "") -> dict[str, str]:
    """Return the variables that git is run with: none that names another repository or program."""
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith(("GIT_", "SSH_ASKPASS"))
    }
    return kept | {
        # No fetch of missing objects: its transport could be a command of the repository.
        "GIT_ALLOW_PROTOCOL": protocols,
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
        "LC_ALL": "C",
    }


def printable_path(relative: str) -> str:
    """Write the bytes of a name that are no UTF-8 as `\\xNN`."""
    return with_bytes(relative)


def split_names(output: bytes) -> list[str]:
    """Return the names that git ends with NUL."""
    return os.fsdecode(output).removesuffix("\0").split("\0") if output else []


def git_output(
    process: subprocess.Popen[bytes],
    *,
    seconds: float | None = None,
    heard: list[bytes] | None = None,
) -> bytes:
    """Wait for a started git, and return what it wrote; what it said as well goes to `heard`.

    Raises:
        GitFailure: it ended with an error.
        subprocess.TimeoutExpired: it runs still after `seconds`; ask again, or end it.
    """
    output, errors = process.communicate(timeout=seconds)
    if process.returncode != 0:
        raise GitFailure(_first_line(errors) or f"it ended with {process.returncode}")
    if heard is not None:
        heard.append(errors)
    return output


def _first_line(errors: bytes) -> str:
    lines: Sequence[str] = errors.decode("utf-8", "replace").strip().splitlines()
    fatal = [line for line in lines if line.startswith(("fatal:", "error:"))]
    return (fatal or lines or [""])[0].removeprefix("fatal: ").removeprefix("error: ")[:300]
