"""Runs of the questions for small models: taken up where they were, reported, none held shown."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from benchmarks.small import records, tasks
from benchmarks.small.__main__ import main
from benchmarks.small.alone import as_much_as_fits
from benchmarks.small.proxy import Proxy, merged
from benchmarks.small.running import SYSTEMS, folders_below
from rlm_rag.api import load
from rlm_rag.models.tokens import count_tokens
from tests.servers.loopback import failed, reply

ROOT = Path(__file__).parents[2]
ASKED = ROOT / "benchmarks" / "small" / "asked"
PEER = """
import json, sys, urllib.request
asked = json.load(open(sys.argv[1]))
messages = [{"role": "user", "content": "a"}, {"role": "user", "content": asked["question"]}]
request = urllib.request.Request(
    asked["api_base"] + "/chat/completions", json.dumps({"messages": messages}).encode()
)
said = json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
print("what its code prints")
print(json.dumps({"text": said, "stop_reason": "answered"}))
"""


@pytest.fixture
def asked(small_sizes, openai_server, tmp_path, capsys):
    """Runs questions of records by a model that knows the right answers of the first four."""
    questions = records.record_questions(0, 20)
    right = {each.text: each.gold for each in questions if each.corpus == "20kb"}

    def answer(request):
        known = [gold for text, gold in right.items() if text in request.prompt]
        return str(known[0].get("number", known[0].get("name"))) if known else "none"

    openai_server.script = answer

    def run(*options):
        out = str(tmp_path / "runs")
        model = ("--model", "openai/m", "--api-base", openai_server.api_base)
        code = main(["run", "--out", out, *model, "--groups", "records", *options])
        return code, capsys.readouterr().out.splitlines()

    return run


def reported(tmp_path, capsys):
    assert main(["report", str(tmp_path / "runs")]) == 0
    return capsys.readouterr().out


def test_a_run_is_taken_up_where_it_was_and_reported(asked, tmp_path, capsys, openai_server):
    code, lines = asked("--only", "alone", "--limit", "2")
    assert (code, len(lines)) == (0, 2)
    code, lines = asked("--only", "alone", "--limit", "1")
    assert (code, len(lines)) == (0, 1)
    assert lines[-1].startswith("alone records: 3 of 20, 0 errors")
    assert len(openai_server.received) == 3
    table = reported(tmp_path, capsys)
    assert "| alone | 3 of 3 | 44 to 100 | - | - | 3 of 3 | 11 |" in table


def test_the_text_comes_before_the_question_so_that_a_server_keeps_what_it_read(
    asked, openai_server
):
    asked("--only", "alone", "--limit", "1")
    content = openai_server.received[0].json["messages"][-1]["content"]
    assert content.startswith("=== deliveries")
    assert content.rpartition("\n\nQuestion: ")[2].endswith("?")


def test_what_is_held_out_is_counted_and_not_shown(asked, tmp_path, capsys):
    code, lines = asked("--only", "alone", "--limit", "2", "--set", "held")
    assert (code, len(lines)) == (0, 2)
    assert "**held, m," in reported(tmp_path, capsys)
    assert main(["show", str(tmp_path / "runs")]) == 0
    assert capsys.readouterr().out == ""
    assert not any("How many" in line for line in lines)


def test_the_wrong_ones_are_shown_with_what_was_right(asked, tmp_path, capsys, openai_server):
    asked("--only", "alone", "--limit", "1")
    openai_server.script = lambda _: "I cannot say."
    asked("--only", "alone", "--limit", "1")
    assert main(["show", "--wrong", str(tmp_path / "runs")]) == 0
    shown = capsys.readouterr().out
    assert shown.count("right: {") == 1
    assert "said: I cannot say." in shown
    assert main(["score", str(tmp_path / "runs")]) == 0
    assert "2 answers, 0 scores changed" in capsys.readouterr().out


def test_a_strategy_of_our_own_runs_beside_the_systems(asked, tmp_path, capsys):
    code, lines = asked("--only", "retrieve,alone", "--limit", "1")
    assert (code, len(lines)) == (0, 2)
    table = reported(tmp_path, capsys)
    assert table.index("| retrieve |") < table.index("| alone |")


def test_a_peer_is_asked_in_its_own_process_through_a_proxy_that_merges(
    asked, tmp_path, monkeypatch, openai_server
):
    peer = tmp_path / "peer.py"
    peer.write_text(PEER)
    monkeypatch.setattr("benchmarks.small.rlms._PEER", peer)
    code, lines = asked("--only", "rlms", "--limit", "1", "--peer-python", sys.executable)
    assert code == 0
    assert lines[-1].startswith("rlms records: 1 of 20, 0 errors")
    (message,) = openai_server.received[0].json["messages"]
    assert message["content"].startswith("a\n\n")
    (sample,) = (tmp_path / "runs").rglob("samples.jsonl")
    record = json.loads(sample.read_text())
    assert (record["score"], record["root"]["input_tokens"], record["calls"]) == (1.0, 11, 1)


@pytest.mark.parametrize(
    ("code", "failure"),
    [("import time; time.sleep(60)", "timeout"), ("raise SystemExit(3)", "errors")],
)
def test_a_peer_that_is_late_or_fails_has_no_answer(code, failure, asked, tmp_path, monkeypatch):
    peer = tmp_path / "peer.py"
    peer.write_text(code)
    monkeypatch.setattr("benchmarks.small.rlms._PEER", peer)
    began = time.monotonic()
    options = ("--only", "rlms", "--limit", "1", "--seconds", "0.5")
    assert asked(*options, "--peer-python", sys.executable)[0] == 0
    assert time.monotonic() - began < 10
    (sample,) = (tmp_path / "runs").rglob("samples.jsonl")
    record = json.loads(sample.read_text())
    assert (record["stop_reason"], record["score"], record["answer"]) == (failure, 0.0, "")


def test_a_late_reply_ends_the_question_of_the_model_alone(asked, tmp_path, openai_server):
    openai_server.script = [reply("22", delay_seconds=5)]
    assert asked("--only", "alone", "--limit", "1", "--seconds", "0.3")[0] == 0
    (sample,) = (tmp_path / "runs").rglob("samples.jsonl")
    assert json.loads(sample.read_text())["stop_reason"] == "timeout"


def test_rlms_without_an_interpreter_says_what_is_missing(asked, monkeypatch, capsys):
    monkeypatch.delenv("RLMS_PYTHON", raising=False)
    assert asked("--only", "rlms", "--limit", "1")[0] == 2


def test_as_much_as_fits_is_no_more_than_was_asked_for():
    with load([(f"{n}.txt", "some words of a text\n" * 100) for n in range(9)]) as corpus:
        text = as_much_as_fits(corpus, 1_000)
        assert 700 < count_tokens(text) <= 1_010
        assert text.startswith("=== 0.txt\n")
        assert as_much_as_fits(corpus, 10**6).count("=== ") == 9


def test_neighbours_of_one_role_are_merged_and_what_was_read_is_counted(openai_server):
    said = [("system", "s"), ("user", "a"), ("user", "b"), ("assistant", "c")]
    messages = [{"role": role, "content": content} for role, content in said]
    assert [each["content"] for each in merged(messages)] == ["s", "a\n\nb", "c"]
    openai_server.script = [reply("done"), failed(400, "no")]
    with closing(Proxy(openai_server.api_base)) as proxy:
        path = f"{proxy.api_base}/chat/completions"
        assert httpx.post(path, json={"messages": messages}).status_code == 200
        assert httpx.post(path, json={"messages": messages}).status_code == 400
        assert (proxy.spent.calls, proxy.spent.input_tokens) == (2, 11)
    assert len(openai_server.received[0].json["messages"]) == 3


def test_the_end_of_a_question_ends_what_its_model_is_still_asked(openai_server):
    openai_server.script = [reply("late", delay_seconds=30)]
    ended = threading.Event()

    def ask(path):
        with pytest.raises(httpx.HTTPError):
            httpx.post(path, json={"messages": []}, timeout=20)
        ended.set()

    with closing(Proxy(openai_server.api_base)) as proxy:
        thread = threading.Thread(target=ask, args=(f"{proxy.api_base}/chat/completions",))
        thread.start()
        while not openai_server.received:
            time.sleep(0.01)
    assert ended.wait(5)
    thread.join()


def test_the_tasks_are_found_only_while_they_are_registered():
    from rlm_rag.errors import UsageError
    from rlm_rag.evals.tasks import find_task

    with tasks.found_by_evals():
        names = {find_task(f"small:{group}").name for group in tasks.GROUPS}
    assert names == {"small:repositories", "small:documents", "small:records"}
    with pytest.raises(UsageError):
        find_task("small:records")


def test_every_system_was_asked_all_sixty():
    asked = {system: [] for system in SYSTEMS}
    with tasks.found_by_evals():
        for folder in folders_below([ASKED / "1.5b"]):
            (system,) = folder.config.strategies
            asked[system] += [(record.task, record.id) for record in folder.records().values()]
    assert {system: len(set(keys)) for system, keys in asked.items()} == dict.fromkeys(SYSTEMS, 60)


def test_the_page_shows_what_was_asked(capsys):
    folders = sorted(str(folder) for folder in ASKED.iterdir())
    assert main(["report", *folders]) == 0
    rows = re.findall(r"^\| ([a-z-]+) (\| \d.+)$", capsys.readouterr().out, re.MULTILINE)
    assert {system for system, _ in rows} == set(SYSTEMS)
    shown = (ROOT / "docs" / "small-models.md").read_text("utf-8")
    assert [cells for _, cells in rows if cells not in shown] == []
