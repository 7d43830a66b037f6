"""Replies without a REPL: an answer, or code and thoughts that are none."""

from __future__ import annotations

import pytest

import rlm_rag
from rlm_rag import Limits
from rlm_rag.engine.strategies.answer_text import answer_text, is_only_code
from tests.engine.play import block
from tests.servers.loopback import reply
from tests.servers.openai_chat import OpenAiChatServer

DOCUMENTS = {"port.md": "The port is 8431.\n"}
ONLY_CODE = [
    "```repl\nprint(8431)\n```",
    '```python\nhits = search("port")\nprint(hits)\n```',
    "```\nfor d in context:\n    print(d['path'])\n```",
    "```python\nport = 8431\nFINAL_VAR('port')\n```",
    "<think>I will look.</think>\n```repl\nprint(read('port.md'))\n```",
    "repl\nprint(len(records('port.md')))",
    "FINAL_VAR(port)",
]


@pytest.mark.parametrize("said", ONLY_CODE)
def test_a_reply_of_code_for_a_repl_alone_is_no_answer(said: str) -> None:
    assert is_only_code(said)
    assert not answer_text(said)


@pytest.mark.parametrize("said", ["", "<think>hm", "<think>hm</think>\n", " <THINKING>\nhm\n"])
def test_a_reply_of_thoughts_alone_is_no_answer(said: str) -> None:
    assert not is_only_code(said)
    assert not answer_text(said)


@pytest.mark.parametrize(
    "said",
    [
        "```python\ndef port(context):\n    return lookup(context)\n```",
        '```json\n{"port": 8431}\n```',
        "It is in `port.md:1`:\n```python\nhits = search('port')\n```",
        "The tag is <think>, as `port.md:1` says.",
        "8431",
    ],
)
def test_quoted_code_and_words_are_an_answer(said: str) -> None:
    assert answer_text(said) == said


def test_an_answer_is_without_the_thought_before_it() -> None:
    assert answer_text("<think>\nFINAL(80)?\n</think>\n\n8431.") == "8431."


@pytest.mark.parametrize(
    ("first", "told"),
    [*((each, "only code") for each in ONLY_CODE), ("<think>hm", "empty")],
)
def test_a_model_that_does_not_answer_is_asked_once_more(
    openai_server: OpenAiChatServer, first: str, told: str
) -> None:
    openai_server.script = [reply(first), reply("It is 8431 (`port.md:1`).")]
    found = _asked(openai_server)
    assert found.text.startswith("It is 8431")
    assert found.stop_reason == "answered"
    assert told in openai_server.prompts[1]


def test_a_model_that_writes_only_code_again_has_no_answer(
    openai_server: OpenAiChatServer,
) -> None:
    openai_server.script = [reply(ONLY_CODE[0])] * 2
    found = _asked(openai_server)
    assert (found.stop_reason, found.found) == ("errors", False)
    assert "wrote only code" in found.text


def test_only_code_is_no_answer_where_there_is_no_call_left(
    openai_server: OpenAiChatServer,
) -> None:
    openai_server.script = [reply(ONLY_CODE[1])]
    found = _asked(openai_server, limits=Limits(iterations=1))
    assert (found.stop_reason, found.found) == ("errors", False)


def _asked(
    server: OpenAiChatServer, *, limits: Limits | None = None, strategy: str = "auto"
) -> rlm_rag.Answer:
    with rlm_rag.load(DOCUMENTS) as corpus:
        return rlm_rag.ask(
            corpus,
            "Which port?",
            model="test",
            api_base=server.api_base,
            trace=False,
            limits=limits or Limits(),
            strategy=strategy,
        )


def test_thoughts_alone_are_no_last_answer_of_a_loop(openai_server: OpenAiChatServer) -> None:
    openai_server.script = [
        block("answer['content'] = '8431 (`port.md:1`)'"),
        reply("<think>Is it that?"),
    ]
    found = _asked(openai_server, limits=Limits(iterations=1), strategy="rlm")
    assert found.text == "8431 (`port.md:1`)"
