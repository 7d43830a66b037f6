"""The tree of a run from its events: root and children, turns, blocks, what blocks asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

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
    Served,
    SteppedDown,
    TaskEnded,
    TaskStarted,
    TaskTold,
    TurnStarted,
)
from rlm_rag.trace.view import parts
from rlm_rag.trace.view.nodes import NOTHING, Node, Part, Spent, State, spent_of

_NO_NODE = -1


@dataclass(slots=True)
class _Draft:
    kind: str
    title: str
    parent: int
    start: float
    end: float | None = None
    state: State = "ok"
    spent: Spent = NOTHING
    parts: list[Part] = field(default_factory=list)


@dataclass(slots=True)
class _Place:
    """Where the next nodes of one run belong."""

    node: int
    turn: int = _NO_NODE
    stage: int = _NO_NODE
    turns: dict[int, int] = field(default_factory=dict)
    blocks: dict[int, int] = field(default_factory=dict)
    services: dict[tuple[int, int], int] = field(default_factory=dict)
    calls: dict[int, int] = field(default_factory=dict)
    tasks: dict[int, int] = field(default_factory=dict)

    @property
    def current(self) -> int:
        """The turn that goes on, the run itself where there is none."""
        return self.turn if self.turn != _NO_NODE else self.node


class Tree:
    """Takes events in the order of their trace, each with its place in time, and gives nodes.

    What a damaged or cut trace lacks (a block without its turn, a reply without its call) costs
    that node its place, not the page.
    """

    def __init__(self) -> None:
        self._drafts: list[_Draft] = []
        self._places: dict[str, _Place] = {}

    def add(self, event: Event, now: float) -> int:
        """Add an event; return the number of the node that it belongs to."""
        place = self._places.get(event.run)
        if isinstance(event, RunStarted):
            return place.node if place is not None else self._start(event, now)
        if place is None:
            place = self._places[event.run] = _Place(self._new("run", event.run, _NO_NODE, now))
        match event:
            case TurnStarted():
                return self._turn(place, event, now)
            case BlockStarted() | BlockOutput():
                return self._block_event(place, event, now)
            case CallSent() | ReplyReceived():
                return self._call_event(place, event, now)
            case Retrieved():
                return self._retrieval(place, event, now)
            case Served():
                return self._served(place, event, now)
            case TaskStarted() | TaskTold() | TaskEnded():
                return self._task_event(place, event, now)
            case Answered():
                return self._answer(place, event, now)
        return self._note(place, event, now)

    def nodes(self) -> list[Node]:
        """Return the nodes, parents before their children, sums made."""
        self._end_what_ran()
        self._sum_up()
        return [
            Node(
                each.kind,
                each.title,
                each.parent,
                each.start,
                each.end,
                each.state,
                each.spent,
                tuple(each.parts),
            )
            for each in self._drafts
        ]

    def _new(self, kind: str, title: str, parent: int, now: float, *what: Part) -> int:
        self._drafts.append(_Draft(kind, parts.title(title), parent, now, parts=list(what)))
        return len(self._drafts) - 1

    def _start(self, event: RunStarted, now: float) -> int:
        parent = _NO_NODE
        above = self._places.get(event.parent) if event.parent is not None else None
        if above is not None:
            parent = above.node
            if event.parent_block is not None and event.parent_call is not None:
                parent = self._service(above, event.parent_block, event.parent_call, now)
        number = self._new("run", event.question, parent, now, *parts.run_parts(event))
        self._places[event.run] = _Place(number)
        return number

    def _turn(self, place: _Place, event: TurnStarted, now: float) -> int:
        known = place.turns.get(event.turn)
        if known is not None:
            place.turn = known
            return known
        if place.turn != _NO_NODE:
            self._drafts[place.turn].end = now
        place.turn = self._new("turn", f"Turn {event.turn}", place.node, now)
        place.turns[event.turn] = place.turn
        self._add_ended("prompt", "Prompt", place.turn, now, *parts.message_parts(event.messages))
        return place.turn

    def _block_event(self, place: _Place, event: BlockStarted | BlockOutput, now: float) -> int:
        if isinstance(event, BlockStarted):
            if event.block in place.blocks:
                return place.blocks[event.block]
            place.turn = place.turns.get(event.turn, place.turn)
            number = self._block(place, event.block, now)
            self._drafts[number].parts.append(parts.text_part("Code", event.code, "code"))
            self._drafts[number].state = "open"
            return number
        number = self._block(place, event.block, now)
        block = self._drafts[number]
        block.end = now
        block.parts += parts.output_parts(event)
        block.state = "error" if event.error else "ok"
        return number

    def _block(self, place: _Place, number: int, now: float) -> int:
        """The node of a block; what has no block was asked by the strategy itself, as block 0."""
        if number <= 0:
            if place.turn != _NO_NODE and place.stage == _NO_NODE:
                return place.turn
            if place.stage == _NO_NODE:
                since = self._drafts[place.node].start
                place.stage = self._new("stage", "Before the first turn", place.node, since)
            return place.stage
        if number not in place.blocks:
            place.blocks[number] = self._new("block", f"Block {number}", place.current, now)
        return place.blocks[number]

    def _service(self, place: _Place, block: int, seq: int, now: float) -> int:
        """The node of the one call of a block that sub-calls, children or tasks belong to."""
        key = (block, seq)
        if key not in place.services:
            parent = self._block(place, block, now)
            place.services[key] = self._new("service", "Sub-calls", parent, now)
            self._drafts[place.services[key]].state = "open"
        return place.services[key]

    def _call_event(self, place: _Place, event: CallSent | ReplyReceived, now: float) -> int:
        if isinstance(event, CallSent):
            return self._sent(place, event, now)
        number = place.calls.get(event.call, _NO_NODE)
        if number == _NO_NODE:
            number = self._new("call", f"Reply {event.call} of {event.model}", place.node, now)
        call = self._drafts[number]
        call.end = now
        call.state = "error" if event.error is not None else "ok"
        call.spent = spent_of(event.usage)
        call.parts = [part for part in call.parts if part.label != parts.ESTIMATE]
        call.parts += parts.reply_parts(event)
        return number

    def _sent(self, place: _Place, event: CallSent, now: float) -> int:
        parent = place.current
        if event.role == "root":
            kind = "reply"
            title = "Summary of older turns" if event.summary else f"Reply of {event.model}"
        else:
            kind, title = "call", f"{event.model}: {parts.asked(event)}"
            if event.block is not None and event.seq is not None:
                parent = self._service(place, event.block, event.seq, now)
            elif event.block is not None:
                parent = self._block(place, event.block, now)
        number = self._new(kind, title, parent, now, *parts.call_parts(event))
        self._drafts[number].state = "open"
        place.calls[event.call] = number
        return number

    def _retrieval(self, place: _Place, event: Retrieved, now: float) -> int:
        parent = self._block(place, event.block, now)
        start = max(now - max(event.seconds, 0.0), self._drafts[parent].start)
        number = self._new("retrieval", "", parent, min(start, now))
        draft = self._drafts[number]
        draft.title, draft.end = parts.retrieval_title(event), now
        draft.parts += parts.retrieval_parts(event)
        draft.state = "ok" if event.error is None else "error"
        return number

    def _served(self, place: _Place, event: Served, now: float) -> int:
        number = self._service(place, event.block, event.seq, now)
        service = self._drafts[number]
        service.parts += parts.served_parts(event)
        if service.kind != "task":
            service.title, service.end, service.state = parts.title(event.name), now, "ok"
        if event.error is not None:
            service.state = "error"
        return number

    def _task_event(
        self, place: _Place, event: TaskStarted | TaskTold | TaskEnded, now: float
    ) -> int:
        if isinstance(event, TaskStarted):
            number = self._service(place, event.block, event.seq, now)
            task = self._drafts[number]
            task.kind, task.title = "task", parts.title(f"Task {event.name}: {event.function}")
            place.tasks[event.task] = number
            return number
        number = place.tasks.get(event.task, place.node)
        if isinstance(event, TaskTold):
            return self._add_ended("note", "Told", number, now, parts.text_part("Text", event.text))
        task = self._drafts[number]
        if task.kind == "task":
            task.end = now
            task.state = "ok" if event.status == "done" else "error"
            task.parts += parts.fact_parts("Outcome", event, "status", "seconds")
        return number

    def _answer(self, place: _Place, event: Answered, now: float) -> int:
        run = self._drafts[place.node]
        run.end = now
        run.state = "ok" if event.stop_reason == "answered" else "error"
        if place.turn != _NO_NODE:
            self._drafts[place.turn].end = now
        title = f"Answer ({event.stop_reason})"
        number = self._add_ended("answer", title, place.node, now, *parts.answer_parts(event))
        self._drafts[number].state = run.state
        return number

    def _note(self, place: _Place, event: Event, now: float) -> int:
        parent = place.current
        match event:
            case Resumed():
                self._drafts[place.node].end = None
                return self._add_ended(
                    "note", "Resumed", place.node, now,
                    *parts.fact_parts("Limits", event, "version", "limits"),
                )  # fmt: skip
            case LimitReached():
                what = parts.text_part("Limit", event.detail)
                number = self._add_ended("note", f"Limit {event.name}", parent, now, what)
                self._drafts[number].state = "error"
                return number
            case Compacted():
                title = f"{event.folded} older messages summed up"
                what = parts.text_part("Summary", event.summary)
                return self._add_ended("note", title, parent, now, what)
            case SteppedDown():
                return self._add_ended("note", f"Simpler prompts: {event.prompts}", parent, now)
        return parent

    def _add_ended(self, kind: str, title: str, parent: int, now: float, *what: Part) -> int:
        number = self._new(kind, title, parent, now, *what)
        self._drafts[number].end = now
        return number

    def _end_what_ran(self) -> None:
        """Give an end to what has none of its own but ended with what it holds."""
        last = [each.end if each.end is not None else each.start for each in self._drafts]
        for number in range(len(self._drafts) - 1, -1, -1):
            draft = self._drafts[number]
            if draft.parent != _NO_NODE:
                last[draft.parent] = max(last[draft.parent], last[number])
            if draft.kind in ("turn", "stage"):
                draft.end = last[number]
            elif draft.end is None:
                draft.state = "open"

    def _sum_up(self) -> None:
        for draft in reversed(self._drafts):
            if draft.parent != _NO_NODE:
                above = self._drafts[draft.parent]
                above.spent = above.spent + draft.spent
