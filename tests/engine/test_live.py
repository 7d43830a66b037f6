"""Root models' replies told while they come: nothing else of a run is another for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rlm_rag
from rlm_rag.engine.live import ReplyText
from tests.servers.loopback import cut, reply
from tests.servers.openai_chat import OpenAiChatServer

FIRST = "I look.\n```repl\nprint(llm_query('What is it?'))\n```"
LAST = "```repl\nFINAL('done')\n```"


def asked(
    server: OpenAiChatServer, script: list[Any], **options: Any
) -> tuple[rlm_rag.Answer, list[ReplyText]]:
    told: list[ReplyText] = []
    server.script = script
    answer = rlm_rag.ask(
        {"a.md": "A.\n"},
        "What?",
        model="test",
        api_base=server.api_base,
        strategy="rlm",
        on_text=told.append,
        **options,
    )
    return answer, told


def test_replies_of_the_root_are_told_in_pieces_and_those_of_sub_models_are_not(
    openai_server: OpenAiChatServer,
) -> None:
    answer, told = asked(openai_server, [FIRST, "a leaf", LAST], trace=False)
    assert answer.text == "done"
    by_call = {piece.call: "" for piece in told}
    for piece in told:
        by_call[piece.call] += piece.text
    assert list(by_call.values()) == [FIRST, LAST]
    assert len(told) > 10
    assert {piece.attempt for piece in told} == {1}
    assert [bool(each.json.get("stream")) for each in openai_server.received] == [True, False, True]
    assert (answer.usage.calls, answer.usage.input_tokens) == (3, 33)


def test_a_reply_that_breaks_off_is_told_anew_and_counted_as_ever(
    openai_server: OpenAiChatServer,
) -> None:
    answer, told = asked(openai_server, [cut(LAST, after_bytes=400), reply(LAST)], trace=False)
    assert answer.text == "done"
    assert {piece.attempt for piece in told} == {1, 2}
    assert "".join(piece.text for piece in told if piece.attempt == 2) == LAST
    assert answer.usage.calls == 2


def test_a_model_that_does_not_stream_is_told_whole(
    openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenAiChatServer, "_streams", lambda *_: False)
    _, told = asked(openai_server, [LAST], trace=False)
    assert [(piece.attempt, piece.text) for piece in told] == [(1, LAST)]


def test_a_run_that_was_told_is_replayed_like_any_other(
    openai_server: OpenAiChatServer, tmp_path: Path
) -> None:
    source = tmp_path / "a.md"
    source.write_text("A.\n")
    openai_server.script = [LAST]
    told: list[ReplyText] = []
    rlm = rlm_rag.RLM(
        "test",
        api_base=openai_server.api_base,
        strategy="rlm",
        trace=tmp_path / "runs",
        on_text=told.append,
    )
    answer = rlm.ask(str(source), "What?")
    assert told and answer.trace is not None
    again = rlm_rag.replay(Path(answer.trace))
    assert (again.text, again.usage) == (answer.text, answer.usage)
    assert len(openai_server.received) == 1
