"""Answers that are questioned before they are accepted, in whole runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlm_rag
from rlm_rag import Limits, SearchableCorpus
from tests.engine.play import block, play
from tests.servers.loopback import failed, reply
from tests.servers.openai_chat import OpenAiChatServer

TEXT = "".join(f"record {n} of user {n % 7}\n" for n in range(50))


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    with rlm_rag.load([{"path": "data/records.txt", "content": TEXT}]) as loaded:
        yield loaded


LOOK = block("print(search('record'))")
FALSE = 'FINAL(It is "a quote that is nowhere at all" in `data/records.txt:2`.)'
GOOD = 'FINAL(It is "record 1 of user 1" in `data/records.txt:2`.)'


def test_false_citations_go_back_to_the_model_once(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(openai_server, corpus, root=[LOOK, reply(FALSE), reply(GOOD)])
    assert found.stop_reason == "answered"
    assert found.citations[0].status == "verified"
    assert "word for word" in openai_server.prompts[2]


def test_an_answer_before_any_look_is_questioned_once(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(openai_server, corpus, root=[reply("FINAL(It is a list.)"), LOOK, reply(GOOD)])
    assert "You have not looked" in openai_server.prompts[1]
    assert found.citations[0].status == "verified"
    insists = play(openai_server, corpus, root=[reply("FINAL(It is a list.)")] * 2)
    assert (insists.text, insists.iterations) == ("It is a list.", 2)


def test_an_answer_that_stays_as_it_was_is_taken_with_its_verdict(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(openai_server, corpus, root=[LOOK, reply(FALSE), reply(FALSE)])
    assert found.stop_reason == "answered"
    assert found.citations[0].status == "false"
    assert found.iterations == 3


def test_a_questioned_answer_stands_where_the_model_fails_next(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(openai_server, corpus, root=[reply(FALSE), failed(400, "no more")])
    assert found.stop_reason == "answered"
    assert "nowhere at all" in found.text


@pytest.mark.parametrize("limits", [Limits(iterations=1), Limits(iterations=2, calls=2)])
def test_no_limit_turns_a_questioned_answer_into_none(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, limits: Limits
) -> None:
    found = play(openai_server, corpus, root=[reply(FALSE), block("1 / 0")], limits=limits)
    assert found.stop_reason == "answered"
    assert "nowhere at all" in found.text


@pytest.mark.parametrize(
    ("strategy", "limits"),
    [
        ("rlm", Limits()),
        ("rlm", Limits(calls=2)),
        ("direct", Limits()),
        ("direct", Limits(calls=1)),
    ],
)
def test_a_run_whose_questioned_answer_stands_is_replayed_to_it(
    openai_server: OpenAiChatServer,
    corpus: SearchableCorpus,
    tmp_path: Path,
    strategy: str,
    limits: Limits,
) -> None:
    root = [reply(FALSE), failed(400, "no more")]
    options: dict[str, Any] = {"strategy": strategy, "limits": limits, "trace": tmp_path}
    found = play(openai_server, corpus, root=root, **options)
    assert found.stop_reason == "answered"
    again = rlm_rag.replay(Path(str(found.trace)), corpus)
    assert (again.text, again.stop_reason) == (found.text, found.stop_reason)


def test_a_map_reduce_that_was_cut_short_keeps_its_limit_where_its_questioned_answer_stands(
    openai_server: OpenAiChatServer, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"strategy": "map-reduce", "context_window": 4000, "trace": tmp_path}
    entries = [{"path": f"{n}.txt", "content": "some text\n" * 700} for n in range(8)]
    with rlm_rag.load(entries) as several:
        limits = Limits(calls=4)
        found = play(openai_server, several, root=[reply(FALSE)], limits=limits, **options)
        again = rlm_rag.replay(Path(str(found.trace)), several)
    assert "nowhere at all" in found.text
    assert found.limit_detail == "the limit of 4 calls, one call being kept for the final answer"
    assert (again.text, again.limit_detail) == (found.text, found.limit_detail)


def test_an_answer_invented_after_a_failed_block_is_questioned(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[
            block("print(context[0]['user'])"),
            reply("FINAL(There are 93 records.)"),
            block("n = context[0]['content'].count('record')\nFINAL(f'There are {n} records.')"),
        ],
    )
    assert '"path" and "content"' in openai_server.prompts[1]
    assert "Your last block failed" in openai_server.prompts[2]
    assert "No output has shown 93" in openai_server.prompts[2]
    assert found.text == "There are 50 records."


def test_a_literal_answer_of_a_block_is_questioned_and_a_computed_one_not(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    literal = block("answer['content'] = 'There are 93.'\nanswer['ready'] = True")
    computed = block("answer['content'] = f'There are {90 + 3}.'\nanswer['ready'] = True")
    assert play(openai_server, corpus, root=[literal, computed]).iterations == 2
    assert play(openai_server, corpus, root=[computed]).iterations == 1


def test_prose_is_asked_for_a_block_once_and_then_taken_as_the_answer(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    prose = reply("The records are of seven users, see `data/records.txt:1`.")
    found = play(openai_server, corpus, root=[block("print(search('user'))"), prose, prose])
    assert found.stop_reason == "answered"
    assert found.text.startswith("The records are of seven users")
    assert "nothing to run" in openai_server.prompts[2]


def test_prose_of_a_model_that_never_looked_is_no_answer(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    prose = reply("I think that there are many.")
    found = play(openai_server, corpus, root=[prose] * 6, limits=Limits(errors=3))
    assert found.stop_reason == "errors"
