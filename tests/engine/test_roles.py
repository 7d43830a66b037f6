"""Messages to a provider alternate in role, whatever happened in a turn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

import rlm_rag
from rlm_rag import Limits, SearchableCorpus
from tests.engine.play import block, play
from tests.servers.loopback import Step, reply
from tests.servers.openai_chat import OpenAiChatServer


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    with rlm_rag.load([{"path": "a.md", "content": "# A\n\nThe port is 80.\n"}]) as loaded:
        yield loaded


TURNS: tuple[Step, ...] = (
    reply(""),
    reply("   \n"),
    reply("I think it is 80."),
    block("1 / 0"),
    reply("```repl\nprint(1)\n```\n```repl\n1 / 0\n```\n```repl\nprint(3)\n```"),
    reply("```repl\nprint('cut", finish_reason="length"),
    block("answer['ready'] = True"),
    reply("FINAL()"),
    block("FINAL('a.md:99 says so')"),
    block("import os\nos._exit(1)"),
    block("print(llm_query([{'role': 'user', 'content': 'a'}, {'role': 'user', 'content': 'b'}]))"),
    block("print(llm_query([{'role': 'assistant', 'content': 'a'}]))"),
    block("print(rlm_query('Look.'))"),
    block("print('\\ud800 alone')"),
)


def test_roles_alternate_through_every_kind_of_turn(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[*TURNS, reply("the last word")],
        child=[reply(""), block("FINAL('from a child')")],
        limits=Limits(iterations=len(TURNS), errors=50),
    )
    assert found.stop_reason in ("iterations", "answered")
    assert len(openai_server.received) >= len(TURNS) + 3
    for request in openai_server.received:
        roles = [message["role"] for message in request.messages]
        if roles[0] == "system":
            roles = roles[1:]
        assert "system" not in roles
        assert (roles[0], roles[-1]) == ("user", "user")
        assert all(one != other for one, other in pairwise(roles)), roles
        assert all(message["content"].strip() for message in request.messages)


@pytest.mark.parametrize("strategy", ["direct", "retrieve", "map-reduce"])
def test_roles_alternate_where_an_answer_without_a_repl_is_questioned(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, strategy: str
) -> None:
    openai_server.script = lambda request: reply(
        "" if len(request.messages) < 4 else "It is 80: a.md:99."
    )
    rlm_rag.ask(
        corpus,
        "Which port?",
        model="test",
        api_base=openai_server.api_base,
        strategy=strategy,
        trace=False,
        schema={"type": "object"},
    )
    assert len(openai_server.received) > 1
    for request in openai_server.received:
        roles = [message["role"] for message in request.messages]
        assert roles[-1] == "user"
        assert all(one != other for one, other in pairwise(roles)), roles


def test_a_model_that_says_nothing_twice_leaves_the_passages(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    openai_server.script = lambda request: reply("")
    found = rlm_rag.ask(
        corpus,
        "Which port?",
        model="test",
        api_base=openai_server.api_base,
        strategy="retrieve",
        trace=False,
    )
    assert (found.stop_reason, found.found) == ("errors", False)
    assert "The port is 80." in found.text
    assert len(openai_server.received) == 2
