from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from rlm_rag.cli.main import main
from rlm_rag.trace.store import TraceStore, new_run_id
from tests.trace.test_show import start

from .conftest import COMMAND, Run
from .test_ask import ready, script


def test_a_run_is_listed_shown_and_cleared(rlm_rag: Run, repo: Path, tmp_path: Path) -> None:
    model = script(tmp_path, ready("It doubles."))
    question = "How does the wait grow?"
    asked = json.loads(rlm_rag("ask", str(repo), question, "--model", model, "--json").stdout)

    listed = json.loads(rlm_rag("trace", "list", "--json").stdout)["runs"]
    assert [run["path"] for run in listed] == [asked["trace"]]
    assert listed[0]["question"] == question
    assert question in rlm_rag("trace", "list").stdout

    shown = rlm_rag("trace", "show")
    assert question in shown.stdout
    assert "It doubles." in shown.stdout
    events = json.loads(rlm_rag("trace", "show", listed[0]["id"], "--json").stdout)["events"]
    assert events[0]["type"] == "run"
    assert events[-1]["type"] == "answer"

    refused = rlm_rag("trace", "clear")
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert rlm_rag("trace", "clear", "--yes").returncode == 0
    assert not Path(asked["trace"]).exists()


def test_a_list_with_a_question_that_is_no_text_needs_no_standard_output(
    rlm_rag: Run, environment: dict[str, str], repo: Path
) -> None:
    assert rlm_rag("ask", str(repo), "caf\udce9 client", "--model", "offline").returncode == 0
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *COMMAND, "trace", "list"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_without_a_run_there_is_nothing_to_show(rlm_rag: Run) -> None:
    assert "no runs" in rlm_rag("trace", "list").stderr
    done = rlm_rag("trace", "show", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["kind"] == "trace"


def test_a_cited_file_that_has_changed_since_is_named(
    rlm_rag: Run, repo: Path, tmp_path: Path
) -> None:
    quote = '`src/retry.py:6`: "return 2**attempt + random.random()"'
    model = script(tmp_path, ready(f"It doubles, {quote}, in `README.md:1` too."))
    rlm_rag("ask", str(repo), "How does the wait grow?", "--model", model)
    assert "changed" not in rlm_rag("trace", "show").stderr
    (repo / "src" / "retry.py").write_text("nothing\n")
    shown = rlm_rag("trace", "show")
    assert "cited files have changed since: src/retry.py\n" in shown.stderr
    (repo / "src" / "retry.py").unlink()
    assert "src/retry.py" in rlm_rag("trace", "show").stderr


def test_limits_are_raised_to_none_as_they_are_set_to_it(
    rlm_rag: Run, repo: Path, tmp_path: Path
) -> None:
    model = script(tmp_path, ready("It doubles."))
    limits = ("--max-tokens", "1_000_000", "--max-usd", "0.25")
    question = "How does the wait grow?"
    asked = rlm_rag("ask", str(repo), question, "--model", model, *limits)
    assert asked.returncode == 0, asked.stderr
    lower = rlm_rag("trace", "resume", "--max-tokens", "999999")
    assert lower.returncode == 2
    assert "tokens of the run is 1,000,000; it cannot be 999,999 now" in lower.stderr
    dearer = rlm_rag("trace", "resume", "--max-usd", "0.2")
    assert "usd of the run is 0.25; it cannot be 0.2 now" in dearer.stderr
    for name in ("calls", "tokens", "usd", "seconds"):
        raised = rlm_rag("trace", "resume", f"--max-{name}", "none")
        assert raised.returncode == 0, raised.stderr
        assert "It doubles." in raised.stdout
    for name, value in (("errors", "none"), ("tokens", "0"), ("usd", "much")):
        refused = rlm_rag("trace", "resume", f"--max-{name}", value)
        assert (refused.returncode, f"--max-{name}" in refused.stderr) == (2, True)


def test_a_run_that_goes_on_is_told_from_one_that_was_cut_off(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    run = new_run_id()
    with TraceStore().create(run) as recorder:
        recorder.record(start(run))
        assert main(["trace", "list"]) == 0
        assert f"{run}  running " in capsys.readouterr().out
        assert main(["trace", "show"]) == 0
        assert "The run goes on" in capsys.readouterr().out
    assert main(["trace", "list", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["runs"]
    assert (listed["stop_reason"], listed["goes_on"]) == (None, False)
    assert main(["trace", "list"]) == 0
    assert f"{run}  unfinished " in capsys.readouterr().out
