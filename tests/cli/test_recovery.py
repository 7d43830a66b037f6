"""Killed without warning, the real command is taken up again by another one."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.servers.loopback import Received, Step, reply
from tests.servers.openai_chat import OpenAiChatServer

from .processes import Place

TURNS = [
    "```repl\nparts = llm_query_batched([f'part {n}' for n in range(8)])\n```",
    "```repl\nprint(rlm_query('What do you see?'))\n```",
    "```repl\nFINAL(f'{parts[7]} (retry.py:2)')\n```",
]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    repo = place.work / "repo"
    repo.mkdir()
    (repo / "retry.py").write_text("def backoff(attempt):\n    return 2**attempt\n")
    return place


def script(request: Received) -> Step:
    first = request.messages[1]["content"] if len(request.messages) > 1 else ""
    if not first:
        return reply(f"of {request.prompt}", delay_seconds=0.2 if "7" in request.prompt else 0)
    if "(Another RLM asks you this" in first:
        return reply("```repl\nFINAL('much')\n```", delay_seconds=0.2)
    return reply(TURNS[request.turn])


@pytest.mark.skipif(os.name == "nt", reason="no such signal")
@pytest.mark.parametrize("event", ["reply", pytest.param("output", marks=pytest.mark.deep)])
def test_a_killed_command_is_taken_up_and_pays_nothing_twice(
    openai_server: OpenAiChatServer, place: Place, event: str
) -> None:
    openai_server.script = script
    base = ("--model", "m", "--api-base", openai_server.api_base)
    with place.start("ask", "repo", "What is it?", "--exclude", "*.md", *base) as process:
        mark = f'"type": "{event}"'
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not process.poll():
            written = [path.read_text() for path in place.state.rglob("*.jsonl")]
            if written and written[0].count(mark) >= (3 if event == "reply" else 1):
                break
            time.sleep(0.002)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    for folder in place.temporary.iterdir():
        assert folder.is_dir()
    (trace,) = place.traces()
    replied = sum(getattr(one, "type", "") == "reply" for one in trace.events)
    sent = sum(getattr(one, "type", "") == "call" for one in trace.events)
    shown = place.start("trace", "resume", "--json")
    out, err = shown.communicate(timeout=60)
    assert shown.returncode == 0, out + err
    answer = json.loads(out)
    assert answer["answer"] == "of part 7 (retry.py:2)"
    assert answer["citations"][0]["status"] == "located"
    times = Counter(str(request.messages) for request in openai_server.received)
    assert sum(times.values()) - len(times) <= sent - replied
    assert len(openai_server.received) <= answer["usage"]["calls"] <= 12 + sent - replied
    again = place.start("trace", "replay", "--json", without=["OPENAI_API_KEY"])
    out, err = again.communicate(timeout=60)
    assert (again.returncode, json.loads(out)["answer"]) == (0, answer["answer"])
    assert sum(times.values()) == len(openai_server.received)
