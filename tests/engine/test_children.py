"""Child RLMs and spawned tasks, through whole runs."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag import Limits, SearchableCorpus
from rlm_rag.trace.events import Answered, CallSent, Event, Retrieved, RunStarted, TaskEnded
from rlm_rag.trace.reader import read_trace
from rlm_rag.trace.show import render
from tests.engine.play import DOCUMENTS, QUESTION, block, first_prompt, leaves, play, told_root
from tests.servers.loopback import Step, failed, reply
from tests.servers.openai_chat import OpenAiChatServer


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    entries = [{"path": path, "content": text} for path, text in DOCUMENTS.items()]
    with rlm_rag.load(entries) as loaded:
        yield loaded


def test_a_child_has_the_corpus_its_task_and_its_parents_question(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    seen = []

    def child(first: str, turn: int) -> Step:
        seen.append(first)
        return block("FINAL(f\"{len(context)} {search('backoff')[0]['path'][:4]} {task}\")")

    found = play(
        openai_server,
        corpus,
        root=[block("r = rlm_query('Where is backoff?')"), block("FINAL(f'{r.ok} {r}')")],
        child=child,
    )
    assert re.fullmatch(r"True 3 (src/|docs) Where is backoff\?", found.text)
    assert QUESTION in seen[0]
    assert "3 documents" in seen[0]
    assert "one leaf call here" in seen[0]


def test_a_childs_usage_and_trace_nest_in_its_parents(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[
            block("r = rlm_query('Look.')\nprint(r.usage['calls'], r.model)\nllm_query('own')"),
            block("FINAL(r)"),
        ],
        child=[block("print(search('backoff'), llm_query('a leaf'))"), block("FINAL('seen')")],
        trace=tmp_path,
    )
    assert "3 test" in told_root(openai_server)[1]
    assert found.usage.calls == 6
    trace = read_trace(Path(str(found.trace)))
    root, child = trace.of_type(RunStarted)
    assert (child.parent, child.parent_block, child.parent_call) == (root.run, 1, 1)
    assert (root.depth, child.depth) == (0, 1)
    ends = {event.run: event for event in trace.of_type(Answered)}
    assert ends[child.run].text == "seen"
    assert ends[child.run].usage["calls"] == 3
    assert ends[root.run].usage["calls"] == 6
    assert [event.run for event in trace.of_type(Retrieved)] == [child.run]
    calls = [event.run for event in trace.of_type(CallSent)]
    assert (calls.count(root.run), calls.count(child.run)) == (3, 3)
    assert any(line.startswith("    Run ") for line in render(trace))


def test_a_child_over_some_paths_sees_those_alone(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    code = (
        "paths = sorted({h['path'] for h in search('backoff lookup key attempt')})\n"
        "FINAL(str([[e['path'] for e in context], paths, grep_context('backoff')['counts'],"
        " bool(read('cache.py')), read('docs/guide.md').ok, symbols('backoff') != []]))"
    )
    found = play(
        openai_server,
        corpus,
        root=[
            block(
                "good = rlm_query('Look.', paths=['src/'])\n"
                "bad = rlm_query('Look.', paths=['src/', 'nope.txt'])\n"
                "FINAL(f'{good}|{bad}')"
            )
        ],
        child=[block(code)],
    )
    good, bad = found.text.split("|")
    assert good == (
        "[['src/retry.py', 'src/cache.py'], ['src/cache.py', 'src/retry.py'], "
        "{'src/retry.py': 1}, True, False, True]"
    )
    assert "'nope.txt'" in bad
    assert found.usage.calls == 2


def test_children_run_side_by_side_each_over_its_own_paths(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[
            block(
                "rs = rlm_query_batched(['a', 'b', '', 'd'],"
                " paths=[['src/retry.py'], ['docs/'], ['src/'], ['nope']])\n"
                "FINAL(' | '.join(rs))"
            )
        ],
        child=lambda first, turn: reply(
            "```repl\nFINAL(context[0]['path'])\n```", delay_seconds=0.5
        ),
    )
    first, second, third, fourth = found.text.split(" | ")
    assert (first, second) == ("src/retry.py", "docs/guide.md")
    assert third.startswith("Error: the prompt is empty")
    assert fourth.startswith("Error: no document has the path")
    assert openai_server.most_in_flight == 2


def test_no_more_children_live_at_once_than_the_limit_says(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[block("FINAL(len({str(r) for r in rlm_query_batched(list('abcde'))}))")],
        child=lambda first, turn: reply("```repl\nFINAL(task)\n```", delay_seconds=0.5),
        limits=Limits(live_children=2),
    )
    assert found.text == "5"
    assert openai_server.most_in_flight == 2


def test_at_the_depth_limit_a_child_is_one_leaf_call_with_the_files_it_was_given(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[block("FINAL(rlm_query('Look.', paths=['docs/']) + rlm_query('Think.'))")],
        leaf=lambda prompt: "leaf.",
        limits=Limits(depth=0),
    )
    assert found.text == "leaf.leaf."
    with_file, alone = leaves(openai_server)
    assert "Document docs/guide.md:\n# Guide" in with_file
    assert with_file.endswith("Look.")
    assert alone == "Think."
    assert found.coverage.delegated == 1


def test_grandchildren_run_where_the_depth_allows(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    def child(first: str, turn: int) -> Step:
        if "inner" in first.split("(Another")[0]:
            return block("FINAL('from below')")
        return block("FINAL(' '.join(rlm_query_batched(['inner 1', 'inner 2'])))")

    found = play(
        openai_server,
        corpus,
        root=[block("FINAL(' '.join(rlm_query_batched(['outer'] * 2)))")],
        child=child,
        limits=Limits(depth=2, live_children=2),
    )
    assert found.text == " ".join(["from below"] * 4)


def test_a_long_task_is_shown_in_part_and_bound_whole(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    seen = []

    def child(first: str, turn: int) -> Step:
        seen.append(first)
        return block("FINAL(len(task))")

    found = play(
        openai_server,
        corpus,
        root=[block("FINAL(rlm_query('start ' + 'x' * 50_000 + ' end'))")],
        child=child,
    )
    assert found.text == "50010"
    assert len(seen[0]) < 10_000
    assert "start x" in seen[0]
    assert "x end" in seen[0]
    assert "50,010 characters are in the REPL as `task`" in seen[0]


def test_a_child_that_reaches_a_limit_gives_its_part_and_leaves_the_roots_last_call(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[
            block("r = rlm_query('Look.')\nanswer['content'] = f'{r.ok} {r.truncated} {r}'"),
            reply("the root's last word"),
        ],
        child=lambda first, turn: block("answer['content'] = 'half of it'"),
        limits=Limits(calls=8),
    )
    assert found.stop_reason == "budget_calls"
    assert found.text == "the root's last word"
    assert found.usage.calls == len(openai_server.received) == 8
    assert "True True half of it" in told_root(openai_server)[-1]


LEFT = (
    "import ast\n"
    "def left():\n"
    "    (line,) = [l for l in capabilities().splitlines() if l.startswith('left: ')]\n"
    "    return ast.literal_eval(line.removeprefix('left: '))\n"
)


@pytest.mark.parametrize(
    ("kind", "limits"), [("tokens", Limits(tokens=30_000)), ("usd", Limits(usd=0.03))]
)
def test_a_child_has_what_is_left_of_tokens_and_money_and_its_parent_has_the_rest(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, kind: str, limits: Limits
) -> None:
    usage = {"prompt_tokens": 290, "completion_tokens": 210}
    found = play(
        openai_server,
        corpus,
        root=[
            block(
                f"{LEFT}before = left()\nr = rlm_query('Dig.')\nafter = left()\n"
                "FINAL(json.dumps([before, after, r.usage, json.loads(r)]))"
            )
        ],
        child=[
            block(
                f"{LEFT}mine = left()\n"
                "rs = llm_query_batched([f'leaf {n} ' + 'word ' * 250 for n in range(100)])\n"
                "FINAL(json.dumps([mine, sum(r.ok for r in rs), rs[-1].error]))"
            )
        ],
        leaf=lambda prompt: reply("yes", usage=usage),
        price="1/1",
        limits=limits,
    )
    before, after, spent, (mine, answered, refusal) = json.loads(found.text)
    # The child's first call has gone already when its first block asks what is left.
    assert 0 < before[kind] - mine[kind] < (before[kind] - after[kind]) / 2
    used = spent["usd"] if kind == "usd" else spent["input_tokens"] + spent["output_tokens"]
    assert before[kind] - after[kind] == pytest.approx(used)
    assert spent["calls"] == 1 + answered
    # What is left of 30,000 tokens, at 500 a leaf, in part.
    assert 20 < answered < 60
    assert refusal.startswith("not sent: a call of up to ")
    assert found.usage.input_tokens + found.usage.output_tokens <= 30_000
    assert found.stop_reason == "answered"


def test_a_child_that_came_to_no_answer_is_an_error_reply(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[block("r = rlm_query('Look.')\nFINAL(f'{r.ok} {r.usage[\"calls\"]} {r}')")],
        child=lambda first, turn: block("print('looking')") if turn < 2 else reply(""),
        limits=Limits(iterations=2),
    )
    assert found.text.startswith("False 3 Error: No answer was reached: the limit of 2 turns")
    assert found.text.endswith("looking")


def test_a_child_whose_provider_fails_is_an_error_reply(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[block("r = rlm_query('Look.')\nFINAL(f'{r.ok} {r}')")],
        child=lambda first, turn: failed(400, "no such thing"),
    )
    assert found.text.startswith("False Error: the child failed:")
    assert "no such thing" in found.text


def test_tasks_go_on_across_blocks_and_are_awaited_any_number_of_times(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[
            block(
                "t = spawn(rlm_query, 'Look.', name='looker')\n"
                "b = spawn(llm_query_batched, ['p', 'q'])\n"
                "m = spawn('map_files', ['docs/'], 'Sum up.')\n"
                "print(t.done, t.status, t.name, t)\nb.name = 'pair'"
            ),
            block("print(rlm_await(t), t.result(), t.done, t.usage['calls'], t.messages[0])"),
            block(
                "print(rlm_await_all([t, b, m]))\nprint([x.name for x in tasks()])\n"
                "import asyncio\nprint(await t)"
            ),
            block("FINAL('done')"),
        ],
        child=[reply("```repl\nprint(1)\n```", delay_seconds=0.2), block("FINAL('looked')")],
        leaf=lambda prompt: "leaf",
    )
    assert found.text == "done"
    told = told_root(openai_server)
    assert "False running looker <Task looker: running>" in told[1]
    assert "Tasks still running: looker" in told[1]
    assert "looked looked True 2 {'role': 'assistant'" in told[2]
    assert "Tasks done, not awaited yet: pair, map_files-3." in told[2]
    assert "['looked', ['leaf', 'leaf'], {'docs/guide.md': 'leaf'}]" in told[3]
    assert "['looker', 'pair', 'map_files-3']" in told[3]
    assert told[3].count("looked") == 2


def test_tasks_outlive_the_worker_that_spawned_them(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[
            block("t = spawn(rlm_query, 'Look.')"),
            block("import os\nos._exit(9)"),
            block("print(t.status)\nFINAL(rlm_await(tasks()[0]) + rlm_await(t))"),
        ],
        child=lambda first, turn: reply("```repl\nFINAL('kept')\n```", delay_seconds=0.5),
    )
    assert found.text == "keptkept"


def test_a_running_child_is_told_cancelled_and_asked(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    def child(first: str, turn: int) -> Step:
        prompt = openai_server.received[-1].prompt
        if "go left" in prompt:
            return block("FINAL('went left')")
        return reply("```repl\nprint('waiting')\n```", delay_seconds=0.05)

    found = play(
        openai_server,
        corpus,
        root=[
            block("t = spawn(rlm_query, 'Walk.')\nu = spawn(rlm_query, 'Walk on.')"),
            block(
                "print(t.tell('go left').ok)\nprint(rlm_await(t))\n"
                "print(u.result(timeout=0.1))\nprint(u.cancel().ok, u.status)\n"
                "print(u.result().ok, t.tell('more').ok, rlm_await('x').ok)\n"
                "print(spawn(len, 'x').result().ok, spawn(search, 'x').status)\n"
                "print(rlm_await_all([spawn(llm_query, 'p').tell('x')]))\n"
                "t.name = 7\nprint(t.name, t.tell(7), t.result('soon'))"
            ),
            block("FINAL('done')"),
        ],
        child=child,
        limits=Limits(iterations=200),
    )
    told = told_root(openai_server)[-1]
    assert "True\nwent left\n" in told
    assert "still runs" in told
    assert "True cancelled\nFalse False False\nFalse failed\n" in told
    assert "is no child RLM" in told
    assert "task_name: name must be str, not int" in told
    assert "rlm_query-1 Error: task_tell: text must be str, not int" in told
    assert "Error: task_result: timeout must be float | None, not str" in told
    assert found.text == "done"


def test_tasks_hold_no_more_than_a_bounded_amount_of_arguments(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_rag.engine.tasks.MAX_ARGUMENT_CHARS", 1000)
    found = play(
        openai_server,
        corpus,
        root=[
            block("t = spawn(llm_query, 'a' * 600)\nprint(spawn(llm_query, ['b' * 600]).status)"),
            block("rlm_await(t)\nFINAL(str(spawn(llm_query, 'c' * 600).status != 'failed'))"),
        ],
        leaf=lambda prompt: reply("so", delay_seconds=0.5),
    )
    assert "tasks hold 600 characters of arguments" in told_root(openai_server)[-1]
    assert found.text == "True"


def test_a_child_that_nobody_awaited_is_ended_and_recorded_when_the_root_ends(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    seen: list[Event] = []
    corpus.search("backoff")
    before = set(own_processes())
    began = time.monotonic()
    found = play(
        openai_server,
        corpus,
        root=[
            block("t = spawn(rlm_query, 'Look.')"),
            reply("```repl\nFINAL('did not wait')\n```", delay_seconds=1.5),
        ],
        child=lambda first, turn: (
            block("answer['content'] = 'so far'")
            if turn == 0
            else reply("never seen", delay_seconds=30)
        ),
        on_event=seen.append,
    )
    assert found.text == "did not wait"
    assert time.monotonic() - began < 15
    ended = [event for event in seen if isinstance(event, TaskEnded)]
    assert [event.status for event in ended] == ["cancelled"]
    answers = [event for event in seen if isinstance(event, Answered)]
    assert answers[0].stop_reason == "interrupted"
    assert answers[-1].text == "did not wait"
    calls = [event for event in seen if isinstance(event, CallSent)]
    assert found.usage.calls == len(calls)
    assert set(own_processes()) <= before


def own_processes() -> Iterator[int]:
    """The processes that this one has started and that are still there."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # It ended while the list was read.
        if int(fields[1]) == os.getpid():
            yield int(status.parent.name)


def test_batches_larger_than_the_width_nest_without_a_deadlock(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[block("FINAL(sum(int(r) for r in rlm_query_batched(['a', 'b', 'c'])))")],
        child=lambda first, turn: block(
            "rs = llm_query_batched([task + str(n) for n in range(5)])\n"
            "FINAL(sum(r.ok for r in rs))"
        ),
        leaf=lambda prompt: reply("leaf", delay_seconds=0.01),
        limits=Limits(concurrency=1, live_children=2),
    )
    assert found.text == "15"
    assert openai_server.most_in_flight == 1


def test_results_nobody_awaited_are_shown_to_the_last_call(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    play(
        openai_server,
        corpus,
        root=[
            block("t = spawn(llm_query, 'Look.')\nimport time\ntime.sleep(0.5)"),
            reply("last word"),
        ],
        leaf=lambda prompt: "found in the end",
        limits=Limits(iterations=1),
    )
    assert "Result of task llm_query-1:\nfound in the end" in told_root(openai_server)[-1]


def test_what_a_running_child_had_when_the_time_was_up_is_shown_to_the_last_call(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[block("t = spawn(rlm_query, 'Look.')\nrlm_await(t)"), reply("last word")],
        child=[block("answer['content'] = 'half of it'"), block("import time\ntime.sleep(60)")],
        limits=Limits(seconds=5),
    )
    assert (found.stop_reason, found.text) == ("timeout", "last word")
    # The child's own limit of time may come a moment before its parent's.
    assert "half of it" in told_root(openai_server)[-1]


def test_an_added_text_of_the_parent_is_the_childs_too_but_not_the_other_way(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[
            block(
                "add_context('a.md', 'zebra')\nr = rlm_query('Look.')\n"
                "FINAL(f'{r} {len(context)} {len(search(\"okapi\"))}')"
            )
        ],
        child=[
            block(
                "add_context('b.md', 'okapi')\n"
                'FINAL(f\'{search("zebra")[0]["path"]} {len(context)}\')'
            )
        ],
    )
    assert found.text == "added:/a.md 5 4 0"


def test_the_offered_functions_say_what_is_left(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    play(openai_server, corpus, root=[block("print(capabilities())"), block("FINAL('x')")])
    told = told_root(openai_server)[1]
    for name in ("map_files(", "rlm_query(", "spawn(", "add_context(", "'calls': 198"):
        assert name in told
    assert first_prompt(openai_server.received[0])


def test_a_childs_citations_are_checked_for_its_parent(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[
            block("r = rlm_query('Where?')\nprint([c['status'] for c in r.citations])"),
            block("FINAL(r)"),
        ],
        child=[block("FINAL('In src/retry.py:2, not in docs/guide.md:900.')")],
    )
    assert found.text.startswith("In src/retry.py:2")
    told = told_root(openai_server)[1]
    assert "['located', 'false']" in told
    assert "rlm_query: cites what does not stand there: docs/guide.md:900" in told
