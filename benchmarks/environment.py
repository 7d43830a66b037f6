"""The state in which things are measured: compiled, as after an installation, and told apart."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import rlm_rag

_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"


@contextmanager
def compiled() -> Iterator[None]:
    """Let this process and its children keep what they compile, as an installed package has it.

    Without it every new process, and every worker, would compile its sources again.
    """
    variable, flag = os.environ.pop(_NO_BYTECODE, None), sys.dont_write_bytecode
    sys.dont_write_bytecode = False
    try:
        yield
    finally:
        sys.dont_write_bytecode = flag
        if variable is not None:
            os.environ[_NO_BYTECODE] = variable


def machine() -> dict[str, Any]:
    """Describe the machine, with its load average of the last minute."""
    described: dict[str, Any] = {
        "rlm-rag": rlm_rag.__version__,
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "cores": os.cpu_count(),
    }
    if hasattr(os, "getloadavg"):
        described["load"] = round(os.getloadavg()[0], 1)
    return described
