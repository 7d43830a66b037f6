"""The events of a trace by what they are looked up for: turns, blocks, calls, answers, tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from rlm_rag.engine.sameness import without_figures
from rlm_rag.models.base import Completion, FinishReason, Usage
from rlm_rag.trace import events
from rlm_rag.trace.names import moved
from rlm_rag.trace.reader import Trace

_FINISH_REASONS: tuple[FinishReason, ...] = ("stop", "length", "content_filter", "other")

Turn = tuple[str, int]
"""A run and the number of one of its turns, blocks or tasks."""


@dataclass(slots=True, eq=False)
class Call:
    """One request of the trace, and its reply where there was one."""

    sent: events.CallSent
    reply: events.ReplyReceived | None = None

    @property
    def completion(self) -> Completion | None:
        """What the provider said, None where it said nothing that can be used again."""
        reply = self.reply
        if reply is None or reply.error is not None:
            return None
        said = reply.finish_reason
        reason: FinishReason = next((r for r in _FINISH_REASONS if r == said), "other")
        return Completion(reply.text, usage_of(reply.usage), reply.model, reason)

    @property
    def cost(self) -> Usage:
        """What it cost; where no reply came, what it was thought to cost at most."""
        if self.reply is not None:
            return usage_of(self.reply.usage)
        return usage_of(unheard(self.sent))


@dataclass(slots=True)
class Recorded:
    """What a trace holds. `endings` are the limits that ended runs and were not raised since;
    `last_words` the turn, what was asked for then, as it is compared, and the reply; `stood_in`
    the children that went on with one whose node had died, by their names: all is that one's."""

    runs: dict[str, events.RunStarted] = field(default_factory=dict)
    turns: dict[Turn, events.TurnStarted] = field(default_factory=dict)
    blocks: dict[Turn, events.BlockStarted] = field(default_factory=dict)
    outputs: dict[Turn, events.BlockOutput] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    root_replies: dict[Turn, Call] = field(default_factory=dict)
    compactions: dict[Turn, list[events.Compacted]] = field(default_factory=dict)
    summaries: dict[Turn, Call] = field(default_factory=dict)
    endings: dict[str, events.LimitReached] = field(default_factory=dict)
    last_words: dict[str, list[tuple[int, str, Call]]] = field(default_factory=dict)
    answers: dict[Turn, list[events.Served | events.Retrieved]] = field(default_factory=dict)
    tasks: dict[Turn, events.TaskStarted] = field(default_factory=dict)
    task_ends: dict[Turn, events.TaskEnded] = field(default_factory=dict)
    cancelled: set[Turn] = field(default_factory=set)
    ends: dict[str, events.Answered] = field(default_factory=dict)
    delegated: list[events.Delegated] = field(default_factory=list)
    stood_in: dict[str, str] = field(default_factory=dict)
    elapsed_seconds: float = 0.0


def read_recorded(trace: Trace) -> Recorded:
    """Return what a trace holds, its stretches between resumptions as one run."""
    reading = _Reading()
    before: datetime | None = None
    for record in trace.records:
        now = datetime.fromisoformat(record.time)
        if before is not None and not isinstance(record.event, events.Resumed):
            reading.found.elapsed_seconds += max(0.0, (now - before).total_seconds())
        before = now
        reading.take(record.event)
    return reading.found


class _Reading:
    """Takes events in order. `stretch` counts resumptions: a limit holds for the one it is in."""

    def __init__(self) -> None:
        self.found = Recorded()
        self._stretch = 0
        self._ended: dict[str, int] = {}
        self._told: dict[str, events.TurnStarted] = {}
        # Without those that followed a limit, which a run that is taken up again does not have.
        self._reached: dict[str, events.TurnStarted] = {}
        self._sent: dict[Turn, Call] = {}

    def take(self, event: events.Event) -> None:
        found = self.found
        if isinstance(event, events.RunStarted) and event.instead_of is not None:
            found.stood_in[event.run] = event.instead_of
        for name, first in found.stood_in.items():
            event = moved(event, name, first)
        match event:
            case events.RunStarted():
                found.runs.setdefault(event.run, event)
            case events.Resumed():
                self._stretch += 1
                self._told = dict(self._reached)
            case events.TurnStarted():
                self._turn(event)
            case events.Compacted():
                if self._goes_on(event.run):
                    found.compactions.setdefault((event.run, event.turn), []).append(event)
            case events.BlockStarted():
                found.blocks[event.run, event.block] = event
            case events.BlockOutput():
                found.outputs[event.run, event.block] = event
            case events.CallSent():
                self._call(event)
            case events.ReplyReceived():
                self._reply(event)
            case events.Served() | events.Retrieved():
                self._served(event)
            case events.TaskStarted():
                found.tasks[event.run, event.task] = event
            case events.TaskEnded():
                found.task_ends[event.run, event.task] = event
            case events.Delegated():
                found.delegated.append(event)
            case events.LimitReached():
                found.endings[event.run] = event
                self._ended[event.run] = self._stretch
            case events.Answered():
                found.ends[event.run] = event

    def _goes_on(self, run: str) -> bool:
        """Whether the run has no limit behind it, or one that was raised since."""
        if self._ended.get(run, self._stretch) < self._stretch:
            del self._ended[run]
            del self.found.endings[run]
        return run not in self._ended

    def _turn(self, event: events.TurnStarted) -> None:
        if self._goes_on(event.run):
            self.found.turns[event.run, event.turn] = self._reached[event.run] = event
        self._told[event.run] = event

    def _call(self, event: events.CallSent) -> None:
        call = Call(event)
        self.found.calls.append(call)
        self._sent[event.run, event.call] = call

    def _reply(self, event: events.ReplyReceived) -> None:
        call = self._sent.get((event.run, event.call))
        if call is None:
            return
        call.reply = event
        if call.sent.role != "root" or event.error is not None:
            return
        told = self._told.get(event.run)
        if told is None:
            return
        if call.sent.summary:
            self.found.summaries[event.run, told.turn] = call
        elif self._goes_on(event.run):
            self.found.root_replies[event.run, told.turn] = call
        else:
            words = self.found.last_words.setdefault(event.run, [])
            words.append((told.turn, without_figures(told.messages[-1]["content"]), call))

    def _served(self, event: events.Served | events.Retrieved) -> None:
        self.found.answers.setdefault((event.run, event.block), []).append(event)
        if event.name == "task_cancel" and isinstance(event.result, Mapping):
            self.found.cancelled.add((event.run, int(event.result.get("id", 0))))


def unheard(sent: events.CallSent) -> dict[str, Any]:
    """Return what a call without a reply counts for, as a trace has a usage: its estimate."""
    return {"calls": 1, **sent.estimate}


_FIGURES = {item.name for item in fields(Usage)}


def usage_of(recorded: Mapping[str, Any]) -> Usage:
    """Return a usage as the trace has it; what is no number there counts as none."""
    known: dict[str, Any] = {
        name: value
        for name, value in recorded.items()
        if name in _FIGURES and (isinstance(value, int | float) or (name == "usd" and not value))
    }
    return Usage(**known)
