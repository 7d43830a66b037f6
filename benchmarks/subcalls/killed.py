"""A run that was killed in the middle of its batch: what taking it up again sends and takes."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from pathlib import Path

import rlm_rag
from benchmarks.figures import Figure, Section
from benchmarks.subcalls.batches import LEAVES
from rlm_rag.trace.events import CallSent, ReplyReceived
from rlm_rag.trace.reader import read_trace
from tests.servers.openai_chat import OpenAiChatServer

POINTS = 5


def measure(calls: int) -> Section:
    """Cut the trace of one run at `POINTS` of its replies, and take each up to its end."""
    with tempfile.TemporaryDirectory(prefix="rlm-rag-benchmark-") as folder:
        script = Path(folder) / "script.json"
        script.write_text(json.dumps([LEAVES.format(count=calls)]), "utf-8")
        with (
            OpenAiChatServer(lambda _: "done") as server,
            rlm_rag.load({"a.md": "# A\n"}) as corpus,
        ):
            started = time.perf_counter()
            whole = rlm_rag.ask(
                corpus,
                "What do the parts say?",
                model=f"scripted:{script}",
                sub_model="leaf",
                api_base=server.api_base,
                limits=rlm_rag.Limits(calls=None),
                trace=Path(folder) / "traces",
            )
            seconds = time.perf_counter() - started
            cuts = _cuts(Path(str(whole.trace)))
            taken, twice = [], []
            for copy, paid in cuts:
                server.received.clear()
                started = time.perf_counter()
                if rlm_rag.resume(copy, corpus).text != whole.text:
                    raise RuntimeError(f"the run of {copy.name} came to another answer")
                taken.append(time.perf_counter() - started)
                sent = Counter(request.prompt for request in server.received)
                twice.append(float((sent & paid).total()))
    return Section(
        f"a run of {calls} leaf calls killed at {POINTS} points of its batch",
        (
            Figure(name="the whole run", unit="s", values=(seconds,)),
            Figure(name="taken up again", unit="s", values=tuple(taken), base="the whole run"),
            Figure(name="calls paid for twice", unit="", values=tuple(twice), at_most=0.0),
        ),
    )


def _cuts(trace: Path) -> list[tuple[Path, Counter[str]]]:
    """Return copies of a trace that end at a reply, and the prompts paid for up to there."""
    records = read_trace(trace).records
    lines = trace.read_bytes().splitlines(keepends=True)
    replies = [r.line for r in records if isinstance(r.event, ReplyReceived)]
    found = []
    for point in range(POINTS):
        end = replies[len(replies) * point // POINTS]
        copy = trace.with_name(f"cut-{point}.jsonl")
        copy.write_bytes(b"".join(lines[:end]))
        events = [record.event for record in records[:end]]
        answered = {event.call for event in events if isinstance(event, ReplyReceived)}
        paid = Counter(
            event.messages[-1]["content"]
            for event in events
            if isinstance(event, CallSent) and event.role == "sub" and event.call in answered
        )
        found.append((copy, paid))
    return found
