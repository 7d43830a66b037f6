"""`ask`: a model's answer, told of as it is sought, and given up when the client says so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client

from rlm_rag import RLM, Answer, Limits
from rlm_rag.mcp import asking
from rlm_rag.mcp.replies import MAX_REPLY_CHARS
from tests.cli.processes import KEY
from tests.engine.play import block
from tests.mcp.clients import text_of, with_client
from tests.servers.loopback import Received, Step, failed, reply
from tests.servers.openai_chat import OpenAiChatServer

CORPUS = {"a.md": "# A\n\nThe port is 8080.\n"}
QUESTION = {"question": "Which port?"}
ANSWER = 'FINAL("The port is 8080 (`a.md:3`).")'
# A second, and as much again for a machine that does other things too.
SOON_SECONDS = 2.0


def asked(server: OpenAiChatServer, **options: Any) -> RLM:
    return RLM("test", api_base=server.api_base, strategy="rlm", trace=False, **options)


def use_ask(rlm: RLM, use: Callable[[Client], Any]) -> Any:
    return with_client(CORPUS, use, rlm=rlm)


def test_an_answer_comes_with_citations_and_is_told_of_as_it_is_sought(
    openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "TELL_SECONDS", 0.0)
    openai_server.script = [block("print(search('port'))"), block(ANSWER)]
    told: list[tuple[float, str]] = []

    async def hear(steps: float, total: float | None, message: str | None) -> None:
        assert total is None
        told.append((steps, message or ""))

    async def use(client: Client) -> None:
        tool = {tool.name: tool for tool in (await client.list_tools()).tools}["ask"]
        assert tool.annotations is not None
        assert not tool.annotations.read_only_hint
        assert tool.annotations.open_world_hint
        result = await client.call_tool("ask", QUESTION, progress_callback=hear)
        assert not result.is_error
        data = result.structured_content
        assert data is not None
        jsonschema.validate(data, tool.output_schema)
        assert data["citations"][0] == {
            "path": "a.md",
            "line": 3,
            "end_line": 3,
            "quote": None,
            "status": "located",
            "verified": True,
        }
        assert (data["stop_reason"], data["usage"]["calls"]) == ("answered", 2)
        assert text_of(result).startswith("The port is 8080")
        assert "a.md:3-3  [located]" in text_of(result)

    use_ask(asked(openai_server), use)
    steps = [number for number, _ in told]
    assert steps == sorted(set(steps))
    assert any("turn 1: running code, 1 search, 18 tokens" in message for _, message in told)
    assert any("turn 2: asking the model" in message for _, message in told)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("llm_query('hang')", id="call"),
        pytest.param("while True: pass", id="block", marks=pytest.mark.deep),
    ],
)
def test_a_cancelled_question_ends_soon_and_pays_for_nothing_more(
    openai_server: OpenAiChatServer, code: str
) -> None:
    def script(request: Received) -> Step:
        if request.messages[0]["role"] != "system":
            return reply("late", delay_seconds=30)
        return block(code)

    openai_server.script = script
    began = 0.0

    async def use(client: Client) -> None:
        nonlocal began
        running = asyncio.Event()

        async def hear(steps: float, total: float | None, message: str | None) -> None:
            if message and "running code" in message:
                running.set()

        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "ask", QUESTION, None, hear)
            await running.wait()
            await asyncio.sleep(0.1)
            began = time.monotonic()
            group.cancel_scope.cancel()
        # The same server goes on.
        assert not (await client.call_tool("read", {"path": "a.md"})).is_error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asking, "TELL_SECONDS", 0.0)
        use_ask(asked(openai_server), use)
    assert time.monotonic() - began < SOON_SECONDS
    paid = len(openai_server.received)
    time.sleep(0.3)
    assert len(openai_server.received) == paid <= 2


def test_a_limit_is_a_result_that_says_so(openai_server: OpenAiChatServer) -> None:
    openai_server.script = lambda request: block("answer['content'] = 'so far'")

    async def use(client: Client) -> None:
        result = await client.call_tool("ask", QUESTION)
        assert not result.is_error
        assert result.structured_content is not None
        assert result.structured_content["stop_reason"] == "iterations"
        assert "stopped early (iterations)" in text_of(result)

    use_ask(asked(openai_server, limits=Limits(iterations=2)), use)


def test_a_provider_that_refuses_is_an_error_without_the_key(
    openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLM_RAG_API_KEY", KEY)
    openai_server.script = lambda request: failed(401, f"the key {KEY} is not known")

    async def use(client: Client) -> None:
        result = await client.call_tool("ask", QUESTION)
        assert result.is_error
        assert KEY not in text_of(result)
        assert "key" in text_of(result)

    use_ask(asked(openai_server), use)


def test_an_answer_without_end_is_cut_and_says_so() -> None:
    found = asking._reply(
        Answer(text="so " * 30_000, stop_reason="answered", model="test", warnings=("first",))
    )
    assert len(found.data["answer"]) == MAX_REPLY_CHARS
    cut = "the answer has 90,000 characters, of which these are the first"
    assert found.data["warnings"] == ["first", cut]
    assert found.text.endswith(f"(first; {cut})")


@pytest.mark.deep
def test_questions_are_answered_side_by_side(openai_server: OpenAiChatServer) -> None:
    waiting: list[Received] = []

    def script(request: Received) -> Step:
        waiting.append(request)
        return reply(f"```repl\n{ANSWER}\n```", delay_seconds=0.3)

    openai_server.script = script

    async def use(client: Client) -> None:
        results = await asyncio.gather(
            *(client.call_tool("ask", QUESTION) for _ in range(3)),
            client.call_tool("search", {"query": "port"}),
        )
        assert not any(result.is_error for result in results)

    use_ask(asked(openai_server), use)
    assert openai_server.most_in_flight == 3
