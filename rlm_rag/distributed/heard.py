"""What a process hears of the calls that others make for its run: it records and counts them."""

from __future__ import annotations

from dataclasses import replace

from rlm_rag.engine import meter
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.recorded import unheard, usage_of
from rlm_rag.trace.events import Answered, CallSent, Event, ReplyReceived, RunStarted
from rlm_rag.trace.names import moved
from rlm_rag.trace.recorder import Recorder


class Heard:
    """Takes the events of work elsewhere, as they come; used for one piece of work."""

    def __init__(self, recorder: Recorder, budget: Budget) -> None:
        self._recorder = recorder
        self._budget = budget
        self._sent: dict[tuple[str, int], CallSent] = {}
        self._open: dict[str, None] = {}

    def take(self, event: Event) -> None:
        """Record an event; a reply is counted as if the call had been made here."""
        self._recorder.record(event)
        if isinstance(event, CallSent):
            self._sent[event.run, event.call] = event
        elif isinstance(event, ReplyReceived):
            self._count(self._sent.pop((event.run, event.call)), event)
        elif isinstance(event, RunStarted):
            self._open[event.run] = None
        elif isinstance(event, Answered):
            self._open.pop(event.run, None)

    def lose(self) -> None:
        """End what was not heard to end, since its node died: calls at what they may have cost."""
        for sent in self._sent.values():
            reply = ReplyReceived(
                run=sent.run,
                call=sent.call,
                text="",
                model=sent.model,
                finish_reason="other",
                usage=unheard(sent),
                seconds=0.0,
                error="the node that sent it died",
            )
            self._recorder.record(reply)
            self._count(sent, reply)
        self._sent.clear()
        for run in reversed(self._open):
            self._recorder.record(Answered(run=run, text="", stop_reason="interrupted"))
        self._open.clear()

    def _count(self, sent: CallSent, reply: ReplyReceived) -> None:
        usage = usage_of(reply.usage)
        meter.count(usage, sent.model)
        self._budget.carry_over(sent, usage)


class HeardChild:
    """Takes the events of a child, which goes on under another name after its node died."""

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._first = ""
        self._name = ""
        self._started: RunStarted | None = None

    def begin(self, name: str, *, goes_on: bool) -> str:
        """End what was not heard to end; return by which name the child is to tell of itself.

        In the trace it has `name` from now on, and where it `goes_on`, that says with which.
        """
        self._heard.lose()
        self._name = name
        if goes_on and self._started is not None:
            self._heard.take(replace(self._started, run=name, instead_of=self._first))
        else:
            self._first = name
        return self._first

    def take(self, event: Event) -> None:
        """Record an event, as `Heard` does."""
        if isinstance(event, RunStarted) and event.run == self._first:
            self._started = event
        self._heard.take(moved(event, self._first, self._name))

    def lose(self) -> None:
        """End what was not heard to end."""
        self._heard.lose()
