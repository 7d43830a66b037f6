"""Runs go on from their traces, wherever these end, and are repeated from them alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag import Answer, Limits, SearchableCorpus
from rlm_rag.engine.pool import Pool
from rlm_rag.errors import DivergedError, ModelError, TraceError, UsageError
from rlm_rag.trace.events import (
    Answered,
    CallSent,
    LimitReached,
    ReplyReceived,
    Resumed,
    RunStarted,
)
from rlm_rag.trace.reader import read_trace
from rlm_rag.trace.recorder import Recorder
from tests.engine.play import block, first_prompt, play
from tests.servers.loopback import Received, Step, failed, reply
from tests.servers.openai_chat import OpenAiChatServer

DOCUMENTS = {
    "src/retry.py": "def backoff(attempt):\n    return 2 ** attempt\n",
    "src/cache.py": "def lookup(key):\n    return key\n",
    "docs/guide.md": "# Guide\n\nThe backoff doubles.\n",
}
ROOT = [
    """
import random, time
hits = search('backoff')
print(len(hits), random.randrange(10**6), time.time(), object())
task = spawn(rlm_query, 'Child in the background?', paths=['src/*.py'])
print(llm_query_batched(['one', 'two', 'one', '']))
""",
    """
add_context('note.md', 'kept beside the corpus')
found = map_files(['src/*.py'], 'What is here?')
print(grep_context('kept', path_glob='added:/**'), sorted(found.items()))
children = rlm_query_batched(['First child?', 'Second child?'])
""",
    "FINAL(f'{rlm_await(task)} | {children} | {read(\"added:/note.md\")} | src/retry.py:2')",
]
CHILD = ["leaf = llm_query('leaf of ' + task[:6])\nprint(leaf)", "FINAL(f'{leaf}: {task[:6]}')"]


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    with rlm_rag.load(DOCUMENTS) as loaded:
        yield loaded


def leaf(prompt: str) -> Step:
    return reply(f"re: {prompt[-20:]}", usage={"prompt_tokens": 10, "completion_tokens": 5})


def ask(server: OpenAiChatServer, corpus: SearchableCorpus, folder: Path, **options) -> Answer:
    # A child that a busy machine starts too late would have another answer the next time.
    options.setdefault("limits", Limits(start_seconds=120))
    return play(
        server,
        corpus,
        root=[block(code) for code in ROOT],
        child=[block(code) for code in CHILD],
        leaf=leaf,
        trace=folder,
        **options,
    )


def key(request: Received) -> str:
    """A request without what is left of the limits, and what of the tasks is done by then."""
    text = json.dumps(request.messages)
    return re.sub(r" Left: [^\"\\]*|Note: Tasks [^\\]*\\n\\n|0x[0-9a-f]+|\d+\.\d+", "", text)


def cut(trace: Path, lines: int, folder: Path) -> Path:
    copy = folder / f"cut-{lines}.jsonl"
    kept = trace.read_bytes().splitlines(keepends=True)[:lines]
    # What a killed process was writing when it died.
    copy.write_bytes(b"".join(kept) + b'{"schema_version": 1, "type": "rep')
    return copy


@pytest.mark.deep
def test_a_run_killed_at_any_point_goes_on_to_the_same_answer_and_pays_nothing_twice(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    whole = ask(openai_server, corpus, tmp_path)
    trace = Path(str(whole.trace))
    sent = Counter(map(key, openai_server.received))
    assert whole.stop_reason == "answered"
    assert len(sent) == sum(sent.values()) == whole.usage.calls
    records = read_trace(trace).records
    for lines in range(1, len(records) + 1):
        before = [record.event for record in records[:lines]]
        replies = [event for event in before if isinstance(event, ReplyReceived)]
        begun = sum(isinstance(event, CallSent) for event in before)
        openai_server.received.clear()
        path = cut(trace, lines, tmp_path)
        answer = rlm_rag.resume(path, corpus)
        paid = sum(event.usage["calls"] for event in replies)
        again = Counter(map(key, openai_server.received))
        assert answer.text == whole.text, lines
        assert again <= sent, lines
        assert sum(again.values()) == whole.usage.calls - paid, lines
        lost = begun - len(replies)
        assert whole.usage.calls <= answer.usage.calls <= whole.usage.calls + lost, lines
        assert answer.coverage == whole.coverage, lines
        assert rlm_rag.replay(path, corpus).text == whole.text, lines


def test_a_run_killed_in_a_child_beside_a_task_goes_on(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    whole = ask(openai_server, corpus, tmp_path)
    records = read_trace(Path(str(whole.trace))).records
    lines = next(r.line for r in records if isinstance(r.event, Answered)) - 3
    openai_server.received.clear()
    path = cut(Path(str(whole.trace)), lines, tmp_path)
    replies = [r.event for r in records[:lines] if isinstance(r.event, ReplyReceived)]
    assert rlm_rag.resume(path, corpus).text == whole.text
    paid = sum(event.usage["calls"] for event in replies)
    assert len(openai_server.received) == whole.usage.calls - paid


@pytest.mark.deep
def test_a_run_killed_again_and_again_comes_to_its_end(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    whole = ask(openai_server, corpus, tmp_path)
    path, lines, lost = cut(Path(str(whole.trace)), 5, tmp_path), 5, 0
    openai_server.received.clear()
    kept = 0
    while True:
        records = read_trace(path).records
        before = [record.event for record in records]
        sent = sum(isinstance(event, CallSent) for event in before)
        kept = sum(isinstance(event, ReplyReceived) for event in before)
        lost = sent - kept
        answer = rlm_rag.resume(path, corpus)
        assert answer.text == whole.text
        assert whole.usage.calls <= answer.usage.calls <= whole.usage.calls + lost
        lines += 9
        if lines >= len(read_trace(path).records):
            break
        path = cut(path, lines, tmp_path)


def test_a_run_ended_by_a_limit_goes_on_under_a_higher_one(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    turns = [block("a = llm_query('one')"), block("b = llm_query('two')"), block("FINAL(a + b)")]

    def root(first: str, turn: int) -> Step:
        return reply("So far: one.") if len(openai_server.received) == 5 else turns[turn]

    ended = play(
        openai_server,
        corpus,
        root=root,
        leaf=leaf,
        trace=tmp_path,
        limits=Limits(iterations=2),
    )
    assert (ended.stop_reason, ended.text, ended.usage.calls) == ("iterations", "So far: one.", 5)
    again = rlm_rag.resume(Path(str(ended.trace)), corpus)
    assert (again.text, again.usage.calls) == ("So far: one.", 5)
    assert rlm_rag.replay(Path(str(ended.trace)), corpus).text == "So far: one."
    assert len(openai_server.received) == 5
    with pytest.raises(UsageError, match="iterations"):
        rlm_rag.resume(Path(str(ended.trace)), corpus, raised={"iterations": 1})
    answer = rlm_rag.resume(Path(str(ended.trace)), corpus, raised={"iterations": 9})
    assert (answer.stop_reason, answer.text, answer.usage.calls) == (
        "answered",
        "re: onere: two",
        6,
    )
    assert answer.trace == ended.trace
    trace = read_trace(Path(str(ended.trace)))
    assert [event.limits["iterations"] for event in trace.of_type(Resumed)] == [2, 9]
    assert rlm_rag.replay(Path(str(ended.trace)), corpus).text == "re: onere: two"


def test_a_run_that_shared_money_ended_goes_on_alone_and_can_be_repeated(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    turns = [block("a = llm_query('one')"), block("b = 2"), block("FINAL(a)")]
    # A call may cost more than four dollars, and the turn was begun that it does not last for.
    ended = play(
        openai_server,
        corpus,
        root=turns,
        leaf=leaf,
        trace=tmp_path,
        price="0/1000",
        share=Pool(usd=4.11).share(),
    )
    assert (ended.stop_reason, ended.usage.calls) == ("budget_usd", 3)
    answer = rlm_rag.resume(Path(str(ended.trace)), corpus)
    assert (answer.text, answer.usage.calls) == ("re: one", 4)
    assert rlm_rag.replay(Path(str(ended.trace)), corpus).text == "re: one"


def test_what_was_spent_counts_towards_the_limits(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    def root(first: str, turn: int) -> Step:
        return block(f"print(len(llm_query_batched([f'{{i}} of {turn}' for i in range(4)])))")

    ended = play(
        openai_server, corpus, root=root, leaf=leaf, trace=tmp_path, limits=Limits(calls=8)
    )
    assert (ended.stop_reason, ended.usage.calls) == ("budget_calls", 8)
    answer = rlm_rag.resume(Path(str(ended.trace)), corpus, raised={"calls": 12})
    assert (answer.stop_reason, answer.usage.calls) == ("budget_calls", 12)
    assert len(openai_server.received) == 12


def test_another_corpus_is_not_taken_for_the_runs(
    openai_server: OpenAiChatServer, tmp_path: Path
) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a.py").write_text("def backoff():\n    return 1\n")
    with rlm_rag.load(folder) as corpus:
        asked = play(
            openai_server, corpus, root=[block("FINAL(read('a.py'))")], trace=tmp_path / "runs"
        )
    assert rlm_rag.replay(Path(str(asked.trace))).text == asked.text
    (folder / "a.py").write_text("def backoff():\n    return 22\n")
    for again in (rlm_rag.resume, rlm_rag.replay):
        with pytest.raises(DivergedError, match=r"it has 1 document, 29 bytes.* 28 bytes"):
            again(Path(str(asked.trace)))


def test_a_block_that_does_something_else_this_time_is_named(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    asked = play(
        openai_server,
        corpus,
        root=[block("import os\nllm_query(os.urandom(8).hex())"), block("FINAL('done')")],
        trace=tmp_path,
    )
    before = Path(str(asked.trace)).read_bytes()
    with pytest.raises(DivergedError, match=r"block 1 of .* calls llm_query with arguments"):
        rlm_rag.replay(Path(str(asked.trace)), corpus)
    assert Path(str(asked.trace)).read_bytes() == before


def test_output_that_differs_is_named_but_for_clocks_and_addresses(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    volatile = "import time, os\nprint(time.time(), object(), time.strftime('%H:%M:%S'))"
    fine = play(
        openai_server, corpus, root=[block(volatile), block("FINAL('done')")], trace=tmp_path
    )
    assert rlm_rag.replay(Path(str(fine.trace)), corpus).text == "done"
    other = play(
        openai_server,
        corpus,
        root=[block("import os\nprint(os.urandom(4).hex())"), block("FINAL('done')")],
        trace=tmp_path,
    )
    with pytest.raises(DivergedError, match="the output of block 1"):
        rlm_rag.replay(Path(str(other.trace)), corpus)


def test_refusals_of_a_large_batch_leave_a_small_trace_that_is_replayed_and_resumed(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    code = (
        "rs = llm_query_batched([f'{n}' for n in range(400)])\n"
        "last = rs[-1]\nFINAL(f'{len(rs)} {sum(r.ok for r in rs)} {last.usage} {last}')"
    )
    ended = play(
        openai_server,
        corpus,
        root=[block(code)],
        trace=tmp_path,
        limits=Limits(calls=10),
    )
    path = Path(str(ended.trace))
    assert ended.text.startswith("400 8 {'calls': 0, 'input_tokens': 0,"), ended.text
    assert path.stat().st_size < 25_000
    assert rlm_rag.replay(path, corpus).text == ended.text
    kept = path.read_bytes().splitlines(keepends=True)
    told = next(n for n, line in enumerate(kept) if b'"served"' in line)
    openai_server.received.clear()
    again = rlm_rag.resume(cut(path, told + 1, tmp_path), corpus)
    assert (again.text, len(openai_server.received)) == (ended.text, 0)


def test_a_failed_call_of_the_root_is_made_again(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    answers = [block("print(1)"), failed(401, "the key was revoked"), block("FINAL('mended')")]

    def root(first: str, turn: int) -> Step:
        return answers[len(openai_server.received) - 1]

    ended = play(openai_server, corpus, root=root, trace=tmp_path)
    assert ended.stop_reason == "errors"
    assert rlm_rag.replay(Path(str(ended.trace)), corpus).text == ended.text
    answer = rlm_rag.resume(Path(str(ended.trace)), corpus)
    assert (answer.text, len(openai_server.received)) == ("mended", 3)


def test_a_run_that_failed_at_its_first_call_can_be_taken_up(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    with pytest.raises(ModelError):
        play(openai_server, corpus, root=[failed(401, "no such key")], trace=tmp_path)
    (trace,) = tmp_path.glob("*.jsonl")
    openai_server.script = [block("FINAL('now')")]
    assert rlm_rag.resume(trace, corpus).text == "now"


def test_a_task_cancelled_by_a_block_stays_so_and_one_told_hears_it_once(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    def child(first: str, turn: int) -> Step:
        return block("FINAL('told')" if turn == 2 else f"print(llm_query('wait {turn}'))")

    def slow(prompt: str) -> Step:
        return replace(leaf(prompt), delay_seconds=0.1)

    root = [
        block("one = spawn(rlm_query, 'First.')\ntwo = spawn(llm_query, 'slow')\ntwo.cancel()"),
        block("print(one.tell('look at docs'), one.status)"),
        block("print(two.status, rlm_await(one))"),
        block("FINAL(f'{two.status} {rlm_await(one)}')"),
    ]
    whole = play(openai_server, corpus, root=root, child=child, leaf=slow, trace=tmp_path)
    assert whole.text == "cancelled told"
    told = sum("look at docs" in str(r.messages) for r in openai_server.received)
    records = read_trace(Path(str(whole.trace))).records
    started = [r.line for r in records if r.event.run != records[0].event.run]
    for lines in (started[len(started) // 2], started[-1]):
        openai_server.received.clear()
        path = cut(Path(str(whole.trace)), lines, tmp_path)
        assert rlm_rag.resume(path, corpus).text == whole.text
        for request in openai_server.received:
            assert str(request.messages).count("Your parent says") <= 1
    assert told


def test_a_run_that_goes_on_elsewhere_is_left_alone(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    whole = play(openai_server, corpus, root=[block("FINAL('done')")], trace=tmp_path)
    path = cut(Path(str(whole.trace)), 2, tmp_path)
    events = len(read_trace(path).records)
    with Recorder(path, after=events), pytest.raises(TraceError, match="the run goes on"):
        rlm_rag.resume(path, corpus)
    with pytest.raises(TraceError, match="did not come to an answer"):
        rlm_rag.replay(path, corpus)
    assert rlm_rag.resume(path, corpus).text == "done"


def test_a_trace_keeps_no_header_and_no_password(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    asked = play(
        openai_server,
        corpus,
        root=[block("FINAL('done')")],
        trace=tmp_path,
        headers={"X-Team": "hush-hush"},
        model_options={"top_p": 0.5},
    )
    path = Path(str(asked.trace))
    assert "hush-hush" not in path.read_text()
    (run,) = read_trace(path).of_type(RunStarted)
    assert run.options["headers"] == ["X-Team"]
    assert rlm_rag.replay(path, corpus).text == "done"
    path = cut(path, 2, tmp_path)
    with pytest.raises(UsageError, match="X-Team"):
        rlm_rag.resume(path, corpus)
    assert rlm_rag.resume(path, corpus, headers={"X-Team": "hush-hush"}).text == "done"
    assert openai_server.received[-1].headers["x-team"] == "hush-hush"
    assert openai_server.received[-1].json["top_p"] == 0.5


@pytest.mark.parametrize("strategy", ["direct", "retrieve", "map-reduce"])
def test_every_strategy_goes_on_wherever_it_was_killed(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path, strategy: str
) -> None:
    openai_server.script = lambda request: leaf(request.prompt)
    whole = rlm_rag.ask(
        corpus,
        "Where is `backoff` computed?",
        model="test",
        api_base=openai_server.api_base,
        strategy=strategy,
        trace=tmp_path,
    )
    trace = Path(str(whole.trace))
    records = read_trace(trace).records
    for lines in range(1, len(records) + 1):
        before = [record.event for record in records[:lines]]
        paid = sum(isinstance(event, ReplyReceived) for event in before)
        openai_server.received.clear()
        path = cut(trace, lines, tmp_path)
        answer = rlm_rag.resume(path, corpus)
        assert (answer.text, answer.coverage) == (whole.text, whole.coverage), lines
        assert len(openai_server.received) == whole.usage.calls - paid, lines
    assert rlm_rag.replay(trace, corpus).text == whole.text


def test_a_map_reduce_that_a_limit_cut_short_is_repeated_with_the_same_reason(
    openai_server: OpenAiChatServer, tmp_path: Path
) -> None:
    openai_server.script = lambda request: reply("A note.")
    with rlm_rag.load({"long.md": "Of sheep and wool.\n" * 1_500}) as pages:
        cut_short = rlm_rag.ask(
            pages,
            "What is told?",
            model="test",
            api_base=openai_server.api_base,
            context_window=3_000,
            strategy="map-reduce",
            limits=Limits(calls=3),
            trace=tmp_path,
        )
        (limit,) = read_trace(Path(str(cut_short.trace))).of_type(LimitReached)
        assert limit.detail.startswith("the limit of 3 calls")
        repeated = rlm_rag.replay(Path(str(cut_short.trace)), pages)
    assert (repeated.text, repeated.warnings) == (cut_short.text, cut_short.warnings)
    assert repeated.stop_reason == cut_short.stop_reason == "budget_calls"


def test_passages_that_took_over_from_a_stuck_root_are_repeated_too(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    openai_server.script = lambda request: reply("I cannot." if first_prompt(request) else "?")
    whole = rlm_rag.ask(
        corpus,
        "Where is `backoff` computed?",
        model="test",
        api_base=openai_server.api_base,
        limits=Limits(iterations=2, calls=9),
        trace=tmp_path,
    )
    sent = len(openai_server.received)
    trace = Path(str(whole.trace))
    assert rlm_rag.replay(trace, corpus).text == whole.text
    assert len(openai_server.received) == sent
