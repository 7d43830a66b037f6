"""What a process hears of the calls that others make for its run: it records and counts them."""

from __future__ import annotations

from rlm_rag.engine import meter
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.recorded import usage_of
from rlm_rag.trace.events import Answered, CallSent, Event, ReplyReceived, RunStarted
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
            lost = {"calls": 1, **sent.estimate}
            reply = ReplyReceived(
                run=sent.run,
                call=sent.call,
                text="",
                model=sent.model,
                finish_reason="other",
                usage=lost,
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
