"""The interface of `rlms`: what its users call, and what they get back."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rlm_rag.compat import (
    RLM,
    ErrorThresholdExceededError,
    RLMLogger,
    TimeoutExceededError,
    TokenLimitExceededError,
)
from rlm_rag.errors import UsageError
from tests.engine.play import CHILD_MARK, block, first_prompt
from tests.servers.loopback import Received, Step, reply
from tests.servers.openai_chat import OpenAiChatServer

# Recorded from rlms 0.1.3: the attributes of what `completion` returns, and of its parts.
COMPLETION = {
    *("root_model", "prompt", "response", "usage_summary", "execution_time"),
    *("metadata", "error", "to_dict"),
}
USAGE = {"model_usage_summaries", "total_cost", "total_input_tokens", "total_output_tokens"}
MODEL_USAGE = {"total_calls", "total_input_tokens", "total_output_tokens", "total_cost"}
RUN_METADATA = {
    *("root_model", "max_depth", "max_iterations", "backend", "backend_kwargs"),
    *("environment_type", "environment_kwargs", "other_backends"),
}
ITERATION = {
    *("type", "iteration", "timestamp", "prompt", "response", "code_blocks"),
    *("final_answer", "iteration_time"),
}
RESULT = {"stdout", "stderr", "locals", "execution_time", "rlm_calls", "final_answer"}

TURNS = (
    "print(type(context).__name__, double(4))\nx = llm_query('what?')\nprint(x)",
    "answer['content'] = x\nanswer['ready'] = True",
)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def turns(*codes: str) -> Callable[[Received], Step]:
    def script(request: Received) -> Step:
        if not first_prompt(request):
            return reply("leaf says 80")
        return block(codes[min(request.turn, len(codes) - 1)])

    return script


def double(value: int) -> int:
    return value * 2


def made(server: OpenAiChatServer, **options: Any) -> RLM:
    kwargs = {"model_name": "test", "base_url": server.api_base, "api_key": "sk-given-12345678"}
    return RLM(backend="openai", backend_kwargs=kwargs, **options)


def test_a_completion_has_what_rlms_gives_and_logs_what_it_logs(
    openai_server: OpenAiChatServer, tmp_path: Path
) -> None:
    openai_server.script = turns(*TURNS)
    logger = RLMLogger(log_dir=str(tmp_path / "logs"))
    rlm = made(
        openai_server,
        logger=logger,
        max_iterations=5,
        custom_tools={"double": {"tool": double, "description": "Doubles a number."}},
        custom_system_prompt="Be {brief}.",
    )
    found = rlm.completion("the port is 80", root_prompt="Which port?")
    assert set(dir(found)) >= COMPLETION
    assert set(dir(found.usage_summary)) >= USAGE
    assert (found.response, found.root_model, found.prompt) == (
        "leaf says 80",
        "test",
        "the port is 80",
    )
    usage = found.usage_summary.to_dict()["model_usage_summaries"]["test"]
    assert usage.keys() <= MODEL_USAGE
    assert usage["total_calls"] == 3
    assert found.execution_time > 0
    assert found.metadata is not None
    assert found.metadata["run_metadata"].keys() == RUN_METADATA
    first, last = found.metadata["iterations"]
    assert first.keys() == last.keys() == ITERATION
    (ran,) = first["code_blocks"]
    assert ran["result"].keys() == RESULT
    assert ran["result"]["stdout"] == "str 8\nleaf says 80\n"
    assert [call["response"] for call in ran["result"]["rlm_calls"]] == ["leaf says 80"]
    assert (first["final_answer"], last["final_answer"]) == (None, "leaf says 80")
    assert "sk-given" not in json.dumps(found.to_dict())
    assert logger.log_file_path is not None
    lines = [json.loads(line) for line in Path(logger.log_file_path).read_text().splitlines()]
    assert [line["type"] for line in lines] == ["metadata", "iteration", "iteration"]
    prompt = openai_server.received[0].messages
    assert prompt[0]["content"] == "Be {brief}."
    assert "Which port?" in prompt[1]["content"]
    assert "double(value: 'int') -> 'int': Doubles a number." in prompt[1]["content"]
    assert openai_server.received[0].headers["authorization"] == "Bearer sk-given-12345678"


@pytest.mark.parametrize(
    ("prompt", "kind"),
    [
        ("a text\nof two lines", "str"),
        (["one", {"role": "user", "content": "two"}], "list"),
        ({"a": "x", "b": [1]}, "dict"),
    ],
)
def test_the_prompt_is_the_context_in_its_own_shape(
    openai_server: OpenAiChatServer, prompt: Any, kind: str
) -> None:
    openai_server.script = turns("FINAL(type(context).__name__ + str(len(context)))")
    found = made(openai_server).completion(prompt)
    assert found.response in (f"{kind}{len(prompt)}", f"Lazy{kind.title()}{len(prompt)}")


def test_a_depth_of_one_has_no_children_and_two_has_them(openai_server: OpenAiChatServer) -> None:
    code = "FINAL(rlm_query('Which?'))"

    def script(request: Received) -> Step:
        if CHILD_MARK in first_prompt(request):
            return block("FINAL('from a child ' + str(double(2)))")
        return turns(code)(request)

    openai_server.script = script
    tools = {"double": double}
    assert made(openai_server, max_depth=1).completion("x").response == "leaf says 80"
    found = made(openai_server, max_depth=2, custom_tools=tools).completion("x")
    assert found.response == "from a child 4"


def test_another_backend_serves_sub_calls_under_its_own_name(
    openai_server: OpenAiChatServer,
) -> None:
    openai_server.script = turns(*TURNS)
    given = {"base_url": openai_server.api_base}
    rlm = RLM(
        "vllm",
        {"model_name": "org/root", **given, "sampling_args": {"temperature": 0.3}},
        other_backends=["vllm"],
        other_backend_kwargs=[{"model_name": "leaf", **given}],
        custom_tools={"double": double},
        sampling_args={"top_p": 0.5},
    )
    found = rlm.completion("x")
    assert found.usage_summary.model_usage_summaries.keys() == {"org/root", "leaf"}
    assert [r.json["model"] for r in openai_server.received] == ["org/root", "leaf", "org/root"]
    assert openai_server.received[0].json["temperature"] == 0.3
    assert openai_server.received[0].json["top_p"] == 0.5


def test_limits_raise_as_they_do_there(openai_server: OpenAiChatServer) -> None:
    openai_server.script = turns("answer['content'] = 'so far'\n1 / 0")
    with pytest.raises(ErrorThresholdExceededError) as failed:
        made(openai_server, max_errors=2).completion("x")
    assert (failed.value.threshold, failed.value.partial_answer is not None) == (2, True)
    with pytest.raises(TokenLimitExceededError) as spent:
        made(openai_server, max_tokens=2_500).completion("x")
    assert spent.value.token_limit == 2_500
    openai_server.script = turns("answer['content'] = 'so far'", "while True: pass")
    with pytest.raises(TimeoutExceededError) as late:
        made(openai_server, max_timeout=1.5).completion("x")
    assert late.value.timeout == 1.5
    openai_server.script = turns("print(1)")
    assert made(openai_server, max_iterations=2).completion("x").response


def test_a_persistent_one_keeps_variables_and_contexts(openai_server: OpenAiChatServer) -> None:
    with made(openai_server, persistent=True) as rlm:
        openai_server.script = turns("kept = 7\nFINAL('first')")
        assert rlm.completion("one").response == "first"
        openai_server.script = turns("FINAL([kept, context_0, context_1])")
        assert json.loads(rlm.completion("two").response) == [7, "one", "two"]


def test_completions_can_be_awaited_side_by_side(openai_server: OpenAiChatServer) -> None:
    openai_server.script = turns("FINAL(context)")
    rlm = made(openai_server)

    async def both() -> list[str]:
        found = await asyncio.gather(rlm.acompletion("one"), rlm.acompletion("two"))
        return [each.response for each in found]

    assert asyncio.run(both()) == ["one", "two"]


def test_what_cannot_be_had_says_so() -> None:
    kwargs = {"model_name": "m", "base_url": "http://127.0.0.1:9"}
    for options, said in (
        ({"backend": "portkey"}, "no backend 'portkey'"),
        ({"backend": "anthropic", "backend_kwargs": {"model_name": "c", "api_key": "k"}}, "key"),
        ({"backend_kwargs": {}}, "no model"),
        ({"backend_kwargs": {"model_name": "m", "timeout": 3}}, "'timeout'"),
        ({"backend_kwargs": kwargs, "environment": "jail"}, "no environment"),
        ({"backend_kwargs": kwargs, "custom_tools": {"d": {"a": 1}}}, "is data"),
        ({"backend_kwargs": kwargs, "max_depth": 0}, "max_depth"),
    ):
        with pytest.raises(UsageError, match=said):
            RLM(**options)
    with pytest.warns(UserWarning, match="compaction has no counterpart"):
        RLM(backend_kwargs=kwargs, compaction=True)


def test_what_has_no_counterpart_is_named_once_and_not_at_each_completion(
    openai_server: OpenAiChatServer,
) -> None:
    openai_server.script = turns("FINAL('a')")
    with pytest.warns(UserWarning, match="setup_code") as warned:
        rlm = made(openai_server, environment_kwargs={"setup_code": "x = 1", "image": "i"})
        assert rlm.completion("x").response == "a"
    assert len(warned) == 1


PROGRAM = """
import json, sys
if sys.argv[1] == "rlms":
    from rlm import RLM
    from rlm.logger import RLMLogger
else:
    from rlm_rag.compat import RLM, RLMLogger
rlm = RLM(
    backend="openai", environment="local", max_depth=1, max_iterations=5, logger=RLMLogger(),
    backend_kwargs={"model_name": "test", "base_url": sys.argv[2], "api_key": "k-123456789"},
    custom_tools={"double": {"tool": lambda x: x * 2, "description": "Doubles."}},
)
found = rlm.completion("the port is 80", root_prompt="Which port?").to_dict()
found.pop("execution_time")
usage = found["usage_summary"]["model_usage_summaries"]["test"]
for cost in (usage, found["usage_summary"]):
    cost.pop("total_cost", None)
metadata = found.pop("metadata")
metadata["run_metadata"]["backend_kwargs"].pop("base_url")
found["run"] = metadata["run_metadata"]
found["iterations"] = [
    [
        sorted(each), each["response"], each["final_answer"] is None,
        [
            [b["code"], b["result"]["stdout"].strip(), sorted(b["result"]),
             [c["response"] for c in b["result"]["rlm_calls"]]]
            for b in each["code_blocks"]
        ],
    ]
    for each in metadata["iterations"]
]
print(json.dumps(found))
"""


@pytest.mark.deep
def test_rlms_itself_gives_the_same_for_the_same_replies(
    openai_server: OpenAiChatServer, tmp_path: Path
) -> None:
    """The interpreter that has rlms is this one, or the one that RLMS_PYTHON names."""
    theirs = os.environ.get("RLMS_PYTHON") or (sys.executable if find_spec("rlm") else None)
    if theirs is None:
        pytest.skip("rlms is not installed")
    openai_server.script = turns(*TURNS)
    found = []
    for python, which in ((theirs, "rlms"), (sys.executable, "ours")):
        done = subprocess.run(
            [python, "-c", PROGRAM, which, openai_server.api_base],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "OPENAI_API_KEY": "k-123456789"}
            | ({"PYTHONPATH": os.getcwd()} if which == "ours" else {}),  # noqa: PTH109
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found[0] == found[1]
