"""A run as readable text, from its trace alone."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from rlm_rag.counts import counted
from rlm_rag.setting_table import WEAK_SANDBOXES
from rlm_rag.shown import printable, printable_line
from rlm_rag.trace.events import (
    Answered,
    BlockOutput,
    BlockStarted,
    CallSent,
    Compacted,
    Event,
    LimitReached,
    ReplyReceived,
    Resumed,
    Retrieved,
    RunStarted,
    TaskEnded,
    TaskStarted,
    TaskTold,
    TurnStarted,
)
from rlm_rag.trace.reader import Trace

MAX_TEXT_LINES = 40
MAX_LINE_CHARS = 400
MAX_NAME_CHARS = 200
MAX_VALUES = 50
INDENT = "    "


def render(trace: Trace, *, full: bool = False) -> Iterator[str]:
    """Yield the lines of a run's story, without their ends and without colours.

    Whatever a model or a corpus wrote is made printable. Texts are cut to MAX_TEXT_LINES lines
    of MAX_LINE_CHARS unless `full`.
    """
    view = _View(full=full)
    if not trace.records:
        yield "The trace holds no events."
    for record in trace.records:
        yield from view.lines(record.event, record.time)
    if trace.goes_on:
        yield "The run goes on: this is all that has happened so far."
    elif trace.tear is not None:
        yield trace.tear
    elif trace.records and not trace.ended:
        yield "The trace ends here, without an answer: the run was cut off."


class _View:
    def __init__(self, *, full: bool) -> None:
        self._full = full
        self._depth: dict[str, int] = {}
        self._calls: dict[tuple[str, int], CallSent] = {}

    def lines(self, event: Event, time: str) -> Iterator[str]:
        if isinstance(event, RunStarted):
            self._depth.setdefault(event.run, event.depth)
        margin = INDENT * min(self._depth.get(event.run, 0), 8)
        for line in self._event_lines(event, time):
            yield (margin + line).rstrip()

    def _event_lines(self, event: Event, time: str) -> Iterator[str]:
        match event:
            case RunStarted():
                yield from self._start(event, time)
            case Resumed():
                yield f"Resumed by rlm-rag {_one_line(event.version)}, {_one_line(time)}"
            case TurnStarted():
                yield ""
                yield f"== Turn {event.turn}"
            case Compacted():
                by = "the root model" if event.asked else "their beginnings"
                yield f"-- {event.folded} older messages are summed up, by {by}:"
                yield from self._text(event.summary)
            case BlockStarted():
                yield f"-- Block {event.block}"
                yield from self._text(event.code)
            case BlockOutput():
                yield from self._output(event)
            case CallSent():
                self._calls[event.run, event.call] = event
            case ReplyReceived():
                yield from self._reply(event)
            case Retrieved():
                yield self._retrieval(event)
            case TaskStarted():
                yield f"   task {event.task} {_one_line(event.name)}: {_one_line(event.function)}"
            case TaskTold():
                yield f"   task {event.task} told: {_one_line(event.text)}"
            case TaskEnded():
                yield f"   task {event.task} {_one_line(event.status)}, {event.seconds:.2f} s"
            case LimitReached():
                yield f"Limit {_one_line(event.name)}: {_one_line(event.detail)}"
            case Answered():
                yield from self._answer(event)

    def _start(self, event: RunStarted, time: str) -> Iterator[str]:
        child = f", child of {_one_line(event.parent)}" if event.parent else ""
        yield f"Run {_one_line(event.run)}{child}, {_one_line(time)}"
        if event.instead_of is not None:
            yield f"Goes on with {_one_line(event.instead_of)}, whose node died"
        carried = event.options.get("carried")
        if isinstance(carried, Mapping) and carried.get("exchanges"):
            questions = counted(len(carried["exchanges"]), "question")
            yield f"Goes on after {questions} of a conversation"
        yield "Question:"
        yield from self._text(event.question)
        sub = "" if event.sub_model == event.model else f", sub-model {_one_line(event.sub_model)}"
        yield f"Model {_one_line(event.model)}{sub}, strategy {_one_line(event.strategy)}"
        commit = f", commit={_one_line(event.commit)}" if event.commit else ""
        yield f"Corpus: {_pairs(event.corpus)}{commit}"
        yield f"Sandbox {_one_line(event.sandbox)}, rlm-rag {_one_line(event.version)}"
        if event.sandbox in WEAK_SANDBOXES:
            yield f"Warning: {WEAK_SANDBOXES[event.sandbox]}"

    def _output(self, event: BlockOutput) -> Iterator[str]:
        waited = f", {event.waited_seconds:.2f} s of it waiting" if event.waited_seconds else ""
        restarted = ", worker restarted" if event.restarted else ""
        yield f"-- Output of block {event.block} ({event.seconds:.2f} s{waited}{restarted})"
        parts = [event.stdout, event.stderr, event.value or "", event.error or ""]
        if not any(parts):
            yield INDENT + "(no output)"
        for text in parts:
            if text:
                yield from self._text(text)

    def _reply(self, event: ReplyReceived) -> Iterator[str]:
        sent = self._calls.pop((event.run, event.call), None)
        role = _one_line(sent.role) if sent else "unknown"
        if event.error is not None:
            yield f"-- Call {event.call} ({role}, {_one_line(event.model)}) failed:"
            yield from self._text(event.error)
            return
        tokens = f"{_figure(event.usage, 'input_tokens')} + {_figure(event.usage, 'output_tokens')}"
        yield (
            f"-- Reply {event.call} ({role}, {_one_line(event.model)}, {tokens} tokens, "
            f"{event.seconds:.2f} s, {_one_line(event.finish_reason)})"
        )
        if sent is not None and sent.role != "root" and sent.messages:
            content = sent.messages[-1].get("content", "")
            yield f"{INDENT}asked: {_one_line(content)}"
        yield from self._text(event.text)

    def _retrieval(self, event: Retrieved) -> str:
        if event.error is not None:
            outcome = f"error: {_one_line(event.error)}"
        else:
            outcome = _result(event.result)
        arguments = _pairs({k: v for k, v in event.arguments.items() if v is not None})
        return f"   {_one_line(event.name)}({arguments}) -> {outcome}"

    def _answer(self, event: Answered) -> Iterator[str]:
        yield ""
        yield f"== Answer ({_one_line(event.stop_reason)})"
        yield from self._text(event.text)
        if event.citations:
            yield "Citations:"
        for citation in event.citations:
            lines = f"{citation.get('line')}-{citation.get('end_line')}"
            place = f"{_name(citation.get('path'))}:{_one_line(lines)}"
            yield f"{INDENT}{place}  {_one_line(str(citation.get('status')))}"
        usage = event.usage
        usd = usage.get("usd")
        price = f", ${usd:.4f}" if isinstance(usd, int | float) else ", price not known"
        yield (
            f"{counted(event.iterations, 'turn')}, {_calls(usage)}, "
            f"{_figure(usage, 'input_tokens')} + {_figure(usage, 'output_tokens')} tokens"
            f"{price}, {event.seconds:.1f} s"
        )
        if event.coverage:
            yield f"Coverage: {_pairs(event.coverage)}"

    def _text(self, text: str) -> Iterator[str]:
        lines = printable(text).rstrip("\n").split("\n")
        shown = lines if self._full else lines[:MAX_TEXT_LINES]
        for line in shown:
            if not self._full and len(line) > MAX_LINE_CHARS:
                line = f"{line[:MAX_LINE_CHARS]}... ({len(line) - MAX_LINE_CHARS:,} more chars)"
            yield INDENT + line
        if len(shown) < len(lines):
            yield f"{INDENT}... ({len(lines) - len(shown):,} more lines)"


def _one_line(text: str) -> str:
    return textwrap.shorten(printable(text[:1000]), 120, placeholder="...") or '""'


def _figure(usage: Mapping[str, Any], name: str) -> str:
    value = usage.get(name, 0)
    return f"{value:,}" if isinstance(value, int | float) else "?"


def _calls(usage: Mapping[str, Any]) -> str:
    value = usage.get("calls", 0)
    return counted(value, "call") if isinstance(value, int) else "? calls"


def _name(value: Any) -> str:
    """Return the name of a document as everything else shows it, in one line."""
    name = printable_line(str(value)[:1000])
    return name if len(name) <= MAX_NAME_CHARS else f"{name[:MAX_NAME_CHARS]}..."


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{_one_line(str(name))}={_value(value)}" for name, value in values.items())


def _value(value: Any, *, levels: int = 2) -> str:
    """Return a value of JSON in one line, its texts as they are shown elsewhere."""
    if isinstance(value, str):
        return _one_line(printable_line(value[:1000]))
    parts = islice(value, MAX_VALUES) if levels and isinstance(value, Mapping | Sequence) else ()
    if isinstance(value, Mapping) and levels:
        inside = (f"{_name(name)}: {_value(value[name], levels=levels - 1)}" for name in parts)
        return _one_line(f"{{{', '.join(inside)}}}")
    if isinstance(value, Sequence) and levels:
        return _one_line(f"[{', '.join(_value(each, levels=levels - 1) for each in parts)}]")
    return _one_line(str(value)[:1000])


def _result(result: Any) -> str:
    """A retrieval's result in a few words, whichever of the primitives it is of."""
    if isinstance(result, Mapping):
        hits = result.get("hits")
        if isinstance(hits, Sequence) and not isinstance(hits, str):
            return f"{_figure(result, 'total')} lines match, {len(hits)} shown{_places(hits)}"
        return _pairs(result)
    if isinstance(result, str):
        return counted(len(result), "char")
    if isinstance(result, Sequence):
        return f"{counted(len(result), 'hit')}{_places(result)}"
    return _one_line(str(result))


def _places(hits: Sequence[Any]) -> str:
    places = [
        f"{_name(hit.get('path'))}:{_one_line(str(hit.get('line')))}"
        for hit in hits[:3]
        if isinstance(hit, Mapping)
    ]
    return f": {', '.join(places)}" if places else ""
