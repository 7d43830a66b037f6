"""Starting a process of this package that reads stdin and ends with its parent."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from rlm_rag import errors

if TYPE_CHECKING:
    from collections.abc import Callable
    from queue import SimpleQueue

_PR_SET_PDEATHSIG = 1


def command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs `main` of a module of this package, with these arguments.

    The path of modules is passed on as it is here; isolated, so that neither the working
    directory nor the environment can put another module in its place.
    """
    start = (
        "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
        f"from {module} import main; main(*sys.argv[1:])"
    )
    return [sys.executable, "-I", "-c", start, json.dumps(_module_path()), *arguments]


def environment() -> dict[str, str]:
    """Return what the interpreter needs of the environment; keys are none of it."""
    kept = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH", "HOME")
    return {name: os.environ[name] for name in kept if name in os.environ}


def end_with_parent() -> None:
    """Ask Linux to end this process with its parent, should a pattern hold the interpreter."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (OSError, AttributeError):
        # The end of stdin still ends it.
        return


def private_streams() -> tuple[BinaryIO, BinaryIO]:
    """Move a protocol off descriptors 0 and 1, so that nothing else reads or prints there.

    What is printed from then on goes to standard error. One of the three that is closed is
    taken for an empty one.
    """
    # It takes the places of those, so that no stream of ours does.
    while (nothing := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return requests, replies


def hand_over_lines(
    requests: BinaryIO, lines: SimpleQueue[bytes], at_end: Callable[[], object] | None = None
) -> None:
    """Hand over each line; at the end of input, end this process, whatever it is doing.

    `at_end` is called before, while the process goes on with what it is doing.
    """
    status = 1
    try:
        for line in requests:
            lines.put(line)
        if at_end is not None:
            at_end()
        status = 0
    finally:
        os._exit(status)


def _module_path() -> list[str]:
    """Return this process's path of modules, relative entries left out, with this package's."""
    package = str(Path(errors.__file__).resolve().parent.parent)
    known = [entry for entry in sys.path if entry and Path(entry).is_absolute()]
    return known if package in known else [*known, package]
