"""What a provider refuses for good stops a batch; what it refuses of one prompt does not."""

from __future__ import annotations

import ast
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag import Limits, SearchableCorpus
from rlm_rag.engine.refusals import Batch, Refusals
from rlm_rag.errors import ContentRefusedError, ModelKeyError, ModelNotFoundError
from tests.engine.play import CHILD_MARK, block, first_prompt, leaves, play
from tests.servers.loopback import Received, Step, failed, reply
from tests.servers.openai_chat import OpenAiChatServer

WIDTH = 4
FEW = Limits(concurrency=WIDTH, live_children=WIDTH, calls=500)
BATCH = (
    "rs = llm_query_batched([f'prompt {n}' for n in range(100)])\n"
    "print(len(rs), sum(r.ok for r in rs), rs[0], rs[-1])"
)
COUNTED = "FINAL(str([sum(r.ok for r in rs), rs[0].error, rs[-1].error]))"


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    with rlm_rag.load([{"path": "a.md", "content": "Alpha.\n"}]) as loaded:
        yield loaded


@pytest.mark.parametrize("status", [401, 404])
def test_of_a_batch_nothing_more_is_sent_once_the_key_or_the_model_is_refused(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, status: int
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[block(BATCH), block(COUNTED)],
        leaf=lambda prompt: failed(status, "no such thing"),
        limits=FEW,
    )
    assert 1 <= len(leaves(openai_server)) <= WIDTH
    answered, first, last = ast.literal_eval(found.text)
    assert answered == 0
    assert f"answered {status}" in first
    assert f"answered {status}" in last
    assert last.startswith("not sent: ")
    # What was not sent is not counted.
    assert found.usage.calls == len(openai_server.received)
    assert found.stop_reason == "answered"


def test_a_failed_reply_says_how_many_requests_were_sent_for_it(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    asked = (
        "rs = llm_query_batched(['one', ''])\n"
        "rs += [map_files([{'path': 'b.md', 'content': 'two'}], 'what?')['b.md']]\n"
        "FINAL(str([r.usage['calls'] for r in rs if not r.ok]))"
    )
    found = play(
        openai_server,
        corpus,
        root=[block(asked)],
        leaf=lambda prompt: failed(400, "the content policy forbids it", code="content_filter"),
    )
    assert ast.literal_eval(found.text) == [1, 0, 1]
    assert found.usage.calls == len(openai_server.received) == 3


def test_the_next_block_asks_once_more(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    mended: list[bool] = []

    def leaf(prompt: str) -> Step:
        return reply("well") if mended else failed(401, "bad key")

    def root(first: str, turn: int) -> Step:
        if turn == 1:
            mended.append(True)
        return block(COUNTED if turn == 2 else BATCH)

    found = play(openai_server, corpus, root=root, leaf=leaf, limits=FEW)
    assert ast.literal_eval(found.text)[0] == 100


def test_calls_of_one_block_that_are_made_one_by_one_are_a_batch(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[
            block("rs = [llm_query(f'prompt {n}') for n in range(20)]"),
            block(COUNTED),
        ],
        leaf=lambda prompt: failed(404, "no such model"),
    )
    assert len(leaves(openai_server)) == 1
    assert ast.literal_eval(found.text)[0] == 0


def test_a_prompt_that_a_policy_refuses_keeps_no_other_from_being_sent_and_is_not_repeated(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[block(BATCH), block(COUNTED)],
        leaf=lambda prompt: (
            failed(400, "the content policy forbids it", code="content_filter")
            if prompt in ("prompt 0", "prompt 7")
            else reply("yes")
        ),
        limits=FEW,
    )
    assert sorted(leaves(openai_server)) == sorted(f"prompt {n}" for n in range(100))
    assert ast.literal_eval(found.text)[0] == 98


def test_another_model_that_a_block_names_is_asked_all_the_same(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    def script(request: Received) -> Step | str:
        if first_prompt(request):
            code = "print(len([llm_query_batched(['a', 'b'], model=m) for m in ('one', 'two')]))"
            return block(code) if request.turn == 0 else reply("FINAL('done')")
        return failed(404, "gone") if request.json["model"] == "one" else reply("yes")

    openai_server.script = script
    rlm_rag.ask(
        corpus,
        "What?",
        model="test",
        allow_models=["one", "two"],
        api_base=openai_server.api_base,
        strategy="rlm",
        limits=Limits(concurrency=1),
        trace=False,
    )
    asked = [r.json["model"] for r in openai_server.received if not first_prompt(r)]
    assert asked == ["one", "two", "two"]


def test_children_of_a_batch_are_not_started_for_a_model_that_is_refused(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    batch = "rs = rlm_query_batched([f'Look {n}.' for n in range(30)])"
    found = play(
        openai_server,
        corpus,
        root=[block(batch), block(COUNTED)],
        child=lambda first, turn: failed(401, "bad key"),
        limits=FEW,
        trace=tmp_path,
    )
    asked = [r for r in openai_server.received if CHILD_MARK in first_prompt(r)]
    assert 1 <= len(asked) <= WIDTH
    answered, first, last = ast.literal_eval(found.text)
    assert answered == 0
    assert "answered 401" in first
    assert "not sent: " in last
    events = [json.loads(line) for line in Path(str(found.trace)).read_text().splitlines()]
    assert sum(event["type"] == "run" for event in events) <= 1 + WIDTH


@pytest.mark.deep
def test_a_batch_for_a_port_where_nothing_listens_waits_once_for_all_and_not_for_each(
    corpus: SearchableCorpus,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    api_base = f"http://127.0.0.1:{port}/v1"
    limits = Limits(calls=500)
    started = time.monotonic()
    with rlm_rag.Repl(corpus, model="test", api_base=api_base, limits=limits) as repl:
        shown = repl.run(BATCH).stdout
    assert shown.startswith("100 0 ")
    assert shown.count("connection was refused") == 2
    # One prompt alone waits 1.75 to 3.5 s in all before its fourth request.
    assert time.monotonic() - started < 15


def test_a_refusal_holds_for_its_batch_and_its_model_alone() -> None:
    refusals, batch = Refusals(), Batch("run", 1)
    refusals.note(batch, "m", ModelKeyError("no", hint="look at it"))
    refusals.note(batch, "m", ModelNotFoundError("later"))
    refusals.note(batch, "other", ContentRefusedError("no"))
    refusals.note(None, "m", ModelKeyError("no"))
    with pytest.raises(ModelKeyError, match=r"^not sent: no$") as refused:
        refusals.check(batch, "m")
    assert refused.value.hint == "look at it"
    for there, model in (
        (batch, "other"),
        (Batch("run", 2), "m"),
        (Batch("b", 1), "m"),
        (None, "m"),
    ):
        refusals.check(there, model)
