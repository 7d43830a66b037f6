"""What a run was answered before: a run that is taken up again, or replayed, is fed from it.

Its root turns, its blocks and its children are done again from the start; every reply of a model
and every answer of the host that the trace has comes from there, so that nothing is paid for
twice, and whatever is done again is compared with the trace. Where the trace ends, a resumed run
goes on by itself, and a replayed one ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, get_args

from rlm_rag.engine.admission import LimitReached
from rlm_rag.engine.answer import StopReason
from rlm_rag.engine.carried import Carried
from rlm_rag.engine.coverage import Coverage
from rlm_rag.engine.recorded import Call, Recorded, read_recorded
from rlm_rag.engine.sameness import asked as digest
from rlm_rag.engine.sameness import (
    check_output,
    check_same,
    said,
    was_cut_short,
    without_figures,
)
from rlm_rag.errors import DivergedError
from rlm_rag.models.base import Completion, Message, Usage
from rlm_rag.trace import events
from rlm_rag.trace.names import is_within
from rlm_rag.trace.reader import Trace

Prompt = tuple[tuple[str, str], ...]
Answer = events.Served | events.Retrieved


class Past:
    """The past of a run and all its children; that of a new run is empty.

    With `replays` there is nothing beyond it.
    """

    def __init__(self, trace: Trace | None = None, *, replays: bool = False) -> None:
        self._recorded = Recorded() if trace is None else read_recorded(trace)
        self._replays = replays
        self._root = next(iter(self._recorded.runs), "")
        self.path = None if trace is None else trace.path
        self.lines = 0 if trace is None else len(trace.records)
        self._replies: dict[tuple[str, int | None, Prompt], list[Call]] = {}
        self._children: dict[tuple[str, int | None], list[events.RunStarted]] = {}
        self._by_place: dict[tuple[str, int | None, int | None], list[Call]] = {}
        self._answers: dict[tuple[str, int, str, str], list[Answer]] = {}
        for answers in self._recorded.answers.values():
            for answer in answers:
                place = (answer.run, answer.block, answer.name, _asked(answer))
                self._answers.setdefault(place, []).append(answer)
        self._delegated = {(e.run, e.path, e.first, e.last) for e in self._recorded.delegated}
        self._taken: set[str] = set()
        for call in self._recorded.calls:
            at = (call.sent.run, call.sent.block, call.sent.seq)
            self._by_place.setdefault(at, []).append(call)
            if call.sent.role != "root" and call.completion is not None:
                key = (call.sent.run, call.sent.block, _prompt_of(call.sent.messages))
                self._replies.setdefault(key, []).append(call)
        for run in self._recorded.runs.values():
            if run.parent is not None:
                self._children.setdefault((run.parent, run.parent_block), []).append(run)

    @property
    def run_id(self) -> str:
        """The root's run, empty where there is no past."""
        return self._root

    @property
    def commit(self) -> str | None:
        """What its corpus was of, as far as that was known."""
        root = self._recorded.runs.get(self._root)
        return None if root is None else root.commit

    @property
    def carried(self) -> Carried | None:
        """What the run took over from the conversation that it goes on with.

        Raises:
            SessionError: the trace has it damaged.
        """
        root = self._recorded.runs.get(self._root)
        state = None if root is None else root.options.get("carried")
        return None if state is None else Carried.from_json(state)

    @property
    def is_over(self) -> bool:
        """Whether nothing can come after it: the run was answered, or is only replayed."""
        end = self._recorded.ends.get(self._root)
        return self._replays or (end is not None and end.stop_reason == "answered")

    @property
    def elapsed_seconds(self) -> float:
        """How long the run has taken so far; a repetition has all its time again."""
        return 0.0 if self.is_over else self._recorded.elapsed_seconds

    def spent(self) -> Iterator[tuple[events.CallSent, Usage]]:
        """Yield every call that was sent, and what it cost."""
        return ((call.sent, call.cost) for call in self._recorded.calls)

    def coverage(self, within: Collection[str] | None = None) -> Coverage:
        """Return the lines of the corpus that were shown or sent, and the root's look-ups.

        `within` are the documents that the root sees, None for all.
        """
        coverage = Coverage()
        for event in self._recorded.delegated:
            coverage.delegated(event.path, event.first, event.last)
        for (run, *_), answers in self._recorded.answers.items():
            for answer in answers:
                if not isinstance(answer, events.Retrieved):
                    continue
                record = coverage.read if answer.name == "read" else coverage.searched
                for path, first, last in answer.seen:
                    record(str(path), int(first), int(last))
                if run == self._root and not answer.error:
                    _looked(coverage, answer, within)
        return coverage

    def turn(self, run: str, turn: int) -> Sequence[Mapping[str, str]] | None:
        """Return what the root model was told new in a turn, None where it was not reached."""
        found = self._recorded.turns.get((run, turn))
        return None if found is None else found.messages

    def heard(self, run: str, text: str) -> bool:
        """Whether a run's root model was told `text` by its parent."""
        line = f"Your parent says: {text}"
        return any(
            line in message["content"]
            for (owner, _), turn in self._recorded.turns.items()
            if owner == run
            for message in turn.messages
        )

    def root_reply(self, run: str, turn: int) -> Call | None:
        """Return the root model's reply to a turn, None where none came."""
        return self._recorded.root_replies.get((run, turn))

    def compactions(self, run: str, turn: int) -> Sequence[events.Compacted]:
        """Return how a run's older turns were folded before a turn, in order."""
        return self._recorded.compactions.get((run, turn), ())

    def summary_reply(self, run: str, turn: int) -> Call | None:
        """Return the summary that the root model was asked for before a turn."""
        return self._recorded.summaries.get((run, turn))

    def last_reply(self, run: str, turn: int | None, messages: Sequence[Message]) -> Call | None:
        """Return the reply to a last request in that turn, which stands at the prompt's end."""
        words = self._recorded.last_words.get(run, [])
        if self.is_over:
            return words[-1][2] if words else None
        asked = without_figures(messages[-1].content)
        same = (call for at, text, call in reversed(words) if at == turn and asked.endswith(text))
        return next(same, None)

    def leaf_reply(
        self,
        run: str,
        block: int | None,
        seq: int | None,
        item: int | None,
        messages: Sequence[Message],
    ) -> Call | None:
        """Return the reply to a leaf call, once; that of the same place where there is one."""
        prompt = tuple((message.role, message.content) for message in messages)
        left = self._replies.get((run, block, prompt))
        if not left:
            return None
        exact = (c for c in left if (c.sent.seq, c.sent.item) == (seq, item))
        found = next(exact, left[0])
        left.remove(found)
        return found

    def twin(
        self,
        run: str,
        block: int | None,
        seq: int | None,
        item: int | None,
        messages: Sequence[Message],
    ) -> Completion | None:
        """Return the reply to the same prompt at another place of its batch.

        They were under way together and so sent as one, but only one was answered in time.
        """
        prompt = tuple((message.role, message.content) for message in messages)
        for call in self._by_place.get((run, block, seq), ()):
            completion = call.completion
            if (
                completion is not None
                and completion.finish_reason != "length"
                and call.sent.item != item
                and _prompt_of(call.sent.messages) == prompt
            ):
                return completion
        return None

    def answer(self, run: str, block: int, seq: int, name: str, asked: str) -> Answer | None:
        """Return what the host answered to a call of a block, once; None where it did not.

        `asked` is the digest of the call's arguments.

        Raises:
            DivergedError: the block ended, and had not made this call.
        """
        left = self._answers.get((run, block, name, asked))
        if left:
            found = next((answer for answer in left if answer.seq == seq), left[0])
            left.remove(found)
            return found
        output = self._recorded.outputs.get((run, block))
        if output is not None and not was_cut_short(output):
            raise DivergedError(
                f"the run differs from its trace: block {block} of {run} calls {name} with "
                f"arguments that it did not call it with then (call {seq} of the block)",
                hint="code that depends on the clock, or on chance outside `random`, cannot be "
                "repeated; ask again to start anew",
            )
        return None

    def costs(self, run: str, block: int, seq: int) -> Iterator[tuple[str, Usage]]:
        """Yield what a block's call has cost, its children included: model and usage of each."""
        for call in self._by_place.get((run, block, seq), ()):
            yield call.sent.model, call.cost
        for child in self._children.get((run, block), ()):
            if child.parent_call == seq:
                yield from self._costs_of(child.run)

    def _costs_of(self, run: str) -> Iterator[tuple[str, Usage]]:
        for call in self._recorded.calls:
            if is_within(call.sent.run, run):
                yield call.sent.model, call.cost

    def child(
        self, parent: str, block: int, seq: int, item: int | None, question: str
    ) -> str | None:
        """Return the id of the child that a call started then, once; None where it did not.

        Of those that it started one after another, each anew, it is the last.
        """
        left = self._children.get((parent, block), [])
        same = [run for run in left if run.question == question and run.run not in self._taken]
        found = [r for r in same if (r.parent_call, r.parent_item) == (seq, item)] or same[:1]
        self._taken.update(run.run for run in found)
        return found[-1].run if found else None

    def children_of(self, run: str) -> int:
        """The number of the last child of a run; they are not recorded in the order of these."""
        started = (*self._recorded.runs, *self._recorded.stood_in)
        names = (name.rpartition(".") for name in started)
        numbers = (int(last) for above, _, last in names if above == run and last.isdecimal())
        return max(numbers, default=0)

    def calls_of(self, run: str) -> int:
        """The number of the last call that a run has sent."""
        sent = (call.sent.call for call in self._recorded.calls if call.sent.run == run)
        return max(sent, default=0)

    def task_end(self, run: str, task: int) -> events.TaskEnded | None:
        """Return how a task ended by itself or was cancelled by a block, None where it goes on."""
        ended = self._recorded.task_ends.get((run, task))
        if ended is None or ended.status == "failed":
            return None
        if ended.status == "cancelled" and (run, task) not in self._recorded.cancelled:
            # The end of the run had cancelled it.
            return None
        return ended

    def check_goes_on(self, run: str) -> None:
        """Called where a run would do what its trace does not have.

        Raises:
            LimitReached: it is only repeated, and had come to this limit here.
            DivergedError: it is only repeated, and had not ended here.
        """
        if not self.is_over:
            return
        ending = self._recorded.endings.get(run) or self._recorded.endings.get(self._root)
        if ending is None:
            raise DivergedError(
                f"the run differs from its trace: {run} goes on where the trace has no more",
                hint="it needs the same corpus and the same version of rlm-rag",
            )
        raise LimitReached(_stop_reason(ending.name), ending.detail)

    def knows(self, event: events.Event) -> bool:
        """Whether the trace has an event, which is compared with it.

        Raises:
            DivergedError: it has another one in its place.
        """
        recorded = self._recorded
        match event:
            case events.RunStarted():
                return self._knows_run(event)
            case events.TurnStarted():
                return self._knows_turn(event)
            case events.BlockStarted():
                block = recorded.blocks.get((event.run, event.block))
                if block is not None:
                    check_same(f"block {event.block} of {event.run}", event.code, block.code)
                return block is not None
            case events.BlockOutput():
                output = recorded.outputs.get((event.run, event.block))
                if output is not None:
                    check_output(event, output)
                return output is not None
            case events.TaskStarted():
                task = recorded.tasks.get((event.run, event.task))
                if task is not None:
                    check_same(f"task {event.task} of {event.run}", event.function, task.function)
                return task is not None
            case events.TaskEnded():
                return self.task_end(event.run, event.task) is not None
            case events.Delegated():
                return (event.run, event.path, event.first, event.last) in self._delegated
            case events.Answered():
                return self._knows_end(event)
        return False

    def _knows_run(self, event: events.RunStarted) -> bool:
        run = self._recorded.runs.get(event.run)
        if run is not None:
            check_same(f"the question of {event.run}", event.question, run.question)
            if event.corpus != run.corpus:
                check_same(
                    f"the corpus of {event.run}", _figures(event.corpus), _figures(run.corpus)
                )
        return run is not None

    def _knows_turn(self, event: events.TurnStarted) -> bool:
        told = self.turn(event.run, event.turn)
        if told is not None and event.turn == 1:
            check_same(f"the first prompt of {event.run}", said(event.messages), said(told))
        return told is not None

    def _knows_end(self, event: events.Answered) -> bool:
        end = self._recorded.ends.get(event.run)
        if end is None or end.stop_reason == "interrupted":
            return False
        if event.run == self._root and not self.is_over:
            return False
        check_same(f"the answer of {event.run}", event.text, end.text)
        return True


def _looked(coverage: Coverage, found: events.Retrieved, within: Collection[str] | None) -> None:
    coverage.looked(found.name, found.arguments)
    if found.name == "grep_context" and not found.result.get("error"):
        coverage.grepped(found.arguments.get("path_glob"), within)


def _prompt_of(messages: Sequence[Mapping[str, str]]) -> Prompt:
    return tuple((message["role"], message["content"]) for message in messages)


def _asked(answer: Answer) -> str:
    return answer.asked if isinstance(answer, events.Served) else digest(answer.arguments)


def _figures(corpus: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(corpus.items()))


def _stop_reason(name: str) -> StopReason:
    known: tuple[StopReason, ...] = get_args(StopReason)
    return next((reason for reason in known if reason == name), "errors")
