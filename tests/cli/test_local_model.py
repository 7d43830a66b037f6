"""A question asked on the command line of a model file, with a stand-in for what serves it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from tests.models.test_gguf import head
from tests.models.test_local import STAND_IN

from .conftest import ROOT, Run


def test_a_file_answers_and_its_server_ends_with_the_command(process: Run, tmp_path: Path) -> None:
    for folder in ("library", "notes"):
        (tmp_path / folder).mkdir()
    (tmp_path / "library" / "xllamacpp.py").write_text(STAND_IN)
    (tmp_path / "notes" / "ports.md").write_text("The port is 8431.\n")
    (tmp_path / "model.gguf").write_bytes(head())
    done = process(
        "ask",
        str(tmp_path / "notes"),
        "Which port?",
        "--model",
        f"local:{tmp_path}/model.gguf",
        "--strategy",
        "retrieve",
        "--json",
        env={"PYTHONPATH": f"{tmp_path}/library:{ROOT}", "OPENAI_API_KEY": "sk-never-to-be-told"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    pid, context, key, *_ = found["answer"].split()
    assert (int(context) > 0, key, found["coverage"]["read"]) == (True, "None", 1)
    for _ in range(100):
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("the server outlived the command")
