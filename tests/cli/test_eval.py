"""`rlm-rag eval` as a process: what it prints, what it leaves, and what a kill costs."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest

from rlm_rag.cli.main import main
from rlm_rag.trace.events import ReplyReceived
from rlm_rag.trace.reader import read_trace
from tests.evals.gated import CALLS, CALLS_BEFORE, thoughtful
from tests.servers.loopback import Received, Step, reply
from tests.servers.openai_chat import OpenAiChatServer

from .processes import Place

QUESTIONS = 12


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    repo = place.work / "repo"
    repo.mkdir()
    (repo / "retry.py").write_text("def backoff(attempt):\n    return 2**attempt\n")
    (repo / "client.py").write_text("def send(request):\n    return request\n")
    rows = [{"question": f"What is number {n}?", "answer": f"n{n}n"} for n in range(QUESTIONS)]
    _write(place.work / "qa.jsonl", rows)
    _write(place.work / "paths.jsonl", [{"question": "backoff attempt", "gold": ["retry.py"]}])
    return place


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def number(request: Received) -> str:
    return request.prompt.rpartition("What is number ")[2].partition("?")[0]


def slow(request: Received) -> Step:
    return reply(f"It is n{number(request)}n.", delay_seconds=0.1)


def run_options(server: OpenAiChatServer) -> tuple[str, ...]:
    base = ("--model", "m", "--api-base", server.api_base, "--price", "1/1000")
    return ("--corpus", "repo", *base, "--strategy", "direct", "--out", "run", "--parallel", "2")


def samples(place: Place) -> list[dict[str, Any]]:
    path = place.work / "run" / "samples.jsonl"
    data = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in data.splitlines(keepends=True) if line.endswith(b"\n")]


def replied(place: Place) -> set[str]:
    """The ids of samples whose reply is in their trace, be they recorded or not."""
    traces = map(read_trace, (place.work / "run").glob("traces/*/*.jsonl"))
    questions = [each.root.question for each in traces if each.root and each.of_type(ReplyReceived)]
    return {str(int(re.findall(r"\d+", question)[0]) + 1) for question in questions}


def wait_for(process: subprocess.Popen[str], met: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None and not met():
        time.sleep(0.01)
    assert process.poll() is None and met()


@pytest.mark.skipif(os.name == "nt", reason="no such signal")
def test_a_killed_run_is_gone_on_with_and_no_finished_sample_is_paid_again(
    openai_server: OpenAiChatServer, place: Place
) -> None:
    openai_server.script = slow
    with place.start("eval", "run", "./qa.jsonl", *run_options(openai_server)) as process:
        wait_for(process, lambda: len(samples(place)) >= 4)
        os.killpg(process.pid, signal.SIGKILL)
    finished = {sample["id"] for sample in samples(place)} | replied(place)
    paid = Counter(map(number, openai_server.received))
    # A line that was being written.
    with (place.work / "run" / "samples.jsonl").open("ab") as file:
        file.write(b'{"schema_version":1,"conf')
    for folder in place.temporary.iterdir():
        shutil.rmtree(folder)

    ended = place.run("eval", "resume", "run", "--json")
    assert ended.code == 0
    shown = json.loads(ended.stdout)
    assert [cell["n"] for cell in shown["cells"]] == [QUESTIONS]
    assert [cell["score"] for cell in shown["cells"]] == [1.0]
    assert Counter(sample["id"] for sample in samples(place)) == Counter(
        str(n) for n in range(1, QUESTIONS + 1)
    )
    again = Counter(map(number, openai_server.received)) - paid
    # Ids count from 1, questions from 0.
    assert not {str(int(id_) - 1) for id_ in finished} & set(again)
    assert sum(again.values()) == QUESTIONS - len(finished)
    # What was in flight when it was killed counts as spent, at its estimate.
    assert shown["runs"][0]["spent_usd"] > QUESTIONS * 7011 / 1e6 - 1e-9


@pytest.mark.deep
@pytest.mark.skipif(os.name == "nt", reason="no such signal")
def test_a_killed_run_goes_on_with_samples_under_way_and_no_prompt_is_sent_twice(
    openai_server: OpenAiChatServer, place: Place
) -> None:
    gate, run = place.root / "gate", place.work / "run"
    openai_server.script = thoughtful(gate)
    # Blocks see the gate in no other sandbox.
    options = (*run_options(openai_server), "--strategy", "rlm", "--sandbox", "none", "-n", "2")

    def waits() -> bool:
        traces = [path.read_bytes() for path in run.glob("traces/*/*.jsonl")]
        return sum(trace.count(b'"type": "block"') for trace in traces) == 4

    with place.start("eval", "run", "./qa.jsonl", *options) as process:
        wait_for(process, waits)
        os.killpg(process.pid, signal.SIGKILL)
    assert (len(openai_server.received), samples(place)) == (CALLS_BEFORE * 2, [])
    gate.touch()
    for folder in place.temporary.iterdir():
        shutil.rmtree(folder)
    assert place.run("eval", "resume", "run").code == 0
    prompts = Counter(str(each.messages) for each in openai_server.received)
    assert (set(prompts.values()), len(prompts)) == ({1}, CALLS * 2)
    assert [sample["calls"] for sample in samples(place)] == [CALLS] * 2


@pytest.mark.skipif(os.name == "nt", reason="no such signal")
def test_an_interrupted_run_reports_what_it_has(
    openai_server: OpenAiChatServer, place: Place
) -> None:
    openai_server.script = slow
    with place.start("eval", "run", "./qa.jsonl", *run_options(openai_server)) as process:
        wait_for(process, lambda: len(samples(place)) >= 2)
        os.kill(process.pid, signal.SIGINT)
        ended = place.end(process)
    assert ended.code == 130
    assert f"{len(samples(place))} of {QUESTIONS} asked" in ended.stdout
    assert "to go on: rlm-rag eval resume run" in ended.stderr
    assert (place.work / "run" / "report.html").is_file()


def test_a_run_without_a_model_is_reported_compared_and_scored_again(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    task = ("eval", "run", "ruler:niah", "--lengths", "2k", "-n", "2", "--out", "run")
    ended = place.run(*task, "--strategy", "direct,retrieve")
    assert ended.code == 0
    assert "| 2k | direct | 2 |" in ended.stdout
    assert "4 of 4 asked, 0 errors (complete)" in ended.stdout
    run = str(place.work / "run")
    assert main(["eval", "report", run, run, "--out", str(place.work / "both"), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [each["complete"] for each in shown["runs"]] == [True]
    assert {(cell["n"], cell["calls"]) for cell in shown["cells"]} == {(2, 1.0)}
    assert "<svg" in (place.work / "both" / "report.html").read_text()
    assert main(["eval", "compare", run, "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)["comparisons"]
    assert [(each["first"], each["second"]) for each in compared] == [("direct", "retrieve")]
    assert main(["eval", "score", run]) == 0
    assert capsys.readouterr().out == "4 answers scored, 0 scores changed\n"


def test_retrieval_alone_needs_no_model_and_no_key(place: Place) -> None:
    ended = place.run(
        *("eval", "run", "./paths.jsonl", "--corpus", "repo", "--retrieval-only", "--json"),
        without=("OPENAI_API_KEY",),
    )
    assert ended.code == 0
    shown = json.loads(ended.stdout)
    assert [(cell["strategy"], cell["score"]) for cell in shown["cells"]] == [("search", 1.0)]
    assert Path(shown["run"]).parent.name == "runs"


def test_money_that_does_not_last_is_a_partial_run_and_an_estimate_costs_none(
    openai_server: OpenAiChatServer,
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    openai_server.script = lambda request: f"n{number(request)}n"
    options = ("eval", "run", "./qa.jsonl", *run_options(openai_server))
    monkeypatch.chdir(place.work)
    assert main([*options, "--estimate"]) == 0
    assert "direct, 12 samples" in capsys.readouterr().out
    assert openai_server.received == []
    assert len(openai_server.looked_up) >= 1
    assert not (place.work / "run").exists()
    ended = place.run(*options, "--max-usd", "4.12")
    assert ended.code == 1
    assert "stopped early (budget_usd)" in ended.stderr
    assert "error (budget_usd), such as " in ended.stderr.replace("errors", "error")
    assert " by direct: the money for the whole run did not last for it" in ended.stderr
    assert "(budget usd " in ended.stdout
    assert 0 < len(openai_server.received) < QUESTIONS


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "nothing"), "there is no task 'nothing'"),
        (("run", "ruler:niah", "--lengths", "8q"), "'8q' is no length"),
        (("run", "ruler:niah", "--strategy", "guess"), "there is no strategy 'guess'"),
        (("resume", "nowhere"), "holds no run"),
    ],
)
def test_what_cannot_be_run_is_said(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert main(["eval", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_every_task_is_listed_with_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["tasks"]
    needs = {task["name"]: task["needs"] for task in listed}
    assert (needs["ruler:niah"], needs["longbench-v2"]) == ("nothing", "data")


@pytest.mark.deep
@pytest.mark.skipif(os.name == "nt", reason="no such signal")
def test_killed_again_and_again_it_ends_with_every_sample_asked_once_or_lost_in_flight(
    openai_server: OpenAiChatServer, place: Place
) -> None:
    openai_server.script = slow
    dice = random.Random(7)
    command = ("eval", "run", "./qa.jsonl", *run_options(openai_server))
    kills = 0
    for _ in range(40):
        with place.start(*command) as process:
            try:
                code = process.wait(1.0 + dice.random())
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                kills, code = kills + 1, None
        shutil.rmtree(place.temporary)
        place.temporary.mkdir()
        if code is not None:
            break
        if (place.work / "run" / "config.toml").exists():
            command = ("eval", "resume", "run")
    assert (code, len(samples(place))) == (0, QUESTIONS)
    assert kills > 0
    # Of each kill, two requests at most were in flight.
    assert len(openai_server.received) <= QUESTIONS + 2 * kills


def test_runs_that_begin_in_the_same_second_have_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Stopped:
            return cls(2026, 11, 30, 4, 5, 6)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rlm_rag.cli.eval.datetime", Stopped)
    (tmp_path / "a.md").write_text("backoff attempt\n")
    _write(tmp_path / "qa.jsonl", [{"question": "backoff attempt", "gold": ["a.md"]}])
    for _ in range(3):
        assert main(["eval", "run", "qa.jsonl", "--corpus", "a.md", "--retrieval-only"]) == 0
    folders = {folder.name for folder in (tmp_path / "runs").iterdir()}
    assert folders == {f"qa-20261130-040506{end}" for end in ("", "-2", "-3")}
