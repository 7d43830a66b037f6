"""A run is told readably from its trace, and safely."""

import pytest

from rlm_rag.trace.events import (
    Answered,
    BlockOutput,
    BlockStarted,
    CallSent,
    LimitReached,
    ReplyReceived,
    Retrieved,
    RunStarted,
    TaskEnded,
    TaskStarted,
    TaskTold,
    TurnStarted,
)
from rlm_rag.trace.reader import read_trace
from rlm_rag.trace.recorder import Recorder
from rlm_rag.trace.show import MAX_TEXT_LINES, render
from rlm_rag.trace.view.parts import run_parts

USAGE = {"calls": 1, "input_tokens": 1200, "output_tokens": 30, "usd": 0.002}


def start(run="r1", **changes):
    values = {
        "run": run,
        "question": "Where is it?",
        "corpus": {"files": 3, "fingerprint": "abc"},
        "model": "m",
        "sub_model": "s",
        "strategy": "rlm",
        "limits": {},
        "sandbox": "bwrap",
        "version": "0.1.0",
        "prompts": "standard",
        "worker": "w",
    }
    return RunStarted(**(values | changes))


def reply(call, text, **changes):
    values = {"finish_reason": "stop", "usage": USAGE, "seconds": 1.25}
    return ReplyReceived(run="r1", call=call, text=text, model="m", **(values | changes))


def retrieval(name, arguments, result, **changes):
    values = {"run": "r1", "block": 1, "seq": 1, "seconds": 0.1}
    return Retrieved(name=name, arguments=arguments, result=result, **(values | changes))


RUN = [
    start(),
    TurnStarted(run="r1", turn=1, messages=[{"role": "user", "content": "Where is it?"}]),
    CallSent(run="r1", call=1, role="root", model="m"),
    reply(1, "I will search.\n```repl\nsearch('it')\n```"),
    BlockStarted(run="r1", turn=1, block=1, code="search('it')"),
    retrieval("search", {"query": "it", "k": None}, [{"path": "a.py", "line": 3}]),
    retrieval(
        "grep_context", {"pattern": "it"}, {"hits": [{"path": "b.py", "line": 7}], "total": 9}
    ),
    retrieval("outline", {"path": "a.py"}, "3: def f()"),
    retrieval("read", {"path": "x"}, None, error="no such path"),
    CallSent(
        run="r1",
        call=2,
        role="sub",
        model="s",
        block=1,
        seq=2,
        messages=[{"role": "user", "content": "sum up\nthis"}],
    ),
    reply(2, "a summary"),
    CallSent(run="r1", call=3, role="sub", model="s", block=1, seq=3),
    reply(3, "", error="the provider said no"),
    BlockOutput(
        run="r1",
        block=1,
        stdout="printed",
        stderr="",
        value="42",
        error="KeyError: 'x'",
        seconds=2.0,
        waited_seconds=1.5,
        restarted=True,
    ),
    LimitReached(run="r1", name="budget_calls", detail="the limit of 3 calls"),
    Answered(
        run="r1",
        text="It is in a.py:3.",
        stop_reason="budget_calls",
        citations=[{"path": "a.py", "line": 3, "end_line": 3, "status": "located"}],
        usage=USAGE,
        coverage={"files": 3, "searched": 1},
        iterations=1,
        seconds=4.2,
    ),
]


@pytest.fixture
def shown(tmp_path):
    numbers = iter(range(100))

    def show(events, **options):
        path = tmp_path / f"{next(numbers)}.jsonl"
        with Recorder(path) as recorder:
            for event in events:
                recorder.record(event)
        return list(render(read_trace(path), **options))

    return show


def test_names_of_documents_are_shown_as_everywhere(shown):
    path = "a\\xff/b\rc\td.py"
    events = [
        retrieval("read", {"path": path}, "1: x"),
        retrieval("search", {"query": "it"}, [{"path": path, "line": 3}]),
        Answered(
            run="r1",
            text="It.",
            stop_reason="answered",
            citations=[{"path": path, "line": 3, "end_line": 4, "status": "verified"}],
            usage={},
            coverage={"files": 1, "looked": [f"read: {path}"], "lines": {path: [[3, 4]]}},
            iterations=1,
            seconds=1.0,
        ),
    ]
    text = "\n".join(shown(events))
    name = r"a\xff/b\x0dc\x09d.py"
    for told in (
        f"read(path={name}) -> 4 chars",
        f"1 hit: {name}:3",
        f"{name}:3-4  verified",
        f"looked=[read: {name}], lines={{{name}: [[3, 4]]}}",
    ):
        assert told in text


def test_a_run_is_told_from_its_question_to_its_answer(shown):
    text = "\n".join(shown(RUN))
    told = [
        "Where is it?",
        "Model m, sub-model s, strategy rlm",
        "files=3",
        "== Turn 1",
        "I will search.",
        "-- Block 1",
        "search(query=it) -> 1 hit: a.py:3",
        "grep_context(pattern=it) -> 9 lines match, 1 shown: b.py:7",
        "outline(path=a.py) -> 10 chars",
        "read(path=x) -> error: no such path",
        "asked: sum up this",
        "a summary",
        "failed:",
        "the provider said no",
        "-- Output of block 1 (2.00 s, 1.50 s of it waiting, worker restarted)",
        "printed",
        "42",
        "KeyError",
        "Limit budget_calls: the limit of 3 calls",
        "== Answer (budget_calls)",
        "It is in a.py:3.",
        "a.py:3-3  located",
        "1,200 + 30 tokens, $0.0020, 4.2 s",
        "Coverage: files=3, searched=1",
    ]
    position = 0
    for piece in told:
        assert piece in text[position:], piece
        position = text.index(piece, position)


@pytest.mark.parametrize(
    ("sandbox", "told"), [("job", "a weak sandbox: "), ("none", "no sandbox: "), ("bwrap", "")]
)
def test_a_run_whose_sandbox_held_little_says_so(shown, sandbox, told):
    lines = shown([start(sandbox=sandbox)])
    warnings = [line for line in lines if line.startswith("Warning: ")]
    assert [line.startswith("Warning: " + told) for line in warnings] == [True] * bool(told)
    parts = {part.label: part.value for part in run_parts(start(sandbox=sandbox))}
    assert ["sandbox", sandbox if not told else f"{sandbox}: {warnings[0][9:]}"] in parts["Set-up"]


def test_nothing_that_a_model_or_a_corpus_wrote_reaches_the_terminal_raw(shown):
    evil = "\x1b]0;owned\x07\x9b2J\u202e\r"
    events = [
        start(question=evil, model=evil, corpus={evil: evil}, sandbox=evil),
        CallSent(run="r1", call=1, role="sub", model=evil, messages=[{"content": evil}]),
        reply(1, evil, finish_reason=evil),
        BlockStarted(run="r1", turn=1, block=1, code=evil),
        retrieval(evil, {evil: evil}, [{"path": evil, "line": evil}]),
        retrieval(evil, {evil: evil}, {evil: evil}),
        BlockOutput(
            run="r1", block=1, stdout=evil, stderr=evil, value=evil, error=evil, seconds=0.1
        ),
        LimitReached(run="r1", name=evil, detail=evil),
        Answered(
            run="r1",
            text=evil,
            stop_reason=evil,
            citations=[{"path": evil, "status": evil}],
            usage={"calls": evil, "usd": evil},
            coverage={evil: evil},
        ),
    ]
    for line in shown(events):
        assert line.isprintable(), line


def test_long_texts_are_cut_unless_all_is_asked_for(shown):
    events = [start(), BlockStarted(run="r1", turn=1, block=1, code="x = 1\n" * 100 + "y" * 1000)]
    short = shown(events)
    assert len(short) < MAX_TEXT_LINES + 15
    assert any("more lines" in line for line in short)
    assert len(shown(events, full=True)) > 100


def test_a_child_is_indented_under_its_parent(shown):
    lines = shown([start(), start("r2", parent="r1", parent_call=1, depth=1)])
    assert any(line.startswith("    Run r2, child of r1") for line in lines)


def test_tasks_are_told_from_their_start_to_their_end(shown):
    events = [
        start(),
        TaskStarted(run="r1", task=3, block=1, seq=1, name="look\x1b[2J", function="rlm_query"),
        TaskTold(run="r1", task=3, block=2, text="go\r left"),
        TaskEnded(run="r1", task=3, status="cancelled", result=None, usage={}, seconds=1.5),
    ]
    lines = shown(events)
    assert any(line.strip().startswith("task 3 look") for line in lines)
    assert any("task 3 told: go" in line for line in lines)
    assert any("task 3 cancelled, 1.50 s" in line for line in lines)
    assert all(line.isprintable() for line in lines)


def test_a_run_that_was_cut_off_says_so(shown, tmp_path):
    assert "cut off" in shown(RUN[:-1])[-1]
    with Recorder(tmp_path / "on.jsonl") as recorder:
        recorder.record(RUN[0])
        assert "goes on" in list(render(read_trace(tmp_path / "on.jsonl")))[-1]
    path = tmp_path / "torn.jsonl"
    path.write_bytes(b"")
    assert "no events" in next(iter(render(read_trace(path))))
    path.write_bytes(b'{"schema')
    assert "torn" in list(render(read_trace(path)))[-1]


def test_a_child_that_goes_on_with_another_names_it(shown):
    child = {"parent": "r1", "parent_call": 1, "depth": 1}
    lines = shown([start(), start("r2", **child), start("r3", **child, instead_of="r2")])
    assert [line.strip() for line in lines if "node died" in line] == [
        "Goes on with r2, whose node died"
    ]
