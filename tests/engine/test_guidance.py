"""What ends a small model's reply, and what it reads of it afterwards."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import rlm_rag
from rlm_rag.engine.guidance import ONE_BLOCK, Guide
from tests.servers.loopback import reply
from tests.servers.openai_chat import OpenAiChatServer


def cut_at(reply: str, stops: tuple[str, ...]) -> str:
    """What a provider sends of a reply."""
    return min((reply.partition(stop)[0] for stop in stops), key=len, default=reply)


def test_the_fence_that_ended_a_reply_is_read_with_it() -> None:
    guide = Guide("Who?", is_on=True)
    reply = cut_at("First:\n```repl\nprint(1)\n```\nIt printed 1.", guide.stop)
    assert guide.as_read(reply) == "First:\n```repl\nprint(1)\n```"
    assert guide.stop == ONE_BLOCK


def test_a_model_whose_fences_have_no_tag_gets_its_blocks_through_from_its_second_reply() -> None:
    guide = Guide("Who?", is_on=True)
    untagged = "Let us look:\n```\nprint(1)\n```\n"
    assert guide.as_read(cut_at(untagged, guide.stop)) == "Let us look:"
    for _ in range(2):
        assert guide.as_read(cut_at(untagged, guide.stop)) == untagged
    guide.as_read("```python\nprint(1)\n```")
    assert guide.stop == ONE_BLOCK


@pytest.mark.parametrize("reply", ["```repl\nprint(1)", "no block", "```\nx\n```"])
def test_a_larger_model_has_no_stop_whatever_it_replies(reply: str) -> None:
    guide = Guide("Who?", is_on=False)
    assert guide.as_read(reply) == reply
    assert guide.stop == ()


@pytest.mark.parametrize(
    ("context", "printed"),
    [
        ("one\ntwo\n", "2 ['one', 'two']"),
        (["one\ntwo\n", "three\n"], "2 2 ['one', 'two']"),
        ({"a.md": "one\ntwo\n"}, "a.md 2 ['one', 'two']"),
        ([{"path": "a.md", "content": "one\ntwo\n"}], "a.md 2 ['one', 'two']"),
    ],
)
def test_the_block_that_a_small_model_is_told_to_look_with_runs_on_every_shape(
    openai_server: OpenAiChatServer, context: Any, printed: str
) -> None:
    openai_server.script = [reply("FINAL('three')")]
    with rlm_rag.load(context) as corpus:
        ask = partial(
            rlm_rag.ask,
            corpus,
            "Which word comes second?",
            model="qwen2.5-coder-1.5b",
            api_base=openai_server.api_base,
            strategy="rlm",
            trace=False,
        )
        openai_server.script.append(reply("```repl\nFINAL('two')\n```"))
        assert ask().text == "two"
        told = openai_server.prompts[1]
        look = told[told.index("```repl\n") : told.rindex("```") + 3]
        openai_server.script = [reply(look), reply("```repl\nFINAL('two')\n```")]
        ask()
    assert f"Output:\n{printed}" in openai_server.prompts[-1]
