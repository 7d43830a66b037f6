"""What the README says in tables; the commands and code that it shows are run by `test_run`."""

from __future__ import annotations

import re
from pathlib import Path

from rlm_rag import Limits
from rlm_rag.cli.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_command_of_the_table_exists() -> None:
    assert set(re.findall(r"`rlm-rag ([a-z-]+)", README)) <= COMMANDS.keys()


def test_the_defaults_shown_are_the_limits_of_the_code() -> None:
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
