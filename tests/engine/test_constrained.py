"""Replies that are all JSON: the server is asked to hold them to the schema, where it can."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rlm_rag
from rlm_rag import Answer, Limits, SearchableCorpus
from rlm_rag.trace import events
from rlm_rag.trace.reader import read_trace
from tests.engine.play import QUESTION, block, play
from tests.servers.loopback import Received, Step, failed, reply
from tests.servers.openai_chat import OpenAiChatServer

SCHEMA = {
    "type": "object",
    "properties": {"port": {"type": "integer"}, "source": {"type": "string"}},
    "required": ["port", "source"],
}
GOOD = {"port": 80, "source": 'In a.md:3: "The port of it is 80 today."'}
WANTED = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
NOTE = "The port of it is 80 today. a.md:3"


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    text = "# A\n\nThe port of it is 80 today.\n"
    with rlm_rag.load([{"path": "a.md", "content": text}]) as loaded:
        yield loaded


def is_leaf(request: Received) -> bool:
    return "JSON schema" not in json.dumps(request.messages)


def ask(
    server: OpenAiChatServer,
    corpus: SearchableCorpus,
    *replies: Any,
    strategy: str = "direct",
    refusal: Step | None = None,
    **options: Any,
) -> Answer:
    """Ask for SCHEMA; with a `refusal` the server takes no request that has one."""
    left = list(replies or (GOOD,))

    def script(request: Received) -> Any:
        if is_leaf(request):
            return reply(NOTE)
        if refusal is not None and "response_format" in request.json:
            return refusal
        said = left.pop(0)
        return reply(said if isinstance(said, str) else json.dumps(said))

    server.script = script
    options = {"trace": False, "context_window": 8192, "api_base": server.api_base} | options
    return rlm_rag.ask(corpus, QUESTION, strategy=strategy, schema=SCHEMA, model="test", **options)


def formats(server: OpenAiChatServer) -> list[Any]:
    """What each root request asked its reply to be held to."""
    return [each.json.get("response_format") for each in server.received if not is_leaf(each)]


def sent(answer: Answer) -> tuple[events.CallSent, ...]:
    assert answer.trace is not None
    return read_trace(Path(answer.trace)).of_type(events.CallSent)


@pytest.mark.parametrize("strategy", ["direct", "map-reduce"])
def test_the_first_call_for_the_answer_has_the_schema_and_no_other(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, strategy: str, tmp_path: Path
) -> None:
    found = ask(openai_server, corpus, strategy=strategy, trace=tmp_path)
    assert (found.data, formats(openai_server)) == (GOOD, [WANTED])
    leaves = [each.json for each in openai_server.received if is_leaf(each)]
    assert len(leaves) == (strategy == "map-reduce")
    assert not any("response_format" in each for each in leaves)
    assert [(call.role, call.constrained) for call in sent(found)][-1] == ("root", True)
    assert found.by_role["root"].calls == 1


def test_a_reply_may_be_a_search_until_there_is_none(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    searches = ["SEARCH: port", "SEARCH: harbour"]
    assert ask(openai_server, corpus, *searches, GOOD, strategy="retrieve").data == GOOD
    assert formats(openai_server) == [None, None, WANTED]


def test_what_asks_again_for_the_form_has_the_schema(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    assert ask(openai_server, corpus, "Port 80.", GOOD, strategy="retrieve").data == GOOD
    assert formats(openai_server) == [None, WANTED]


def test_blocks_are_written_freely_and_the_last_call_at_a_limit_is_not(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    root = [block("x = 1"), reply(json.dumps(GOOD))]
    found = play(openai_server, corpus, root=root, schema=SCHEMA, limits=Limits(iterations=1))
    assert (found.stop_reason, found.data) == ("iterations", GOOD)
    assert formats(openai_server) == [None, WANTED]


def test_without_a_schema_nothing_is_asked_for(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    play(openai_server, corpus, root=[reply(NOTE)], strategy="direct")
    assert formats(openai_server) == []
    assert "response_format" not in openai_server.received[-1].json


@pytest.mark.parametrize(
    "refusal",
    [
        failed(400, "response_format is not supported"),
        failed(400, "JSON schema conversion failed: Unsupported $ref"),
        failed(404, "model test does not know the parameter response_format"),
        failed(422, "extra fields not permitted"),
    ],
)
def test_a_server_that_refuses_is_asked_once_with_it_and_then_without(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, refusal: Step, tmp_path: Path
) -> None:
    found = ask(openai_server, corpus, {"port": "80"}, GOOD, refusal=refusal, trace=tmp_path)
    assert (found.data, found.warnings) == (GOOD, ())
    assert formats(openai_server) == [WANTED, None, None]
    assert [call.constrained for call in sent(found)] == [True, False, False]
    assert found.usage.calls == 3
    assert rlm_rag.replay(Path(found.trace or ""), corpus).data == GOOD
    assert len(openai_server.received) == 3


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_a_limit_of_calls_is_kept_and_still_leaves_an_answer(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, calls: int
) -> None:
    refusal = failed(400, "no response_format here")
    found = ask(openai_server, corpus, refusal=refusal, limits=Limits(calls=calls))
    assert found.data == GOOD
    assert found.usage.calls <= calls


def test_another_refusal_is_told_as_it_is(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    with pytest.raises(rlm_rag.errors.ModelKeyError):
        ask(openai_server, corpus, refusal=failed(401, "no such key"))
    assert formats(openai_server) == [WANTED]


def test_the_callers_own_format_is_left_alone(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    own = {"type": "json_object"}
    ask(openai_server, corpus, model_options={"response_format": own})
    assert formats(openai_server) == [own]


@pytest.mark.parametrize("refuses", [False, True])
def test_a_run_that_is_repeated_finds_its_replies(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path, refuses: bool
) -> None:
    options: dict[str, Any] = {"cache": tmp_path / "cache.sqlite"}
    if refuses:
        options["refusal"] = failed(400, "no response_format here")
    first = ask(openai_server, corpus, **options)
    before = len(openai_server.received)
    again = ask(openai_server, corpus, **options)
    assert (first.data, again.data) == (GOOD, GOOD)
    assert len(openai_server.received) == before
    assert (again.usage.calls, again.usage.cached_calls) == (0, 1)


def test_a_schema_counts_in_the_prompt_where_limits_are_kept(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    limits = Limits(tokens=20_000)
    found = ask(openai_server, corpus, trace=tmp_path, limits=limits)
    refusal = failed(400, "no response_format here")
    plain = ask(openai_server, corpus, trace=tmp_path, limits=limits, refusal=refusal)
    with_it, without = (sent(each)[-1].estimate["input_tokens"] for each in (found, plain))
    assert 20 < with_it - without < 100
    assert replace(plain.usage, calls=1) == found.usage
