"""Work on the nodes of a Ray cluster: nothing of it is lost, whatever dies, and no limit passed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlm_rag import RLM, load, replay
from rlm_rag.engine.limits import Limits
from rlm_rag.evals.config import Models, RunConfig
from rlm_rag.evals.run_folder import RunFolder
from rlm_rag.evals.runner import Progress, start
from rlm_rag.trace.events import Answered, BlockOutput, Event, ReplyReceived, Resumed, RunStarted
from rlm_rag.trace.reader import read_trace
from tests.engine.play import CHILD_MARK, block, first_prompt, play
from tests.evals.gated import CALLS, CALLS_BEFORE, thoughtful, waiting
from tests.evals.toys import Toy, install
from tests.servers.loopback import Received, Step, reply
from tests.servers.openai_chat import OpenAiChatServer

from .listening import addresses, hosts, marked, none_left, ray_tests, raylet
from .nodes import ROOT

# A token of a reply costs a tenth of a cent, and each has seven.
PRICE = "0/1000"
_COMMAND_SECONDS = 90.0


def counting(request: Received) -> Step:
    """One block that reads the corpus, then an answer from what it printed."""
    if request.turn == 0:
        return reply(
            "```repl\nprint(len(context), search('number')[0]['path'])\n```", delay_seconds=0.3
        )
    return reply('FINAL("7")', delay_seconds=0.3)


@pytest.fixture
def toy(openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch) -> RunConfig:
    """An eval of six questions, all at once."""
    install(monkeypatch, Toy(per_haystack=6))
    return RunConfig(
        tasks=("toy",),
        strategies=("rlm",),
        count=6,
        parallel=6,
        max_usd=100.0,
        models=Models(model="m", api_base=openai_server.api_base, price=PRICE),
    )


def command(words: str, server: OpenAiChatServer, *, output: int) -> subprocess.Popen[str]:
    """Start the command, in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "rlm_rag", *words.split(), "--api-base", server.api_base],
        stdout=output,
        stderr=subprocess.STDOUT if output == subprocess.PIPE else None,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )


def wait(holds: Callable[[], object], *, until: float) -> None:
    """Wait for something to come true, until a moment of the monotonic clock."""
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.2)


@pytest.mark.deep
@ray_tests
def test_an_eval_on_nodes_that_die_asks_every_sample_within_its_limits(
    mark: str,
    cluster: Any,
    openai_server: OpenAiChatServer,
    toy: RunConfig,
    tmp_path: Path,
) -> None:
    openai_server.script = counting
    config = replace(toy, count=18, limits=Limits(concurrency=3))
    killed: list[int] = []

    def kill(progress: Progress) -> None:
        # A process of the first node goes at once, all of the second once it has one by the fifth.
        if progress.done + progress.errors == 2 and not killed:
            killed.extend(hosts(mark, raylet(cluster.others[0]), kind=b"WorkHost"))
            os.kill(killed[0], signal.SIGKILL)
        if progress.done + progress.errors >= 5 and len(killed) == 1:
            of_second = hosts(mark, raylet(cluster.others[1]), kind=b"WorkHost")
            if not of_second:
                return
            killed.extend(of_second)
            gone = {"allow_graceful": False}
            threading.Thread(
                target=cluster.remove_node, args=cluster.others[1:], kwargs=gone
            ).start()

    progress = start(config, tmp_path / "run", ray=cluster.address, on_progress=kill)
    assert len(killed) >= 2
    assert (progress.total, progress.done, progress.errors) == (18, 18, 0)
    records = RunFolder.open(tmp_path / "run").records()
    assert len(records) == 18
    assert openai_server.most_in_flight <= 3
    for record in records.values():
        trace = read_trace(tmp_path / "run" / str(record.trace))
        assert len(trace.of_type(Answered)) == 1
        assert [each.error for each in trace.of_type(BlockOutput)] == [None]
        assert len(trace.of_type(ReplyReceived)) == record.calls == 2
    # All that was sent was counted, by the desk and by the traces, also what died with its node.
    sent = 0.007 * len(openai_server.received)
    assert progress.spent_usd >= sent - 1e-9 >= 0.007 * 36 - 2e-9


@pytest.mark.deep
@ray_tests
def test_a_sample_whose_node_dies_goes_on_and_no_prompt_is_sent_twice(
    mark: str,
    cluster: Any,
    openai_server: OpenAiChatServer,
    toy: RunConfig,
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    openai_server.script = thoughtful(gate)
    # Blocks see the gate in no other.
    config = replace(toy, models=replace(toy.models, sandbox="none"))
    killed: list[int] = []

    def kill() -> None:
        # Each sample has had three calls by then, and its block waits.
        wait(
            lambda: len(openai_server.received) == CALLS_BEFORE * 6,
            until=time.monotonic() + _COMMAND_SECONDS,
        )
        time.sleep(2.0)
        for node in cluster.others:
            killed.extend(hosts(mark, raylet(node), kind=b"WorkHost"))
        os.kill(killed[0], signal.SIGKILL)
        cluster.remove_node(cluster.others[1], allow_graceful=False)
        wait(lambda: not marked(mark) & {*killed}, until=time.monotonic() + _COMMAND_SECONDS)
        gate.touch()

    killing = threading.Thread(target=kill)
    killing.start()
    progress = start(config, tmp_path / "run", ray=cluster.address)
    killing.join()
    assert len(killed) == 2
    assert (progress.done, progress.errors) == (6, 0)
    records = list(RunFolder.open(tmp_path / "run").records().values())
    assert [each.score for each in records] == [1.0] * 6
    prompts = Counter(str(each.messages) for each in openai_server.received)
    assert set(prompts.values()) == {1}
    assert len(prompts) == sum(each.calls for each in records) == CALLS * 6
    assert progress.spent_usd == pytest.approx(0.007 * len(prompts))
    assert sum(each.usd or 0.0 for each in records) == pytest.approx(progress.spent_usd)
    traces = [read_trace(tmp_path / "run" / str(each.trace)) for each in records]
    assert all(len(each.of_type(Answered)) == 1 for each in traces)
    # Two samples of either node.
    assert sum(len(each.of_type(Resumed)) for each in traces) == 4


@pytest.mark.deep
@ray_tests
def test_a_map_on_nodes_that_die_answers_every_document_once(
    mark: str, cluster: Any, openai_server: OpenAiChatServer
) -> None:
    openai_server.script = lambda request: reply("read", delay_seconds=0.1)
    documents = {f"{n}.md": f"# {n}\n" for n in range(120)}
    rlm = RLM("m", api_base=openai_server.api_base, price=PRICE, ray=cluster.address)
    answered: list[str] = []
    with rlm.map(documents, "Sum up.") as answers:
        for answer in answers:
            assert answer.ok
            answered.append(answer.path)
            if len(answered) in (20, 60):
                node = cluster.others[len(answered) // 60]
                (host,) = hosts(mark, raylet(node), kind=b"WorkHost")
                os.kill(host, signal.SIGKILL)
        summary = answers.summary
    assert sorted(answered) == sorted(documents)
    assert (summary.stop_reason, summary.answered) == ("answered", 120)
    assert summary.usage.calls >= len(openai_server.received) >= 120
    assert openai_server.most_in_flight <= 16


@pytest.mark.deep
@ray_tests
def test_children_on_nodes_that_die_go_on_and_keep_the_limits_of_their_run(
    mark: str, cluster: Any, openai_server: OpenAiChatServer, tmp_path: Path
) -> None:
    def child(_: str, turn: int) -> Step:
        # What `context` reads comes to the node when it is read, to its second process as well.
        look = (
            "path = search(task)[0]['path']\n"
            "text = next(d['content'] for d in context if d['path'] == path)\n"
            "found = path if text in task else text"
        )
        step = block("FINAL(found)") if turn else block(look)
        return replace(step, delay_seconds=0.2)

    code = (
        "r = rlm_query_batched([f'Where is number {n}?' for n in range(9)])\n"
        "print([each.error for each in r])\nFINAL('|'.join(r))"
    )
    source = tmp_path / "source"
    source.mkdir()
    for n in range(9):
        (source / f"{n}.md").write_text(f"number {n}")
    started: list[str] = []

    def kill(event: Event) -> None:
        if isinstance(event, RunStarted) and event.depth:
            started.append(event.run)
            if len(started) in (3, 7):
                for host in hosts(
                    mark, raylet(cluster.others[len(started) // 7]), kind=b"WorkHost"
                ):
                    os.kill(host, signal.SIGKILL)

    shards = f"ray:{cluster.address}"
    with load(source, keep=False, shards=shards, shard_count=2) as corpus:
        found = play(
            openai_server,
            corpus,
            root=[block(code)],
            child=child,
            ray=cluster.address,
            on_event=kill,
            trace=tmp_path,
            limits=Limits(concurrency=3, live_children=5, calls=60),
        )
    assert found.text.split("|") == [f"{n}.md" for n in range(9)]
    trace = read_trace(Path(str(found.trace)))
    runs = [each.run for each in trace.of_type(RunStarted)]
    assert len(runs) == len(set(runs)) >= 10
    assert sorted(each.run for each in trace.of_type(Answered)) == sorted(runs)
    assert openai_server.most_in_flight <= 3
    assert len(openai_server.received) <= found.usage.calls <= 60


@pytest.mark.deep
@ray_tests
def test_a_child_whose_node_dies_goes_on_and_no_prompt_is_sent_twice(
    mark: str, cluster: Any, openai_server: OpenAiChatServer, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"

    def child(first: str, turn: int) -> Step:
        code = (
            "print(llm_query(task))",
            waiting(gate) + "found = search(task)[0]['path']",
            "FINAL(found)",
        )
        return block(code[turn])

    def kill() -> None:
        # The root has had one call by then, each child three, and its block waits.
        wait(lambda: len(openai_server.received) == 19, until=time.monotonic() + _COMMAND_SECONDS)
        time.sleep(2.0)
        (host,) = hosts(mark, raylet(cluster.others[0]), kind=b"WorkHost")
        os.kill(host, signal.SIGKILL)
        wait(lambda: host not in marked(mark), until=time.monotonic() + _COMMAND_SECONDS)
        gate.touch()

    code = "r = rlm_query_batched([f'Where is number {n}?' for n in range(6)])\nFINAL('|'.join(r))"
    killing = threading.Thread(target=kill)
    killing.start()
    with load({f"{n}.md": f"number {n}\n" for n in range(6)}) as corpus:
        found = play(
            openai_server,
            corpus,
            root=[block(code)],
            child=child,
            ray=cluster.address,
            trace=tmp_path / "traces",
            price=PRICE,
            # Blocks see the gate in no other.
            sandbox="none",
        )
        killing.join()
        assert found.text == "|".join(f"{n}.md" for n in range(6))
        prompts = Counter(str(each.messages) for each in openai_server.received)
        assert (set(prompts.values()), len(prompts)) == ({1}, 1 + 4 * 6)
        assert found.usage.calls == len(prompts)
        assert found.usage.usd == pytest.approx(0.007 * len(prompts))
        path = Path(str(found.trace))
        replaced = [each for each in read_trace(path).of_type(RunStarted) if each.instead_of]
        assert len(replaced) == 2
        assert replay(path, corpus).text == found.text


@pytest.mark.deep
@ray_tests
def test_a_question_that_is_interrupted_ends_its_children_and_says_nothing_of_rays(
    mark: str, cluster: Any, openai_server: OpenAiChatServer, tmp_path: Path
) -> None:
    def script(request: Received) -> Step:
        if CHILD_MARK in first_prompt(request):
            return reply("late", delay_seconds=60.0)
        return block("rlm_query_batched(['Where is a?', 'Where is b?'])")

    openai_server.script = script
    (tmp_path / "a.md").write_text("# A\n")
    words = f"ask --ray {cluster.address} --strategy rlm --model m --quiet {tmp_path} What?"
    asking = command(words, openai_server, output=subprocess.PIPE)
    until = time.monotonic() + _COMMAND_SECONDS
    wait(lambda: len(openai_server.received) >= 3, until=until)
    assert hosts(mark, kind=b"WorkHost")
    asking.send_signal(signal.SIGINT)
    said, _ = asking.communicate(timeout=30)
    assert (asking.returncode, "SIGTERM" in said) == (130, False)
    assert said.startswith("No answer was reached")
    wait(lambda: not hosts(mark, kind=b"WorkHost") + hosts(mark, kind=b"Desk"), until=until)


@pytest.mark.deep
@ray_tests
def test_an_eval_whose_process_is_killed_goes_on_and_no_prompt_is_sent_twice(
    mark: str, cluster: Any, openai_server: OpenAiChatServer, tmp_path: Path
) -> None:
    gate, run = tmp_path / "gate", tmp_path / "run"
    openai_server.script = thoughtful(gate)
    (tmp_path / "a.md").write_text("number\n")
    rows = [{"question": f"What is number {n}?", "answer": f"n{n}"} for n in range(4)]
    (tmp_path / "qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = f"{tmp_path}/qa.jsonl --corpus {tmp_path}/a.md --strategy rlm --sandbox none"
    words = f"eval run {words} --model m --out {run} --ray {cluster.address}"
    asking = command(words, openai_server, output=subprocess.DEVNULL)
    until = time.monotonic() + _COMMAND_SECONDS
    wait(lambda: len(openai_server.received) == CALLS_BEFORE * 4, until=until)
    # What was told of the last replies is here by then.
    time.sleep(2.0)
    asking.kill()
    asking.wait()
    gate.touch()
    assert (
        command(
            f"eval resume {run} --ray {cluster.address}", openai_server, output=subprocess.DEVNULL
        ).wait(_COMMAND_SECONDS)
        == 0
    )
    prompts = Counter(str(each.messages) for each in openai_server.received)
    assert (set(prompts.values()), len(prompts)) == ({1}, CALLS * 4)
    records = RunFolder.open(run).records().values()
    assert [each.calls for each in records] == [CALLS] * 4
    traces = [read_trace(run / str(each.trace)) for each in records]
    assert [len(each.of_type(Resumed)) for each in traces] == [1] * 4


@pytest.mark.deep
@ray_tests
def test_a_map_whose_process_is_killed_leaves_nothing_running(
    mark: str, openai_server: OpenAiChatServer, tmp_path: Path
) -> None:
    openai_server.script = lambda request: reply("read", delay_seconds=60.0)
    (tmp_path / "a.md").write_text("# A\n")
    words = f"map {tmp_path} Sum. --ray local --model m"
    asking = command(words, openai_server, output=subprocess.DEVNULL)
    wait(lambda: openai_server.received, until=time.monotonic() + _COMMAND_SECONDS)
    assert len(hosts(mark, kind=b"WorkHost")) == len(hosts(mark, kind=b"Desk")) == 1
    assert addresses(marked(mark)).keys() == {"127.0.0.1"}
    asking.kill()
    asking.wait()
    assert none_left(mark)


@pytest.mark.deep
@ray_tests
def test_without_the_desk_a_map_ends_and_says_why(
    mark: str, cluster: Any, openai_server: OpenAiChatServer
) -> None:
    openai_server.script = lambda request: reply("read", delay_seconds=0.1)
    rlm = RLM("m", api_base=openai_server.api_base, ray=cluster.address)
    said = []
    with rlm.map({f"{n}.md": f"# {n}\n" for n in range(60)}, "Sum up.") as answers:
        for answer in answers:
            said.append(answer.error)
            if len(said) == 10:
                (desk,) = hosts(mark, kind=b"Desk")
                os.kill(desk, signal.SIGKILL)
    assert len(said) == 60
    assert set(said[:10]) == {None}
    assert any("desk" in str(error) for error in said)
