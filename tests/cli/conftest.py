from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .here import run_here

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-m", "rlm_rag.cli.main")
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment without the user's settings, traces and keys."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    home = tmp_path / "home"
    home.mkdir()
    return kept | {
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONIOENCODING": "utf-8",
        # Corpora of a few lines would be sent whole otherwise.
        "RLM_RAG_STRATEGY": "rlm",
    }


@pytest.fixture
def process(environment: dict[str, str], tmp_path: Path) -> Run:
    """Run the real command; no run may ever show a traceback or a leaked resource."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)

    def run(
        *arguments: str,
        stdin: str = "",
        env: dict[str, str] | None = None,
        cwd: Path = work,
        timeout_seconds: float = 60.0,
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*COMMAND, *arguments],
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            cwd=cwd,
            env=environment | (env or {}),
            timeout=timeout_seconds,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert "Warning" not in done.stderr, done.stderr
        return done

    return run


@pytest.fixture
def rlm_rag(environment: dict[str, str], tmp_path: Path) -> Run:
    """Run commands as `process` does, but here, in a fifth of its time."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)

    def run(
        *arguments: str, stdin: str = "", env: dict[str, str] | None = None, cwd: Path = work
    ) -> subprocess.CompletedProcess[str]:
        return run_here(arguments, environment=environment | (env or {}), cwd=cwd, stdin=stdin)

    return run


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A folder of three documents and one that is left out."""
    folder = tmp_path / "repo"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "retry.py").write_text(
        "import random\n\n\ndef backoff(attempt):\n"
        '    """Seconds to wait before the next try."""\n'
        "    return 2**attempt + random.random()\n"
    )
    (folder / "src" / "client.py").write_text(
        "from retry import backoff\n\n\nclass Client:\n    def send(self):\n        backoff(1)\n"
    )
    (folder / "README.md").write_text("# Client\n\nSends things.\n\n## Use\n\nCall `send`.\n")
    (folder / "logo.bin").write_bytes(b"\x00\x01\x02" * 100)
    return folder
