"""The command line of the launcher, which takes a bare interpreter to a worker's place."""

from __future__ import annotations

import marshal
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

_SCRIPT = Path(__file__).with_name("launch.py")


def launch_line(python: str, arguments: Sequence[str]) -> list[str]:
    """Return the command that runs `launch.py` in the interpreter `python` for this process."""
    return [python, "-I", "-S", "-B", "-c", _line(), "parent", str(os.getpid()), *arguments]


@cache
def _line() -> str:
    # Compiled here once, by the same interpreter: each worker's start waits for its launcher.
    code = compile(_SCRIPT.read_bytes(), "<launch>", "exec", dont_inherit=True, optimize=2)
    return f"import marshal\nexec(marshal.loads(bytes.fromhex('{marshal.dumps(code).hex()}')))"
