"""A run of benchmarks whose process died goes on with its samples, and pays for no reply twice."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rlm_rag.distributed import spreading
from rlm_rag.errors import RunFolderError
from rlm_rag.evals.config import Models, RunConfig
from rlm_rag.evals.record import BUDGET, Record
from rlm_rag.evals.run_folder import RunFolder
from rlm_rag.evals.runner import resume, start
from rlm_rag.trace.events import Answered, CallSent, ReplyReceived, Resumed, RunStarted
from rlm_rag.trace.reader import read_trace
from tests.distributed.near import NearFanOut
from tests.evals import test_spread as spreads
from tests.evals.toys import Toy, install
from tests.servers.loopback import failed
from tests.servers.openai_chat import OpenAiChatServer

CALLS, USD = spreads.CALLS, spreads.USD

Killed = Callable[[int], Path]


@pytest.fixture
def config(openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch) -> RunConfig:
    """One sample that takes three calls of its root, and three of its blocks."""
    openai_server.script = spreads.script
    install(monkeypatch, Toy())
    return RunConfig(
        tasks=("toy",),
        strategies=("rlm",),
        count=1,
        max_usd=100.0,
        models=Models(model="m", api_base=openai_server.api_base, price="0/1000"),
    )


@pytest.fixture
def killed(config: RunConfig, tmp_path: Path, openai_server: OpenAiChatServer) -> Killed:
    """Make what a process leaves that is killed after so many events of its sample."""
    assert start(config, tmp_path / "whole").is_complete
    openai_server.received.clear()

    def cut(events: int) -> Path:
        folder = tmp_path / f"killed{events}"
        shutil.copytree(tmp_path / "whole", folder)
        (folder / "samples.jsonl").unlink()
        path = trace_of(folder)
        lines = path.read_bytes().splitlines(keepends=True)
        # The next event was being written.
        path.write_bytes(b"".join(lines[:events]) + b"".join(lines[events:])[:9])
        return folder

    return cut


def trace_of(folder: Path) -> Path:
    (path,) = folder.glob("traces/*/*.jsonl")
    return path


def only(folder: Path) -> Record:
    (record,) = RunFolder.open(folder).records().values()
    return record


def check(folder: Path, server: OpenAiChatServer, ray: str | None) -> None:
    before = read_trace(trace_of(folder))
    paid, begun = len(before.of_type(ReplyReceived)), len(before.of_type(CallSent))
    server.received.clear()
    progress = resume(folder, ray=ray)
    assert (progress.is_complete, len(server.received)) == (True, CALLS - paid)
    record, trace = only(folder), read_trace(trace_of(folder))
    assert (record.answer, record.calls, record.iterations) == ("7", CALLS, 3)
    assert (record.root.calls, record.sub.calls) == (3, 3)
    assert folder / str(record.trace) == trace.path
    assert len(trace.of_type(RunStarted)) == len(trace.of_type(Answered)) == 1
    assert len(trace.of_type(Resumed)) == (before.answer is None)
    # What was under way when the process died counts at the most that it may have cost.
    assert record.usd is not None
    assert record.usd > USD * CALLS + 1 if begun > paid else record.usd == pytest.approx(0.042)
    assert progress.spent_usd == pytest.approx(record.usd)
    assert RunFolder.open(folder).spent_usd() == pytest.approx(record.usd)


def test_a_sample_that_was_under_way_goes_on_from_its_trace(
    killed: Killed, openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for events, ray in ((4, None), (99, None), (13, "local")):
        monkeypatch.setattr(spreading, "_joined", ("local", NearFanOut()))
        check(killed(events), openai_server, ray)


@pytest.mark.deep
@pytest.mark.parametrize("ray", [None, "local"])
def test_a_sample_goes_on_wherever_its_process_died(
    killed: Killed,
    openai_server: OpenAiChatServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    ray: str | None,
) -> None:
    for events in range(1, len(read_trace(trace_of(tmp_path / "whole")).records) + 1):
        monkeypatch.setattr(spreading, "_joined", ("local", NearFanOut()))
        check(killed(events), openai_server, ray)


def test_a_sample_whose_node_dies_after_its_process_did_goes_on_from_both(
    killed: Killed, openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = killed(9)
    paid = len(read_trace(trace_of(folder)).of_type(ReplyReceived))
    monkeypatch.setattr(spreading, "_joined", ("local", NearFanOut(5, None)))
    assert resume(folder, ray="local").is_complete
    assert len(openai_server.received) == CALLS - paid
    trace = read_trace(trace_of(folder))
    assert len(trace.of_type(Resumed)) == 2
    assert len(trace.of_type(ReplyReceived)) == only(folder).calls == CALLS


def test_a_sample_that_does_something_else_the_second_time_is_begun_anew(
    config: RunConfig,
    tmp_path: Path,
    openai_server: OpenAiChatServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spreads, "LOOK", "import os\nprint(llm_query(os.urandom(4).hex()))")
    folder = tmp_path / "run"
    start(config, folder)
    (folder / "samples.jsonl").unlink()
    first = trace_of(folder)
    lines = first.read_bytes().splitlines(keepends=True)
    first.write_bytes(b"".join(lines[:12]))
    lost = RunFolder.open(folder).spent_usd()
    progress = resume(folder)
    record = only(folder)
    assert (progress.is_complete, record.answer, record.calls) == (True, "7", CALLS)
    assert folder / str(record.trace) != first
    # What was paid in vain is not lost sight of.
    assert progress.spent_usd == pytest.approx((record.usd or 0.0) + lost)
    assert RunFolder.open(folder).spent_usd() == pytest.approx(progress.spent_usd)


@pytest.mark.deep
def test_a_sample_that_the_money_did_not_last_for_goes_on_with_more(
    config: RunConfig, tmp_path: Path, openai_server: OpenAiChatServer
) -> None:
    folder = tmp_path / "run"
    # A call may cost more than four dollars.
    progress = start(replace(config, max_usd=4.11), folder)
    assert progress.stopped == "budget_usd"
    record = only(folder)
    assert record.error is not None
    assert (record.error.kind, record.calls) == (BUDGET, len(openai_server.received))
    assert 0 < record.calls < CALLS
    records = (folder / "samples.jsonl").read_bytes()
    assert resume(folder, max_usd=100.0).is_complete
    assert len(openai_server.received) == only(folder).calls == CALLS
    seconds = read_trace(trace_of(folder)).events[-1].seconds
    assert RunFolder.open(folder).spent_usd() == pytest.approx(USD * CALLS)
    # Killed before it came to another record it had been paid for all the same.
    (folder / "samples.jsonl").write_bytes(records)
    assert RunFolder.open(folder).spent_usd() == pytest.approx(USD * CALLS)
    assert resume(folder, max_usd=100.0).is_complete
    assert len(openai_server.received) == CALLS
    assert only(folder).seconds == pytest.approx(seconds)


def test_documents_that_changed_since_a_sample_was_begun_are_refused(
    killed: Killed, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = killed(9)
    monkeypatch.setattr(Toy, "_documents", lambda self, key: [("1.txt", "something else\n")])
    with pytest.raises(RunFolderError, match="the documents of 1024/0 changed"):
        resume(folder)


@pytest.mark.deep
def test_a_sample_that_failed_is_asked_anew(
    config: RunConfig, tmp_path: Path, openai_server: OpenAiChatServer
) -> None:
    folder = tmp_path / "run"
    openai_server.script = lambda request: (
        failed(400, "no such thing") if request.turn == 0 else spreads.script(request)
    )
    assert start(config, folder).errors == 1
    openai_server.received.clear()
    openai_server.script = spreads.script
    assert resume(folder).is_complete
    assert len(openai_server.received) == CALLS
    assert len(list(folder.glob("traces/*/*.jsonl"))) == 2
