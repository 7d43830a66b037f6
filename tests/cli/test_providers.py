"""What a provider does wrong is told in its own words, with what to do, and never with a key."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.servers.anthropic_messages import AnthropicMessagesServer
from tests.servers.loopback import Step, cut, failed, rate_limited, raw, reply
from tests.servers.openai_chat import OpenAiChatServer

from .processes import KEY, Ended, Place, last_answer

QUESTION = "How long does backoff wait?"
FINAL = '```repl\nanswer["content"] = "It doubles: `retry.py:2`."\nanswer["ready"] = True\n```'
ANSWER = reply(FINAL, usage={"prompt_tokens": 1200, "completion_tokens": 34, "total_tokens": 1234})


@dataclass(frozen=True)
class Asked:
    """One run against a server that plays some steps, and what the server got."""

    place: Place
    ended: Ended
    requests: int
    address: str


def asked(root: Path, steps: Sequence[Step], *options: str) -> Asked:
    root.mkdir(exist_ok=True)
    place = Place(root)
    (place.work / "retry.py").write_text("def backoff(attempt):\n    return 2**attempt\n")
    with OpenAiChatServer(steps) as server:
        model = ("--model", "openai/served", "--api-base", server.api_base)
        ended = place.run("ask", "retry.py", QUESTION, *model, *options)
        return Asked(place, ended, len(server.received), server.api_base)


PASSING = {
    "500": [failed(500), ANSWER],
    "503": [failed(503), ANSWER],
    "cut before the answer": [cut(after_bytes=0), ANSWER],
    "cut within the answer": [cut(), ANSWER],
    "half an object": [raw("{"), ANSWER],
}
LASTING = {
    "500": (failed(500, "the engine fell over"), "provider_server", "fell over", "later", 4),
    "a web page": (raw("<html>hi"), "provider_server", "cannot be read", "--api-base", 4),
    "no choices": (raw('{"choices": 3}'), "provider_server", "cannot be read", "--api-base", 4),
    "cut": (cut(after_bytes=3), "model_unreachable", "cut", "network", 4),
    "busy": (rate_limited(0, "busy today"), "rate_limit", "busy today", "--concurrency", 10),
    "an hour": (rate_limited(3600, "come in an hour"), "rate_limit", "an hour", "later", 1),
    "bad key": (failed(401, f"bad key {KEY}"), "model_key", "bad key [redacted]", "OPENAI", 1),
    "no model": (failed(404, "served not found"), "model_not_found", "not found", "'openai/", 1),
    "refused": (failed(400, "no such parameter"), "model_request", "no such", "refused", 1),
    "no credit": (failed(402, "pay first"), "model_key", "pay first", "credit", 1),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """All of these runs at once, since most of their time is spent in waiting to try again."""
    root = tmp_path_factory.mktemp("runs")
    steps = PASSING | {f"lasting {name}": [row[0]] * row[4] for name, row in LASTING.items()}
    with ThreadPoolExecutor(5) as pool:
        futures: Mapping[str, Future[Asked]] = {
            name: pool.submit(asked, root / str(number), steps[name], "--json")
            for number, name in enumerate(steps)
        }
    return lambda name: futures[name].result()


def usage_of(ended: Ended) -> Mapping[str, Any]:
    usage = json.loads(ended.stdout)["usage"]
    assert isinstance(usage, dict)
    return usage


def test_the_provider_s_own_figures_are_shown(tmp_path: Path) -> None:
    run = asked(tmp_path, [ANSWER], "--json")
    assert run.ended.code == 0
    usage = usage_of(run.ended)
    assert (usage["calls"], usage["input_tokens"], usage["output_tokens"]) == (1, 1200, 34)
    assert usage["by_model"]["openai/served"]["input_tokens"] == 1200
    assert "1 call, 1,234 tokens" in run.ended.stderr
    (trace,) = run.place.traces()
    assert KEY not in trace.path.read_text()
    assert last_answer(trace).usage["input_tokens"] == 1200


def test_a_provider_that_asks_to_wait_is_waited_for(tmp_path: Path) -> None:
    since = time.monotonic()
    run = asked(tmp_path, [rate_limited(0.4), rate_limited("0"), ANSWER], "--json")
    assert time.monotonic() - since > 0.4
    assert run.ended.code == 0
    assert usage_of(run.ended)["calls"] == 3


@pytest.mark.parametrize("name", PASSING)
def test_what_may_pass_is_tried_again(runs: Callable[[str], Asked], name: str) -> None:
    run = runs(name)
    assert run.ended.code == 0
    assert usage_of(run.ended)["calls"] == 2
    assert json.loads(run.ended.stdout)["citations"][0]["status"] == "located"


@pytest.mark.parametrize("name", LASTING)
def test_what_does_not_pass_is_told_in_the_provider_s_words(
    runs: Callable[[str], Asked], name: str
) -> None:
    _, kind, said, advice, requests = LASTING[name]
    run = runs(f"lasting {name}")
    assert run.ended.code == 2
    error = run.ended.error
    assert error["kind"] == kind
    assert said in error["message"]
    assert run.address in error["message"]
    assert advice in error["hint"]
    assert run.requests == requests
    (trace,) = run.place.traces()
    assert last_answer(trace).stop_reason == "errors"
    assert KEY not in trace.path.read_text()


def test_a_refusal_midway_leaves_what_there_was(tmp_path: Path) -> None:
    half = reply('```repl\nanswer["content"] = "half"\n```')
    run = asked(tmp_path, [half, failed(401, f"revoked {KEY}")])
    assert run.ended.code == 1
    assert run.ended.stdout.startswith("half")
    assert "revoked [redacted]" in run.ended.stderr


def test_a_slow_provider_does_not_hold_a_run_beyond_its_time(tmp_path: Path) -> None:
    since = time.monotonic()
    slow = reply("late", delay_seconds=60)
    run = asked(tmp_path, [slow, slow], "--max-seconds", "1")
    # The last call has five seconds of its own.
    assert time.monotonic() - since < 15
    assert run.ended.code == 1
    assert "stopped early (timeout): the limit of 1 seconds was reached" in run.ended.stderr
    (trace,) = run.place.traces()
    assert last_answer(trace).stop_reason == "timeout"


def test_another_protocol_through_litellm(
    tmp_path: Path, anthropic_server: AnthropicMessagesServer
) -> None:
    place = Place(tmp_path)
    (place.work / "retry.py").write_text("def backoff(attempt):\n    return 2**attempt\n")
    anthropic_server.script = [
        reply('```repl\nhits = search("backoff")\nprint(hits[0]["path"])\n```'),
        reply(FINAL, usage={"input_tokens": 700, "output_tokens": 20}),
    ]
    model = ("--model", "anthropic/claude-sonnet-4-5", "--api-base", anthropic_server.api_base)
    ended = place.run("ask", "retry.py", QUESTION, *model, "--json")
    assert ended.code == 0, ended.stderr
    shown = json.loads(ended.stdout)
    assert shown["answer"] == "It doubles: `retry.py:2`."
    assert shown["stop_reason"] == "answered"
    usage = shown["usage"]
    assert (usage["calls"], usage["input_tokens"], usage["output_tokens"]) == (2, 711, 27)
    assert list(usage["by_model"]) == ["anthropic/claude-sonnet-4-5"]
    first, second = anthropic_server.received
    assert first.path == "/v1/messages"
    assert first.headers["x-api-key"] == KEY
    assert "retry.py" in second.prompt
    (trace,) = place.traces()
    assert KEY not in trace.path.read_text()


@pytest.mark.deep
def test_another_protocol_s_refusal_through_litellm(
    tmp_path: Path, anthropic_server: AnthropicMessagesServer
) -> None:
    place = Place(tmp_path)
    (place.work / "retry.py").write_text("x = 1\n")
    anthropic_server.script = [failed(401, f"invalid x-api-key {KEY}")]
    model = ("--model", "anthropic/claude-sonnet-4-5", "--api-base", anthropic_server.api_base)
    ended = place.run("ask", "retry.py", QUESTION, *model, "--json")
    assert ended.code == 2
    assert ended.error["kind"] == "model_key"
    assert "invalid x-api-key" in ended.error["message"]
    assert "ANTHROPIC_API_KEY" in ended.error["hint"]
