"""What no real model was asked is said aloud, and why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_run_without_a_model_names_the_command_that_gets_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "--live", "tests/live/test_leaf.py"],
        env=os.environ | {"RLM_RAG_LIVE_MODELS": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    said = "3 tests of a real model were not run: there is no "
    assert done.stdout.partition(said)[2].splitlines()[0].endswith(": scripts/get_model 0.5b")
