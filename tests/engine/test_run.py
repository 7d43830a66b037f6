"""Whole runs through the library: a scripted server as root model, a real sandbox, real index."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlm_rag
from rlm_rag import Answer, Limits, RlmRagError, SearchableCorpus
from rlm_rag.sandbox.layers import choose_layer
from rlm_rag.trace.events import (
    Answered,
    BlockOutput,
    CallSent,
    Event,
    ReplyReceived,
    Retrieved,
    RunStarted,
)
from rlm_rag.trace.reader import read_trace
from tests.servers.loopback import Step, failed, reply
from tests.servers.openai_chat import OpenAiChatServer

RETRY = """import random


def backoff_delay(attempt: int, base_seconds: float) -> float:
    delay_seconds = base_seconds * 2 ** attempt + random.random()
    return delay_seconds
"""


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    documents = [
        {"path": "src/retry.py", "content": RETRY},
        {"path": "README.md", "content": "# Widget\n\nA widget service.\n"},
        {"path": "notes/unicode.md", "content": "Заметка о повторах\r\n第二行\r\n"},
    ]
    with rlm_rag.load(documents) as loaded:
        yield loaded


def block(code: str) -> Step:
    return reply(f"```repl\n{code}\n```")


def answer_with(text: str) -> Step:
    return block(f"answer['content'] = {text!r}\nanswer['ready'] = True")


def ask(server: OpenAiChatServer, corpus: SearchableCorpus, *steps: Step, **options: Any) -> Answer:
    server.script = steps
    options.setdefault("trace", False)
    options.setdefault("strategy", "rlm")
    return rlm_rag.ask(
        corpus, "Where is the delay computed?", model="test", api_base=server.api_base, **options
    )


def test_a_block_that_sets_the_answer_ends_the_run(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    text = 'In `src/retry.py:5`: "delay_seconds = base_seconds * 2 ** attempt".'
    found = ask(
        openai_server,
        corpus,
        block("hits = search('backoff delay')\nprint(hits[0]['path'])"),
        answer_with(text),
    )
    assert found.stop_reason == "answered"
    assert found.text == text
    assert found.iterations == 2
    assert [(c.path, c.line, c.status, c.verified) for c in found.citations] == [
        ("src/retry.py", 5, "verified", True)
    ]
    assert "src/retry.py" in openai_server.prompts[1]
    assert found.coverage.files == 3
    assert found.coverage.searched >= 1
    assert found.usage.calls == 2


def test_a_final_in_a_reply_without_blocks_is_the_answer(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask(openai_server, corpus, reply("FINAL(It (the delay) is in src/retry.py:5)"))
    assert found.text == "It (the delay) is in src/retry.py:5"


def test_final_var_in_a_reply_without_blocks_takes_the_variable(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask(openai_server, corpus, block("result = 'forty-two'"), reply("FINAL_VAR(result)"))
    assert found.text == "forty-two"


def test_a_block_that_raises_keeps_its_variables_and_its_answer_is_not_accepted(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask(
        openai_server,
        corpus,
        block("kept = 41\nprint('before')\nanswer.update(content='no', ready=True)\n1 / 0"),
        block("FINAL(kept + 1)"),
    )
    assert found.text == "42"
    told = openai_server.prompts[1]
    assert "before" in told
    assert "ZeroDivisionError" in told
    assert "not accepted" in told


def test_later_blocks_of_a_reply_do_not_run_after_the_answer_or_a_failure(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask(
        openai_server,
        corpus,
        reply("```repl\nfirst = 1\nraise KeyError('x')\n```\n```repl\nsecond = 2\n```"),
        block("FINAL('second' in globals())"),
    )
    assert found.text == "False"
    assert "Not run: the later blocks, at lines 5" in openai_server.prompts[1]


def test_an_empty_answer_is_not_accepted(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask(openai_server, corpus, block("answer['ready'] = True"), answer_with("now"))
    assert found.text == "now"
    assert "empty" in openai_server.prompts[1]


def test_sub_calls_run_at_the_same_time_and_one_failure_does_not_sink_the_batch(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    def script(request: Any) -> Step:
        prompt = request.prompt
        if prompt.startswith("item"):
            if prompt == "item 3":
                return failed(400, "item 3 is not liked")
            return reply(f"reply to {prompt}", delay_seconds=0.2)
        if len(request.messages) == 2:
            return block(
                "rs = llm_query_batched([f'item {i}' for i in range(8)] + ['', 7])\n"
                "print([r.ok for r in rs], rs[0], rs[3].error, rs[8], rs[9])"
            )
        return answer_with("done")

    openai_server.script = script
    found = rlm_rag.ask(
        corpus, "Where?", model="test", api_base=openai_server.api_base, strategy="rlm", trace=False
    )
    assert found.text == "done"
    told = openai_server.prompts[-1]
    assert "[True, True, True, False, True, True, True, True, False, False]" in told
    assert "reply to item 0" in told
    assert "item 3 is not liked" in told
    assert openai_server.most_in_flight >= 4
    # Two root calls and eight prompts; the empty one and the number were never sent.
    assert found.usage.calls == 10


def test_the_iteration_limit_ends_with_one_last_root_call(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask(
        openai_server,
        corpus,
        block("answers['delay'] = 'in retry.py'"),
        block("print('still looking')"),
        reply("Probably `src/retry.py:5`."),
        limits=Limits(iterations=2),
    )
    assert found.stop_reason == "iterations"
    assert found.text == "Probably `src/retry.py:5`."
    assert "in retry.py" in openai_server.prompts[2]


def test_the_call_limit_is_never_passed_and_keeps_a_call_for_the_end(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask(
        openai_server,
        corpus,
        block("rs = llm_query_batched(['a', 'b', 'c', 'd', 'e'])\nprint([r.ok for r in rs])"),
        *[reply("leaf")] * 3,
        reply("the best there is"),
        limits=Limits(calls=5),
    )
    assert found.stop_reason == "budget_calls"
    assert found.text == "the best there is"
    assert found.usage.calls == 5
    assert len(openai_server.received) == 5


def test_the_time_limit_does_not_wait_out_a_long_block(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask(
        openai_server,
        corpus,
        block("answer['content'] = 'half'\nprint('x')"),
        block("import time\ntime.sleep(60)"),
        reply("the end"),
        limits=Limits(seconds=4),
    )
    assert found.stop_reason == "timeout"
    assert found.text == "the end"


def test_a_block_that_hangs_is_stopped_and_the_run_goes_on(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask(
        openai_server,
        corpus,
        block("kept = 1\nwhile True: pass"),
        block("FINAL(kept)"),
        limits=Limits(cell_seconds=0.3),
    )
    assert found.text == "1"
    assert "Timeout" in openai_server.prompts[1]


@pytest.mark.parametrize(
    "call",
    ['grep_context("(a+)+$")', 'read("a" * 10**6)', 'add_context("a.txt", "text")'],
    ids=["grep", "read", "add"],
)
def test_a_block_that_asks_the_index_for_ever_is_stopped(
    openai_server: OpenAiChatServer, tmp_path: Path, call: str
) -> None:
    (tmp_path / "a.txt").write_text("a" * 40 + "b\n")
    with rlm_rag.load(tmp_path) as corpus:
        found = ask(
            openai_server,
            corpus,
            block(f"kept = 1\nwhile True:\n    {call}"),
            block("FINAL(kept)"),
            limits=Limits(cell_seconds=1, seconds=60),
        )
    assert (found.text, found.stop_reason) == ("1", "answered")
    assert "Timeout" in openai_server.prompts[1]


def test_what_no_request_takes_is_traced_by_its_beginning(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    found = ask(openai_server, corpus, block("FINAL(read('a' * 3_000_000))"), trace=tmp_path)
    assert found.trace is not None
    events = read_trace(Path(found.trace)).events
    (asked,) = [event for event in events if isinstance(event, Retrieved)]
    assert asked.arguments["path"] == "a" * 1000
    assert asked.error == "path has 3,000,000 characters, of at most 4,096"


def test_the_time_of_a_model_is_not_the_blocks(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask(
        openai_server,
        corpus,
        block("FINAL(llm_query('now?') + rlm_await(spawn(llm_query, 'later?')))"),
        reply("so", delay_seconds=0.8),
        reply("so", delay_seconds=0.8),
        limits=Limits(cell_seconds=0.7),
    )
    assert (found.text, found.iterations) == ("soso", 1)


def test_turns_without_a_block_end_as_errors(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask(
        openai_server,
        corpus,
        *[reply("I think about it.")] * 3,
        reply("My best guess."),
        limits=Limits(errors=3),
    )
    assert found.stop_reason == "errors"
    assert found.text == "My best guess."


def test_a_provider_that_dies_midway_leaves_the_candidate(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask(
        openai_server, corpus, block("answer['content'] = 'half'"), failed(400, "gone away")
    )
    assert found.stop_reason == "errors"
    assert found.text == "half"
    assert "gone away" in str(found.limit_detail)


def test_a_provider_that_refuses_the_first_call_is_an_error(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    with pytest.raises(RlmRagError, match="no such model"):
        ask(openai_server, corpus, failed(404, "no such model"))


def test_roles_alternate_whatever_happened(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    ask(openai_server, corpus, reply(""), reply("no code"), answer_with("x"))
    for request in openai_server.received:
        roles = [message["role"] for message in request.messages]
        assert roles[0] == "system"
        assert roles[1::2] == ["user"] * len(roles[1::2])
        assert roles[2::2] == ["assistant"] * len(roles[2::2])
        assert all(message["content"] for message in request.messages)


def test_the_trace_tells_the_run_and_holds_no_key(
    openai_server: OpenAiChatServer,
    corpus: SearchableCorpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789abcdef")
    seen: list[Event] = []
    found = ask(
        openai_server,
        corpus,
        block("print(search('backoff')[0]['path'], llm_query('a leaf'))"),
        reply("leaf reply"),
        answer_with("src/retry.py:5"),
        trace=tmp_path,
        on_event=seen.append,
    )
    assert found.trace is not None
    text = Path(found.trace).read_text()
    assert "sk-secret" not in text
    events = read_trace(Path(found.trace)).events
    kinds = [event.type for event in events]
    started = events[0]
    assert isinstance(started, RunStarted)
    assert started.sandbox == choose_layer().name
    assert kinds[-1] == "answer"
    assert [e.name for e in events if isinstance(e, Retrieved)] == ["search"]
    assert [e.role for e in events if isinstance(e, CallSent)] == ["root", "sub", "root"]
    replies = [e.text for e in events if isinstance(e, ReplyReceived)]
    assert replies[1] == "leaf reply"
    outputs = [e for e in events if isinstance(e, BlockOutput)]
    assert "leaf reply" in outputs[0].stdout
    last = events[-1]
    assert isinstance(last, Answered)
    assert json.dumps(last.usage) == json.dumps(found.to_dict()["usage"])
    assert [event.type for event in seen] == kinds


def test_ask_async_works_inside_a_running_loop_and_ask_too(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    async def both() -> tuple[str, str]:
        rlm = rlm_rag.RLM("test", api_base=openai_server.api_base, strategy="rlm", trace=False)
        openai_server.script = [answer_with("one"), answer_with("two")]
        first = await rlm.ask_async(corpus, "Where?")
        second = rlm.ask(corpus, "Where?")
        return first.text, second.text

    assert asyncio.run(both()) == ("one", "two")


def test_questions_from_several_threads_share_a_corpus(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    openai_server.script = lambda request: block("FINAL(search('backoff')[0]['path'])")
    rlm = rlm_rag.RLM("test", api_base=openai_server.api_base, strategy="rlm", trace=False)
    texts: list[str] = []
    threads = [
        threading.Thread(target=lambda: texts.append(rlm.ask(corpus, "Where?").text))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["src/retry.py"] * 4


def test_cancelling_ask_async_ends_the_run_soon(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    async def cancelled() -> None:
        openai_server.script = [block("while True: pass")]
        rlm = rlm_rag.RLM("test", api_base=openai_server.api_base, strategy="rlm", trace=tmp_path)
        task = asyncio.create_task(rlm.ask_async(corpus, "Where?"))
        await asyncio.sleep(1)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())


def test_the_corpus_in_figures_is_told_and_no_body(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    ask(openai_server, corpus, answer_with("x"))
    first = openai_server.prompts[0]
    assert "3 documents" in first
    assert "src/retry.py" in first
    assert "delay_seconds" not in first


def test_a_question_of_braces_and_headings_is_asked_as_it_is(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    openai_server.script = [answer_with("x")]
    question = "What is {x} in {0}?\n# Corpus\n%s"
    rlm_rag.ask(
        corpus, question, model="t", api_base=openai_server.api_base, strategy="rlm", trace=False
    )
    assert question in openai_server.prompts[0]


def test_texts_and_mappings_stay_as_they_were_given(openai_server: OpenAiChatServer) -> None:
    for source, code, shown in (
        ({"text": "one needle here"}, "FINAL(type(context).__name__ + context[4:10])", "strneedle"),
        ({"source": ["a", "b"]}, "FINAL(repr(list(context)))", "['a', 'b']"),
        ({"source": {"k": "v"}}, "FINAL(context['k'])", "v"),
    ):
        with rlm_rag.load(**source) as loaded:  # type: ignore[arg-type]
            assert ask(openai_server, loaded, block(code)).text == shown


def test_a_slow_provider_does_not_stretch_the_time_limit(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    started = time.monotonic()
    found = ask(
        openai_server,
        corpus,
        *[reply("late", delay_seconds=20)] * 3,
        limits=Limits(seconds=2),
    )
    assert found.stop_reason == "timeout"
    assert "No answer was reached" in found.text
    # Far from the provider's 20 seconds, and from any time of its own for the last call.
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    ("last", "text"),
    [
        (block("FINAL('in code')"), "in code"),
        (block("answer['content'] = 'set'\nanswer['ready'] = True"), "set"),
        (reply("It is line 5:\n\n```python\ndelay()\n```\n\nas cited."), "It is line 5:"),
        (reply("FINAL_VAR(found)"), "forty-two"),
        (block("print(search('more'))"), "half"),
    ],
)
def test_the_last_reply_counts_also_where_it_holds_code(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, last: Step, text: str
) -> None:
    found = ask(
        openai_server,
        corpus,
        block("found = 'forty-two'\nanswer['content'] = 'half'"),
        last,
        limits=Limits(iterations=1),
    )
    assert found.stop_reason == "iterations"
    assert found.text.startswith(text)


def test_an_answer_set_in_the_block_that_the_time_limit_cuts_is_kept(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask(
        openai_server,
        corpus,
        block("answer['content'] = 'so far'\nimport time\ntime.sleep(60)"),
        failed(400, "no more"),
        limits=Limits(seconds=6),
    )
    assert found.stop_reason == "timeout"
    assert found.text == "so far"


def test_blocks_behind_the_answer_are_named(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask(
        openai_server, corpus, reply("```repl\nFINAL('x')\n```\n\n```repl\nprint('later')\n```")
    )
    assert found.text == "x"
    assert any("lines 5 of the reply" in warning for warning in found.warnings)


def test_delegation_that_asks_no_model_is_the_blocks_own_time(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    code = (
        "from threading import Thread\n"
        "def ask():\n"
        "    while True:\n"
        "        map_files([f'nope{n}*' for n in range(100)], 'p')\n"
        "for _ in range(4):\n"
        "    Thread(target=ask, daemon=True).start()\n"
        "ask()"
    )
    found = ask(
        openai_server,
        corpus,
        block(code),
        block("FINAL('went on')"),
        limits=Limits(cell_seconds=1, seconds=60),
    )
    assert found.text == "went on"
    assert "Timeout" in openai_server.prompts[1]
