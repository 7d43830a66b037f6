"""Runs whose blocks kill their worker: the model goes on with its variables, or ends in order."""

from __future__ import annotations

import rlm_rag
from tests.engine.test_run import ask, block
from tests.servers.loopback import reply
from tests.servers.openai_chat import OpenAiChatServer

CRASH = block("import os\nos._exit(1)")


def test_a_model_goes_on_with_its_variables_after_a_crash(openai_server: OpenAiChatServer) -> None:
    with rlm_rag.load([{"path": "a", "content": "b"}]) as corpus:
        found = ask(
            openai_server,
            corpus,
            block("count = 41\ndef more(): return count + 1\ngen = (n for n in 'ab')"),
            CRASH,
            block("answer['content'] = str(more())\nanswer['ready'] = True"),
        )
    assert (found.text, found.stop_reason) == ("42", "answered")
    told = openai_server.prompts[2]
    assert "Variables are as they were after block 1" in told
    assert "could not be kept: gen" in told


def test_after_three_restarts_the_run_ends_with_what_the_model_had(
    openai_server: OpenAiChatServer,
) -> None:
    with rlm_rag.load([{"path": "a", "content": "b"}]) as corpus:
        found = ask(
            openai_server,
            corpus,
            block("answers['first'] = 'seven parcels'"),
            *[CRASH] * 4,
            reply("Seven parcels."),
        )
    assert (found.text, found.stop_reason) == ("Seven parcels.", "errors")
    assert "lost too often" in openai_server.prompts[-1]
    assert "seven parcels" in openai_server.prompts[-1]
