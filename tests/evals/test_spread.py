"""Samples on nodes that die: the next node goes on with them, and pays for no reply twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_rag.distributed import spreading
from rlm_rag.evals.config import Models, RunConfig
from rlm_rag.evals.record import Record
from rlm_rag.evals.run_folder import RunFolder
from rlm_rag.evals.runner import Progress, start
from rlm_rag.trace.events import Answered, BlockOutput, CallSent, ReplyReceived, RunStarted
from rlm_rag.trace.reader import read_trace
from tests.distributed.near import NearFanOut
from tests.evals.toys import Toy, install
from tests.servers.loopback import Received, Step, reply
from tests.servers.openai_chat import OpenAiChatServer

CALLS = 6
USD = 0.007
LOOK = "print(search('number')[0]['path'], llm_query(f'one of {context[0]}'))"
BATCH = "replies = llm_query_batched(['two', 'three'])\nprint(replies)\nFINAL('7')"


def script(request: Received) -> Step:
    if request.messages[0]["role"] != "system":
        return reply("leaf")
    return reply(f"```repl\n{[LOOK, 'x = 1', BATCH][request.turn]}\n```")


def spread(
    server: OpenAiChatServer,
    patch: pytest.MonkeyPatch,
    folder: Path,
    deaths: list[int | None],
    samples: int,
) -> tuple[Progress, list[Record]]:
    """Ask samples one after another, of which each gives nodes of its own."""
    server.script = script
    install(patch, Toy(per_haystack=samples))
    patch.setattr(spreading, "_joined", ("local", NearFanOut(*deaths)))
    config = RunConfig(
        tasks=("toy",),
        strategies=("rlm",),
        count=samples,
        parallel=1,
        max_usd=100.0,
        models=Models(model="m", api_base=server.api_base, price="0/1000"),
    )
    progress = start(config, folder, ray="local")
    return progress, list(RunFolder.open(folder).records().values())


def check(
    points: list[int], server: OpenAiChatServer, patch: pytest.MonkeyPatch, folder: Path
) -> int:
    """Have a sample die after so many events each; return how many calls were under way then."""
    deaths = [each for point in points for each in (point, None)]
    progress, records = spread(server, patch, folder, deaths, len(points))
    assert progress.is_complete
    lost = 0
    for record in records:
        trace = read_trace(folder / str(record.trace))
        replies = {(each.run, each.call) for each in trace.of_type(ReplyReceived)}
        assert len(replies) == len(trace.of_type(ReplyReceived)) == record.calls == CALLS
        assert (record.root.calls, record.sub.calls) == (3, 3)
        assert len(trace.of_type(RunStarted)) == len(trace.of_type(Answered)) == 1
        assert [each.error for each in trace.of_type(BlockOutput)] == [None] * 3
        under_way = len(trace.of_type(CallSent)) - CALLS
        # What died with its node counts at the most that it may have cost.
        usd = pytest.approx(USD * CALLS)
        assert record.usd is not None
        assert record.usd > USD * CALLS + 1 if under_way else record.usd == usd
        lost += under_way
    # The provider saw each prompt once, but those that were under way as their node died.
    assert CALLS * len(points) <= len(server.received) <= CALLS * len(points) + lost
    if not lost:
        assert progress.spent_usd == pytest.approx(sum(record.usd or 0 for record in records))
    return lost


def test_a_sample_goes_on_from_what_it_had_told(
    openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert check([1, 8, 15], openai_server, monkeypatch, tmp_path / "run") == 0


@pytest.mark.deep
def test_a_sample_goes_on_wherever_it_was(
    openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert 1 <= check(list(range(1, 26)), openai_server, monkeypatch, tmp_path / "run") <= 9


def test_a_sample_whose_block_does_something_else_the_second_time_is_begun_anew(
    openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # What a block takes from chance cannot be repeated.
    monkeypatch.setattr(f"{__name__}.LOOK", "import os\nprint(llm_query(os.urandom(4).hex()))")
    progress, (record,) = spread(openai_server, monkeypatch, tmp_path / "run", [12, None, None], 1)
    assert progress.is_complete
    assert (record.error, record.calls, record.answer) == (None, CALLS, "7")
    assert len(list((tmp_path / "run" / "traces").glob("*/*.jsonl"))) == 2
    assert progress.spent_usd > record.usd
    assert RunFolder.open(tmp_path / "run").spent_usd() == pytest.approx(progress.spent_usd)
