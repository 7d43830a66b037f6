"""The package where the system has neither POSIX's modules nor its calls, as Windows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import rlm_rag
from tests.stand_in_windows import WITHOUT_POSIX

ROOT = Path(rlm_rag.__file__).parents[1]

# The index process lacks what its host lacks.
SEARCH = f"""{WITHOUT_POSIX}
import rlm_rag.child
def command(module, *arguments, made=rlm_rag.child.command):
    python, isolated, switch, start, *rest = made(module, *arguments)
    return [python, isolated, switch, {WITHOUT_POSIX!r} + start, *rest]
rlm_rag.child.command = command
"""


def run(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_folder_is_loaded_searched_and_outlined(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def backoff():\n    return 1\n")
    code = f"""{SEARCH}
import rlm_rag
with rlm_rag.load(".") as corpus:
    print([document.path for document in corpus], corpus.warnings)
    print([hit.path for hit in corpus.search("backoff")], corpus.grep("return").total)
    print(corpus.outline("a.py"))
"""
    assert run(code, tmp_path).splitlines() == [
        "['a.py'] ()",
        "['a.py'] 1",
        "1: def backoff():",
    ]


def test_the_command_line_starts_and_tells_what_there_is(tmp_path: Path) -> None:
    code = f"{SEARCH}import sys\nfrom rlm_rag.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    for arguments, told in (
        ("['--help']", "Ask a question"),
        ("['search', '.', 'gamma']", "notes.md:1-1"),
        ("['trace', 'list']", ""),
    ):
        (tmp_path / "notes.md").write_text("gamma\n")
        assert told in run(code.replace("sys.argv[1:]", arguments), tmp_path)
