"""Traces made by hand: one of every event, one of hostile texts, and one as large as is wanted."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rlm_rag.trace.events import (
    Answered,
    BlockOutput,
    BlockStarted,
    CallSent,
    Compacted,
    Delegated,
    Event,
    LimitReached,
    ReplyReceived,
    Served,
    TaskEnded,
    TaskStarted,
    TaskTold,
    TurnStarted,
)
from rlm_rag.trace.reader import Trace, read_trace
from rlm_rag.trace.recorder import Recorder
from rlm_rag.trace.view.coverage import Documents
from rlm_rag.trace.view.page import Looked, view_page
from rlm_rag.trace.view.passages import Line, Passage
from tests.trace.test_show import retrieval, start

USAGE = {
    "calls": 1, "input_tokens": 100, "cached_tokens": 40, "output_tokens": 10, "usd": 0.25,
}  # fmt: skip
# Each would run, load or break out of something, were it taken for markup anywhere.
HOSTILE = (
    "</script><script>globalThis.pwned=1</script><!--<script> --!> "
    "<img src=x onerror='globalThis.pwned=2'> [a](javascript:globalThis.pwned=3) "
    "`<svg onload=globalThis.pwned=4>` **<b>x</b>** ${globalThis.pwned=5} "
    "]]> &lt;b&gt; \u2028\u2029 \u202egpj.exe\u202c \x1b[31m \x00 \ud800 \udc00"
)


def reply(call: int, text: str, run: str = "r1", **changes: Any) -> ReplyReceived:
    values = {"finish_reason": "stop", "usage": USAGE, "seconds": 1.0} | changes
    return ReplyReceived(run=run, call=call, text=text, model="m", **values)


def turn(number: int, text: str = "told", run: str = "r1") -> TurnStarted:
    return TurnStarted(run=run, turn=number, messages=[{"role": "user", "content": text}])


def sent(call: int, run: str = "r1", **changes: Any) -> CallSent:
    return CallSent(run=run, call=call, **({"role": "root", "model": "m"} | changes))


def output(block: int, run: str = "r1", **changes: Any) -> BlockOutput:
    values = {"stdout": "", "stderr": "", "value": None, "error": None, "seconds": 0.5} | changes
    return BlockOutput(run=run, block=block, **values)


def asked(call: int, text: str, seq: int, item: int | None = None) -> CallSent:
    messages = [{"role": "user", "content": text}]
    return sent(call, role="sub", model="s", block=1, seq=seq, item=item, messages=messages)


def answered(run: str = "r1", **changes: Any) -> Answered:
    return Answered(run=run, **({"text": "An answer.", "stop_reason": "answered"} | changes))


EVERY: list[Event] = [
    start(),
    retrieval("repo_map", {}, "the map", block=0),
    turn(1, "What is asked?"),
    sent(1),
    reply(1, "I look.\n```repl\nsearch('it')\n```"),
    BlockStarted(run="r1", turn=1, block=1, code="search('it')"),
    retrieval(
        "search",
        {"query": "it", "k": None},
        [{"path": "src/a.py", "line": 1, "end_line": 9, "score": 2.5, "snippet": "3: is it"}],
        seen=[["src/a.py", 1, 9]],
    ),
    asked(2, "first item", 2, 0),
    asked(3, "second item", 2, 1),
    reply(2, "one"),
    Delegated(run="r1", path="docs/b.md", first=1, last=4),
    reply(3, "", error="the provider said no"),
    Served(run="r1", block=1, seq=2, name="llm_query_batched", asked="", result=["one", ""]),
    start("r1.1", question="A child's task", depth=1, parent="r1", parent_block=1, parent_call=3),
    turn(1, "the child's prompt", "r1.1"),
    sent(1, "r1.1"),
    reply(1, "FINAL(seen)", "r1.1"),
    answered("r1.1", text="seen"),
    Served(run="r1", block=1, seq=3, name="rlm_query", asked="", result="seen"),
    TaskStarted(run="r1", task=1, block=1, seq=4, name="later", function="llm_query"),
    asked(4, "in the background", 4),
    output(1, stdout="printed", error="NameError: nope"),
    TaskTold(run="r1", task=1, block=1, text="hurry"),
    turn(2, "printed"),
    Compacted(run="r1", turn=2, folded=3, summary="what was before", asked=True),
    reply(4, "background reply"),
    TaskEnded(run="r1", task=1, status="done", result="x", usage=USAGE, seconds=2.0),
    sent(5),
    reply(5, "FINAL(done)"),
    LimitReached(run="r1", name="budget_usd", detail="spent"),
    answered(
        text="It is in `src/a.py:3`, says `gone.py:1`.\n| file | what \\| how |\n|---|--:|\n"
        "| `src/a.py:3` | **is** it |\n|only|",
        citations=[
            {
                "path": "src/a.py", "line": 3, "end_line": 3, "quote": "is it",
                "status": "verified", "verified": True,
            },
            {
                "path": "gone.py", "line": 1, "end_line": 1, "quote": None,
                "status": "false", "verified": False,
            },
        ],
        usage=USAGE,
        coverage={"files": 4, "searched": 1, "delegated": 1, "untouched": 2, "looked": ["it"]},
        iterations=2,
    ),
]  # fmt: skip
LOOKED = Looked(
    passages=[
        Passage(
            (Line(2, False, (("def f():", False),)), Line(3, True, (("is it", True),))), "Here."
        ),
        Passage((), ""),
    ],
    documents=Documents({"src/a.py": 9, "src/c.py": 5, "docs/b.md": 4, "d.md": 2}, "All of it."),
)


def hostile() -> list[Event]:
    """A whole run in which every text is HOSTILE."""
    bad = HOSTILE
    citation = {
        "path": bad, "line": 1, "end_line": 2, "quote": bad, "status": bad, "verified": True,
    }  # fmt: skip
    return [
        start(question=bad, model=bad, strategy=bad, version=bad, corpus={bad: bad}),
        TurnStarted(run="r1", turn=1, messages=[{"role": bad, "content": bad}]),
        sent(1, model=bad),
        reply(1, f"{bad}\n# {bad}\n- {bad}\n> {bad}\n```{bad}\n{bad}", finish_reason=bad),
        BlockStarted(run="r1", turn=1, block=1, code=f"'{bad}' # {bad}"),
        retrieval(bad, {bad: bad}, [{"path": bad, "line": bad, "snippet": bad, "score": bad}]),
        retrieval("grep_context", {"pattern": bad}, {"hits": [], "counts": {bad: bad}}, seq=2),
        retrieval("read", {"path": bad}, bad, seq=3, seen=[[bad, 1, 2], [bad, bad], []]),
        sent(2, role="sub", block=1, seq=4, messages=[{"role": bad, "content": bad}]),
        reply(2, bad, error=bad, usage={"usd": bad, "calls": bad}),
        Served(run="r1", block=1, seq=4, name=bad, asked=bad, result={bad: [bad]}),
        Delegated(run="r1", path=f"a/{bad}", first=1, last=2),
        TaskStarted(run="r1", task=1, block=1, seq=5, name=bad, function=bad),
        output(1, stdout=bad, stderr=bad, value=bad, error=bad),
        LimitReached(run="r1", name=bad, detail=bad),
        answered(text=f"{bad} `{bad}:1`", stop_reason=bad, citations=[citation],
                 coverage={"files": 1, "looked": [bad], "lines": {bad: [[1, 2], bad, [bad]]}}),
    ]  # fmt: skip


def hostile_look_up() -> Looked:
    line = Line(1, True, ((HOSTILE, False), (HOSTILE, True)))
    return Looked(passages=[Passage((line,), HOSTILE)], documents=Documents({HOSTILE: 9}, HOSTILE))


def large(size_bytes: int) -> Iterable[Event]:
    """A run of turns with prompts, look-ups and batches of sub-calls, at least that large."""
    dice = random.Random(1)
    words = ["".join(dice.choices("abcdefghij", k=dice.randrange(2, 9))) for _ in range(2000)]
    words.append("résumé")

    def text(chars: int) -> str:
        lines = (" ".join(dice.choices(words, k=12)) for _ in range(chars // 60 + 1))
        return "\n".join(lines)[:chars]

    yield start()
    said, size, number, call = text(3000), 0, 0, 0
    while size < size_bytes:
        number, call = number + 1, call + 1
        yield from (turn(number, said), sent(call), reply(call, text(900)))
        yield BlockStarted(run="r1", turn=number, block=number, code="search('it')\n" * 20)
        hits = [{"path": f"d{n}/f.py", "line": n, "snippet": text(380)} for n in range(1, 41)]
        yield retrieval("search", {"query": "it"}, hits, block=number, seen=[["d1/f.py", 1, 9]])
        for item in range(40):
            call += 1
            prompt = [{"role": "user", "content": text(3000)}]
            yield sent(call, role="sub", block=number, seq=2, item=item, messages=prompt)
            yield reply(call, text(600))
        said = text(18_000)
        yield output(number, stdout=said)
        size += 3000 + 40 * 4400 + 40 * 400 + 2 * 18_000
    yield BlockStarted(run="r1", turn=number, block=number + 1, code="print('needle' * 10**6)")
    yield output(number + 1, stdout="needle" * 900_000)
    yield answered()


def recorded(file: Path, events: Iterable[Event]) -> Trace:
    """The trace of these events."""
    with Recorder(file) as recorder:
        for event in events:
            recorder.record(event)
    return read_trace(file)


def page(trace: Trace, looked: Looked) -> Path:
    """The page of a trace, in a file beside it."""
    file = trace.path.with_suffix(".html")
    with file.open("w", encoding="utf-8", newline="\n") as written:
        written.writelines(view_page(trace, looked))
    return file
