"""How long a new process takes to say anything."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from benchmarks.figures import Figure, Section, interleaved
from benchmarks.plan import Plan

_BARE = "python -c pass"
_CLICK = 'python -c "import click"'


def measure(plan: Plan) -> tuple[Section, ...]:
    """Time `rlm-rag --help` and `import rlm_rag` beside the least that they could cost."""
    commands = {
        _BARE: [sys.executable, "-c", "pass"],
        _CLICK: [sys.executable, "-c", "import click"],
        "import rlm_rag": [sys.executable, "-c", "import rlm_rag"],
        "rlm-rag --help": [*command_line(), "--help"],
        "rlm-rag ask --help": [*command_line(), "ask", "--help"],
    }
    actions = {name: partial(_milliseconds, argv) for name, argv in commands.items()}
    taken = interleaved(plan.processes, actions)
    targets = {"rlm-rag --help": 150.0}
    figures = tuple(
        Figure(
            name=name,
            unit="ms",
            values=tuple(values),
            base=None if name == _BARE else _BARE,
            at_most=targets.get(name),
        )
        for name, values in taken.items()
    )
    return (Section("Cold start (new process, warm file cache)", figures),)


def command_line() -> list[str]:
    """Return the installed `rlm-rag` of this interpreter, or the module where there is none."""
    script = Path(sys.executable).with_name("rlm-rag")
    return [str(script)] if script.exists() else [sys.executable, "-m", "rlm_rag.cli.main"]


def _milliseconds(argv: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - started) * 1000
