"""Batches inside children inside batches, one request at a time: nothing waits for ever."""

from __future__ import annotations

import rlm_rag
from rlm_rag import Limits
from tests.engine.play import block, leaves, play
from tests.servers.loopback import Step
from tests.servers.openai_chat import OpenAiChatServer


def test_a_batch_wider_than_the_limit_in_a_child_in_a_batch_ends(
    openai_server: OpenAiChatServer,
) -> None:
    def child(first: str, turn: int) -> Step:
        task = first.split("\n")[1]
        code = (
            f"rs = llm_query_batched(['{task} leaf ' + str(n) for n in range(4)])\n"
            "assert all(r.ok for r in rs), rs\n"
        )
        if "." not in task:
            code += f"rs = rlm_query_batched(['{task}.' + str(n) for n in range(2)])\n"
        return block(code + "FINAL(' '.join(str(r) for r in rs))")

    with rlm_rag.load([{"path": "a", "content": "b\n"}]) as corpus:
        found = play(
            openai_server,
            corpus,
            root=[block("rs = rlm_query_batched([f'c{n}' for n in range(3)])\nFINAL(len(rs))")],
            child=child,
            leaf=lambda prompt: "leaf",
            limits=Limits(depth=2, concurrency=1, live_children=3, seconds=60),
        )
    assert (found.text, found.stop_reason) == ("3", "answered")
    # Three children, two below each; every one of the nine sends four leaves.
    assert len(leaves(openai_server)) == 36
    assert openai_server.most_in_flight == 1
    assert found.usage.calls == 1 + 9 + 36
