"""The README's commands and code do what the README shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def fences() -> list[tuple[str, str]]:
    return FENCE.findall(README)


def commands() -> Iterator[tuple[str, str]]:
    """Each `$ command` of the console blocks, with the output shown under it."""
    for tag, body in fences():
        if tag == "console":
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                yield command, shown


def pattern(shown: str) -> str:
    """A regular expression of the output: a line `...` stands for any number of lines."""
    lines = [
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line) + r"\n"
        for line in shown.rstrip("\n").split("\n")
    ]
    return "".join(lines)


def run(arguments: list[str], home: Path) -> str:
    environment = {**os.environ, "XDG_STATE_HOME": str(home), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        arguments, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("command", "shown"), list(commands()))
def test_a_command_prints_what_the_readme_shows(command: str, shown: str, tmp_path: Path) -> None:
    name, *arguments = shlex.split(command)
    assert name == "rlm-rag"
    printed = run([sys.executable, "-m", "rlm_rag", *arguments], tmp_path)
    printed = "\n".join(line.rstrip() for line in printed.split("\n"))
    assert re.fullmatch(pattern(shown), printed.rstrip("\n") + "\n"), printed


def test_the_library_example_prints_what_the_readme_shows(tmp_path: Path) -> None:
    found = fences()
    position = next(index for index, (tag, _) in enumerate(found) if tag == "python")
    printed = run([sys.executable, "-W", "error", "-c", found[position][1]], tmp_path)
    assert printed == found[position + 1][1]


def test_every_command_of_the_table_exists(tmp_path: Path) -> None:
    named = set(re.findall(r"`rlm-rag ([a-z-]+)", README))
    listed = run([sys.executable, "-m", "rlm_rag", "--help"], tmp_path)
    assert named <= set(re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE))


def test_the_defaults_shown_are_the_limits_of_the_code() -> None:
    from rlm_rag import Limits

    fields = {
        "--max-iterations": Limits().iterations,
        "--max-calls": Limits().calls,
        "--cell-seconds": Limits().cell_seconds,
        "--max-errors": Limits().errors,
        "--max-depth": Limits().depth,
        "--concurrency": Limits().concurrency,
    }
    rows = dict(re.findall(r"^\| `(--[a-z-]+)` \| (\d+) \|", README, re.MULTILINE))
    assert {flag: float(value) for flag, value in rows.items()} == fields


def test_the_readme_is_short() -> None:
    assert README.count("\n") < 200
