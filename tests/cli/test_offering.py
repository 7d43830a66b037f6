"""What the command line offers a run's blocks: a form, libraries, a folder, the user."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from .conftest import COMMAND, Run
from .test_ask import block, script

pty = pytest.importorskip("pty")

SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


def test_an_answer_of_a_schema_its_files_and_a_library(
    rlm_rag: Run, repo: Path, tmp_path: Path
) -> None:
    form, library, out = tmp_path / "form.json", tmp_path / "handbook", tmp_path / "out"
    form.write_text(json.dumps(SCHEMA))
    library.mkdir()
    (library / "rules.md").write_text("# Rules\n")
    code = (
        "paths = load_library('handbook')\nsave_artifact('paths.json', paths)\n"
        "r = ask_user_question('Who?')\nFINAL({'n': len(paths), 'said': r.error})"
    )
    done = rlm_rag(
        *("ask", str(repo), "How many rules?", "--json", "--model", script(tmp_path, block(code))),
        *("--schema", str(form), "--library", f"handbook={library}", "--artifacts", str(out)),
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["fits"] is True
    assert answer["data"] == {"n": 1, "said": "ask_user_question is not offered in this run"}
    assert answer["artifacts"] == [str(out / "paths.json")]
    assert json.loads((out / "paths.json").read_text()) == ["added:/handbook/rules.md"]
    assert f"saved: {out / 'paths.json'}" in done.stderr


def test_an_answer_that_does_not_fit_exits_with_one(
    rlm_rag: Run, repo: Path, tmp_path: Path
) -> None:
    form = tmp_path / "form.json"
    form.write_text(json.dumps(SCHEMA))
    model = script(tmp_path, *[block("FINAL('none')")] * 3)
    done = rlm_rag("ask", str(repo), "How many?", "--model", model, "--schema", str(form))
    assert done.returncode == 1
    assert "the answer does not fit the schema" in done.stderr
    assert done.stdout.strip() == "none"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--schema", "missing.json"], "--schema missing.json: No such file"),
        (["--schema", "/dev/null"], "is no JSON"),
        (["--schema", "true"], "name a file that holds a JSON schema"),
        (["--schema", "deep.json"], "--schema deep.json is nested too deeply"),
        (["--artifacts", "/proc/x"], "--artifacts /proc/x: No such file"),
        (["--artifacts", "deep.json/x"], "--artifacts deep.json/x: Not a directory"),
        (["--library", "handbook"], "no such pair"),
        (["--library", "../handbook=."], "'../handbook' is no name of a library"),
        (["--library", "..=."], "'..' is no name of a library"),
        (["--library", "handbook=/nowhere"], "--library handbook: No such file or folder"),
    ],
)
def test_what_cannot_be_offered_exits_with_two(
    rlm_rag: Run, tmp_path: Path, flags: list[str], words: str
) -> None:
    (tmp_path / "work").mkdir(exist_ok=True)
    (tmp_path / "work" / "deep.json").write_text("[" * 20_000 + "]" * 20_000)
    done = rlm_rag("ask", ".", "q", *flags)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_folder_for_artifacts_is_made_by_the_first_of_them(
    rlm_rag: Run, repo: Path, tmp_path: Path
) -> None:
    model = script(tmp_path, block("FINAL('none')"))
    done = rlm_rag("ask", str(repo), "q", "--model", model, "--artifacts", "new/out")
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("new"))


def test_the_user_of_a_terminal_is_asked(
    environment: dict[str, str], repo: Path, tmp_path: Path
) -> None:
    code = (
        "FINAL(ask_user_question(['Which\\x1b[2J year?', "
        "{'question': 'Which part?', 'options': ['docs', 'code']}]))"
    )
    model = script(tmp_path, block(code))
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "ask", str(repo), "What?", "--model", model, "--json", "--no-trace"],
        env=environment | {"TERM": "xterm"},
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    try:
        shown = b""
        for awaited, typed in ((b"year?", b"1998\n"), (b"2. code", b"2\n")):
            while awaited not in shown.rpartition(typed)[2]:
                shown += os.read(ours, 1000)
            os.write(ours, typed)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert json.loads(json.loads(out)["answer"]) == ["1998", "code"]
    # The screen is not the model's to clear.
    assert b"\x1b[2J" not in shown
