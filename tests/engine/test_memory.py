"""`answers` and `plan` are said to the model again, in brief."""

from __future__ import annotations

import rlm_rag
from rlm_rag.engine.memory import Memory
from rlm_rag.sandbox.session import BlockResult
from tests.engine.play import block, play, told_root
from tests.servers.openai_chat import OpenAiChatServer


def after(memory: Memory, **held: str) -> str:
    return memory.after([BlockResult(1, memory=tuple(held.items()))])


def test_what_changed_is_shown_and_what_did_not_is_named() -> None:
    memory = Memory()
    assert after(memory) == ""
    assert after(memory, answers="{1: 'a'}") == "`answers` is now: {1: 'a'}"
    assert after(memory, answers="{1: 'a'}") == "`answers` stands as before."
    assert after(memory, answers="{2: 'b'}", plan="{0: 'look'}").splitlines() == [
        "`answers` is now: {2: 'b'}",
        "`plan` is now: {0: 'look'}",
    ]
    assert after(memory, answers="{2: 'b'}", plan="{0: 'look'}") == (
        "`answers` and `plan` stand as before."
    )
    assert memory.after([]) == "`answers` and `plan` stand as before."
    assert memory.after([], folded=2).startswith("`answers` is now: {2: 'b'}")
    assert memory.after([], folded=2) == "`answers` and `plan` stand as before."
    assert after(memory) == ""


def test_the_model_is_told_them_bounded_each_turn(openai_server: OpenAiChatServer) -> None:
    turns = [
        "answers['timeout'] = 'x' * 100_000\nplan.update(next='read b.md')",
        "print(1)",
        "plan.clear()",
        "FINAL('done')",
    ]
    with rlm_rag.load({"a.md": "text\n"}) as corpus:
        play(openai_server, corpus, root=[block(code) for code in turns])
    first, *told = told_root(openai_server)
    assert "`plan`" not in first
    assert "`plan` is now: {'next': 'read b.md'}" in told[0]
    assert "`answers` is now: {'timeout': 'xxx" in told[0]
    assert len(told[0]) < 4_000
    assert "`answers` and `plan` stand as before." in told[1]
    assert "`plan`" not in told[2]
