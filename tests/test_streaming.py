"""Runs as streams of their events, left early or cancelled at any point."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import rlm_rag
from rlm_rag import RLM, Answer, SearchableCorpus
from rlm_rag.errors import SourceError, UsageError
from rlm_rag.trace.events import Answered, BlockStarted, CallSent, RunStarted
from tests.engine.play import block
from tests.servers.loopback import Received, Step, reply
from tests.servers.openai_chat import OpenAiChatServer

QUESTION = "What does it say?"
# More than a machine takes that does other things too; the block that is left would go on for two
# minutes.
SOON_SECONDS = 20.0


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    with rlm_rag.load([{"path": "a.md", "content": "# A\n\nThe port is 80.\n"}]) as loaded:
        yield loaded


@pytest.fixture
def rlm(openai_server: OpenAiChatServer) -> RLM:
    openai_server.script = [block("print(search('port')[0]['path'])"), block("FINAL('80')")]
    return RLM("test", api_base=openai_server.api_base, strategy="rlm", trace=False)


def test_a_stream_tells_every_event_and_ends_with_the_answer(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    heard: list[str] = []
    openai_server.script = [block("print(1)"), block("FINAL('80')")]
    rlm = RLM(
        "test",
        api_base=openai_server.api_base,
        strategy="rlm",
        trace=False,
        on_event=lambda event: heard.append(event.type),
    )
    *told, answer = rlm.stream(corpus, QUESTION)
    assert isinstance(answer, Answer)
    assert (answer.text, answer.stop_reason) == ("80", "answered")
    assert [event.type for event in told if not isinstance(event, Answer)] == heard
    assert isinstance(told[0], RunStarted)
    assert isinstance(told[-1], Answered)


def test_an_asynchronous_stream_works_in_the_callers_loop_beside_others(
    rlm: RLM, openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    def script(request: Received) -> Step:
        return block("FINAL('80')")

    openai_server.script = script

    async def one() -> list[object]:
        return [item async for item in rlm.stream_async(corpus, QUESTION)]

    async def both() -> list[list[object]]:
        return list(await asyncio.gather(one(), one()))

    for told in asyncio.run(both()):
        assert isinstance(told[-1], Answer)
        assert told[-1].text == "80"
        assert len(told) > 5


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "sum(range(10**12))",
        "llm_query('hang')",
    ],
    ids=["loop", "stubborn loop", "one long call", "a sub-call that hangs"],
)
def test_a_run_that_is_cancelled_in_a_block_returns_what_there_is_soon(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, code: str
) -> None:
    def script(request: Received) -> Step:
        if request.messages[0]["role"] != "system":
            return reply("late", delay_seconds=30)
        return block("answer['content'] = 'so far'" if request.turn == 0 else code)

    openai_server.script = script
    rlm = RLM("test", api_base=openai_server.api_base, strategy="rlm", trace=False)
    stream = rlm.stream(corpus, QUESTION)
    assert any(isinstance(event, BlockStarted) and event.block == 2 for event in stream)
    time.sleep(0.2)
    began = time.monotonic()
    stream.cancel()
    *_, answer = stream
    assert time.monotonic() - began < SOON_SECONDS
    assert isinstance(answer, Answer)
    assert (answer.text, answer.stop_reason) == ("so far", "interrupted")


def test_a_run_whose_model_hangs_is_cancelled_soon(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    openai_server.script = lambda request: reply("late", delay_seconds=30)
    rlm = RLM("test", api_base=openai_server.api_base, strategy="rlm", trace=False)
    stream = rlm.stream(corpus, QUESTION)
    assert any(isinstance(event, CallSent) for event in stream)
    began = time.monotonic()
    stream.cancel()
    *_, answer = stream
    assert time.monotonic() - began < SOON_SECONDS
    assert isinstance(answer, Answer)
    assert (answer.stop_reason, answer.iterations) == ("interrupted", 1)


def hanging(server: OpenAiChatServer) -> tuple[RLM, threading.Event]:
    """A model that loops in its first block, and what is set once such a run has ended."""
    ended = threading.Event()
    server.script = lambda request: block("while True: pass")
    rlm = RLM(
        "test",
        api_base=server.api_base,
        strategy="rlm",
        trace=False,
        on_event=lambda event: ended.set() if isinstance(event, Answered) else None,
    )
    return rlm, ended


def leave_loop(rlm: RLM, corpus: SearchableCorpus) -> None:
    for event in rlm.stream(corpus, QUESTION):
        if isinstance(event, BlockStarted):
            break


def leave_async_loop(rlm: RLM, corpus: SearchableCorpus) -> None:
    async def leave() -> None:
        async for event in rlm.stream_async(corpus, QUESTION):
            if isinstance(event, BlockStarted):
                break

    asyncio.run(leave())


def leave_body(rlm: RLM, corpus: SearchableCorpus) -> None:
    with pytest.raises(KeyError), rlm.stream(corpus, QUESTION) as stream:
        for event in stream:
            if isinstance(event, BlockStarted):
                raise KeyError


def cancel_task(rlm: RLM, corpus: SearchableCorpus) -> None:
    async def take() -> None:
        async for _ in rlm.stream_async(corpus, QUESTION):
            pass

    async def cancel() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(take(), 0.5)

    asyncio.run(cancel())


@pytest.mark.parametrize("leave", [leave_loop, leave_async_loop, leave_body, cancel_task])
def test_leaving_a_stream_early_ends_its_run_soon(
    openai_server: OpenAiChatServer,
    corpus: SearchableCorpus,
    leave: Callable[[RLM, SearchableCorpus], None],
) -> None:
    rlm, ended = hanging(openai_server)
    leave(rlm, corpus)
    gc.collect()
    assert ended.wait(SOON_SECONDS)


def test_what_the_run_raises_the_iteration_raises(rlm: RLM, corpus: SearchableCorpus) -> None:
    with pytest.raises(UsageError, match="question is empty"):
        list(rlm.stream(corpus, "  "))
    with pytest.raises(SourceError):
        list(rlm.stream("/no/such/folder", QUESTION))
    with pytest.raises(UsageError, match="schema"):
        list(rlm.stream(corpus, QUESTION, schema={"type": "nonsense"}))


def test_a_stream_that_is_over_stays_over_and_can_be_closed(
    rlm: RLM, corpus: SearchableCorpus
) -> None:
    stream = rlm.stream([{"path": "a.md", "content": "The port is 80.\n"}], QUESTION)
    assert isinstance(list(stream)[-1], Answer)
    assert list(stream) == []
    stream.cancel()
    stream.close()
