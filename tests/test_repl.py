"""The REPL of the library: blocks without a root model."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag import Limits, Repl, SearchableCorpus
from rlm_rag.errors import UsageError
from tests.engine.play import block as fenced
from tests.engine.play import first_prompt
from tests.servers.loopback import Received, Step, reply
from tests.servers.openai_chat import OpenAiChatServer


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    with rlm_rag.load([{"path": "a.md", "content": "# A\n\nThe port is 80.\n"}]) as loaded:
        yield loaded


def test_blocks_run_and_leave_variables_without_any_model(corpus: SearchableCorpus) -> None:
    with Repl(corpus) as repl:
        result = repl.run("hits = search('port')\nprint(hits[0]['path'])\nlen(context)")
        assert (result.stdout, result.value, result.error) == ("a.md\n", "1", None)
        failed = repl.run("kept = 1\n1 / 0")
        assert failed.error is not None
        assert failed.error.type == "ZeroDivisionError"
        assert repl.run("kept, read('a.md', 3)").value == "(1, '3: The port is 80.')"
        answer = repl.run("FINAL(hits)").answer
        assert answer is not None
        assert answer.ready
        for ask in ("llm_query('x')", "rlm_query('x')", "llm_query_batched(['x'])[0]"):
            said = repl.run(f"r = {ask}\nprint(r.ok, r.error)").stdout
            assert said.startswith("False")
            assert "no model is set; give Repl(corpus, model=...) one" in said
    assert len(corpus) == 1
    with pytest.raises(UsageError, match="closed"):
        repl.run("1")
    repl.close()


def test_a_model_that_is_given_serves_sub_calls_and_children_within_the_limits(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    def script(request: Received) -> Step:
        return fenced("FINAL('from a child')") if first_prompt(request) else reply("from a leaf")

    openai_server.script = script
    with Repl(
        corpus, model="test", api_base=openai_server.api_base, limits=Limits(calls=3)
    ) as repl:
        assert repl.run("print(llm_query('a'), rlm_query('b'))").stdout == (
            "from a leaf from a child\n"
        )
        assert repl.usage.calls == 2
        assert "limit" in repl.run("print([llm_query('c').error for _ in range(2)][1])").stdout


def test_tools_and_artifacts_are_there_too(corpus: SearchableCorpus, tmp_path: Path) -> None:
    def double(value: int) -> int:
        return value * 2

    with Repl(corpus, tools=[double], artifacts=tmp_path) as repl:
        assert repl.run("double(21)").value == "42"
        assert repl.run("save_artifact('a.txt', 'x')").value == "saved a.txt (1 characters)"
    assert (tmp_path / "a.txt").read_text() == "x"


def test_it_works_in_a_running_loop_and_a_block_can_be_cancelled(corpus: SearchableCorpus) -> None:
    async def use(repl: Repl) -> str | None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(repl.run_async("kept = 7\nwhile True: pass"), 0.5)
        return (await repl.run_async("kept")).value

    with Repl(corpus) as repl:
        assert asyncio.run(use(repl)) == "7"


def test_a_block_is_bounded_by_cell_seconds(corpus: SearchableCorpus) -> None:
    with Repl([{"path": "b.md", "content": "x\n"}], limits=Limits(cell_seconds=0.3)) as repl:
        error = repl.run("while True: pass").error
        assert error is not None
        assert error.type == "Timeout"


def test_one_that_nobody_closed_ends_its_worker(corpus: SearchableCorpus) -> None:
    repl = Repl(corpus)
    session = repl._bare._repl.session
    assert session._peer is not None
    del repl
    gc.collect()
    deadline = time.monotonic() + 5
    while session._peer is not None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert session._peer is None


def test_a_block_that_is_no_text_is_refused() -> None:
    with Repl({"a.md": "text"}) as repl, pytest.raises(UsageError, match="not NoneType"):
        repl.run(None)  # type: ignore[arg-type]
