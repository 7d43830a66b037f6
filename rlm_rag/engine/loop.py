"""The loop: prompt the root model, run its blocks, show it what came out, until it answers.

A limit is not an error: the run then ends with the best answer that can be made of what there
is, by one last root call that was reserved from the start.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rlm_rag.counts import counted
from rlm_rag.engine.admission import LimitReached
from rlm_rag.engine.answer import StopReason
from rlm_rag.engine.calls import ModelCalls
from rlm_rag.engine.carried import Left
from rlm_rag.engine.compaction import Compaction
from rlm_rag.engine.doubts import Doubts
from rlm_rag.engine.ending import Ending, answered
from rlm_rag.engine.guidance import COMPUTED, Guide
from rlm_rag.engine.hints import Hints
from rlm_rag.engine.history import History, RanBlock, feedback, status_line
from rlm_rag.engine.memory import Memory
from rlm_rag.engine.prompts.texts import Profile
from rlm_rag.engine.reply import Block, ParsedReply, parse_reply
from rlm_rag.engine.stated import stated_answer
from rlm_rag.engine.tasks import Tasks
from rlm_rag.engine.thinking import without_thought
from rlm_rag.engine.tree import Assignment, Tree
from rlm_rag.engine.workbench import EXCERPT_CHARS, Workbench
from rlm_rag.errors import ContextWindowError, ModelError, SandboxError
from rlm_rag.models.base import Completion
from rlm_rag.trace import events

STUMBLES = 2
"""After so many turns without a block that parses come the small profile's prompts: one such turn
happens to any model. A blind answer is enough alone: what comes after it is the answer."""
_NO_PYTHON = ("SyntaxError", "IndentationError", "TabError")

NO_BLOCK = (
    "Your reply held nothing to run and no answer. Write Python in a ```repl fence, "
    'or finish with answer["content"] = "..." and answer["ready"] = True in one.'
)
CUT = "Your reply was cut off by the output limit; write shorter replies."
EMPTY_FINAL = "FINAL was empty; nothing was accepted."
EMPTY_ANSWER = 'answer["ready"] was set while answer["content"] is empty; nothing was accepted.'


class Loop:
    """Drives one RLM from its question to an ending; used once."""

    def __init__(
        self,
        tree: Tree,
        assignment: Assignment,
        *,
        guide: Guide,
        history: History,
        bench: Workbench,
        calls: ModelCalls,
        compaction: Compaction,
        tasks: Tasks,
        doubts: Doubts,
        hints: Hints,
        simpler: Profile | None = None,
    ) -> None:
        self._run_id = assignment.run_id
        self._root = assignment.root
        self._is_followed = assignment.is_followed
        self._budget = tree.budget
        self._limits = tree.limits
        self._recorder = tree.recorder
        self._past = tree.past
        self._guide = guide
        self._history = history
        self._bench = bench
        self._calls = calls
        self._compaction = compaction
        self._tasks = tasks
        self._doubts = doubts
        self._simpler = simpler
        self._hints = hints
        self._memory = Memory()
        self._stumbles = 0
        self._doubted: Ending | None = None
        self._ran_well = False
        self._blockless = 0
        self._errors = 0
        self._inbox: list[str] = []
        self._began = time.monotonic()
        self.iterations = 0

    def tell(self, text: str) -> None:
        """Have the root model read `text` in its next turn, unless it had read it before."""
        if not self._past.heard(self._run_id, text):
            self._inbox.append(text)

    def said(self) -> Sequence[Mapping[str, str]]:
        """The beginnings of what was said since the first prompt, as role and content."""
        return [
            {"role": message.role, "content": message.content[:EXCERPT_CHARS]}
            for _, message in self._history.turns[1:]
        ]

    def so_far(self) -> str:
        """The answer that it would give if it had to end now; empty where it has none."""
        return self._bench.candidate

    def elapsed_seconds(self) -> float:
        """Time since it was made."""
        return time.monotonic() - self._began

    async def run(self) -> Ending:
        """Run turns until an answer or a limit; no task of it runs on after that.

        Raises:
            ModelError: the very first root call failed, so that there is nothing to return.
        """
        try:
            async with asyncio.timeout(self._budget.seconds_left()) as deadline:
                return await self._turns()
        except LimitReached as reached:
            return await self._stopped(reached.name, reached.detail)
        except TimeoutError:
            if not deadline.expired():
                raise
            detail = f"the limit of {self._limits.seconds:g} seconds was reached"
            return await self._stopped("timeout", detail)
        finally:
            await self._tasks.close()

    async def look_back(self) -> None:
        """Take what `answer` holds in a block that was cut short, for `interrupted`."""
        await self._bench.look_back()

    def interrupted(self) -> Ending:
        """Return what there is, without another call; for a run that was cancelled."""
        return self._bench.ending("interrupted", "interrupted", "the run was interrupted")

    async def leave(self, *, seconds: float) -> Left:
        """Return its messages, and the variables of its REPL."""
        return await self._bench.leave(seconds=seconds)

    async def _turns(self) -> Ending:
        for turn in range(1, self._limits.iterations + 1):
            self.iterations = turn
            try:
                reply = await self._ask_root(turn)
            except ModelError as error:
                if turn == 1:
                    raise
                detail = f"the root model failed: {error.message}"
                return self._standing("errors", detail) or self._broken(detail)
            try:
                ending = await self._act(turn, reply)
            except SandboxError as error:
                return await self._stopped("errors", error.message)
            if ending is not None:
                return ending
            if self._errors >= self._limits.errors:
                detail = f"{self._errors} turns in a row failed"
                return await self._stopped("errors", detail)
        detail = f"the limit of {counted(self._limits.iterations, 'turn')} was reached"
        return await self._stopped("iterations", detail)

    async def _ask_root(self, turn: int) -> Completion:
        new = self._history.take_new()
        self._recorder.record(events.TurnStarted(run=self._run_id, turn=turn, messages=new))
        told = self._past.turn(self._run_id, turn)
        if told is not None:
            self._history.retell(told)
        await self._compaction.before(turn)
        try:
            completion = await self._complete(turn)
        except ContextWindowError:
            if turn == 1 or not await self._compaction.refused(turn):
                raise
            completion = await self._complete(turn)
        self._history.replied(self._guide.as_read(completion.text))
        return completion

    async def _complete(self, turn: int, *, final: bool = False) -> Completion:
        return await self._calls.complete(
            self._root,
            self._history.messages,
            role="root",
            turn=turn,
            max_output_tokens=self._guide.reply_tokens(self._root.facts.max_output_tokens),
            final=final,
            stop=() if final else self._guide.stop,
            schema=self._doubts.schema if final else None,
        )

    async def _act(self, turn: int, reply: Completion) -> Ending | None:
        parsed = parse_reply(reply.text)
        notes = list(parsed.notes)
        if reply.finish_reason == "length":
            notes.append(CUT)
        ending = await self._written(parsed, reply, notes)
        if ending is not None:
            return ending
        blocks = self._guide.to_run(_blocks(parsed), notes)
        ran, ending = await self._run_blocks(turn, blocks, notes)
        if ending is None and (instead := self._guide.instead(notes)) is not None:
            computed, ending = await self._run_blocks(turn, [instead], notes)
            ran += computed
            ending = ending and replace(ending, notes=(*ending.notes, COMPUTED))
        if ending is not None:
            return ending
        well = self._doubts.watch(ran)
        self._errors = 0 if well else self._errors + 1
        self._ran_well = self._ran_well or well
        notes += self._hints.about(ran, is_guided=self._guide.is_on)
        if self._hints.repeats and (lines := self._guide.looks()) is not None:
            ran, ending = await self._look_up(turn, lines, notes)
        elif self._guide.gives_up(self._hints.repeats):
            ending = await self._given_up()
        if ending is None:
            self._tell(turn, ran, notes)
        return ending

    async def _look_up(
        self, turn: int, lines: Block, notes: list[str]
    ) -> tuple[list[RanBlock], Ending | None]:
        """Run lines in the place of the newest reply, and have the model read that it sent them."""
        self._history.reword(f"```repl\n{lines.code}\n```")
        notes.clear()
        ran, ending = await self._run_blocks(turn, [lines], notes)
        if self._doubts.watch(ran):
            self._ran_well, self._errors = True, 0
        return ran, ending

    def _tell(self, turn: int, ran: Sequence[RanBlock], notes: list[str]) -> None:
        """Tell the model what came of its turn."""
        self._step_down(ran)
        notes += self._tasks.notes()
        notes += (f"Your parent says: {text}" for text in self._inbox)
        self._inbox.clear()
        memory = self._memory.after([block.result for block in ran], folded=self._history.folded)
        self._history.told(feedback(ran, notes, self._status(turn + 1), memory))

    async def _given_up(self) -> Ending:
        """Return the ending of a model that only repeats itself."""
        if self._doubted is not None and self._doubted.is_blind:
            return self._final(self._doubted)
        detail = "the root model sent the same blocks again and again"
        return self._broken(detail) if self._is_followed else await self._end_by("errors", detail)

    def _step_down(self, ran: Sequence[RanBlock]) -> None:
        """Put simpler prompts before a model that writes no code, or none that parses."""
        unparsed = any(
            each.result.error is not None and each.result.error.type in _NO_PYTHON for each in ran
        )
        self._stumbles += not ran or unparsed
        if self._simpler is not None and self._stumbles >= STUMBLES:
            self._history.instruct(self._simpler.system)
            self._guide.is_on = True
            self._recorder.record(
                events.SteppedDown(
                    run=self._run_id, turn=self.iterations + 1, prompts=self._simpler.version
                )
            )
            self._simpler = None

    async def _written(
        self, parsed: ParsedReply, reply: Completion, notes: list[str]
    ) -> Ending | None:
        """Take an answer that the reply gives as text, where it has nothing to run.

        One that ends nothing is asked for once more with the reason; what comes then, after
        blocks that ran, is the answer of a model that cannot say so otherwise.
        """
        if _blocks(parsed):
            self._blockless = 0
            return None
        if parsed.final is not None and parsed.final.strip():
            ending = answered(parsed.final, is_cut=reply.finish_reason == "length")
            return await self._accepted(ending, notes, computed=False, blind=self._bench.is_unused)
        self._blockless += 1
        said = without_thought(reply.text)
        is_text = said and reply.finish_reason == "stop" and parsed.final is None
        in_words = self._blockless > 1 or self._guide.takes_words
        if in_words and self._ran_well and is_text:
            ending = answered(said)
            return await self._accepted(ending, notes, computed=False)
        no_block = self._guide.look_first if self._guide.is_on and not self._ran_well else NO_BLOCK
        notes.append(no_block if parsed.final is None else EMPTY_FINAL)
        return None

    async def _accepted(
        self,
        ending: Ending,
        notes: list[str],
        *,
        computed: bool,
        blind: bool = False,
        code: str = "",
    ) -> Ending | None:
        """Return the ending, or None where its answer is questioned in the next turn."""
        lacks = self._doubts.lacks(ending.text, computed=computed)
        if lacks is not None and ending.is_answer:
            detail = f"the root model answered though {lacks}"
            ending = replace(ending, stop_reason="errors", detail=detail, is_blind=True)
        if self.iterations >= self._limits.iterations:
            return self._final(ending)
        # Where nothing better comes, an answer that was questioned is still the answer; so is one
        # whose questioning took the rest of the time.
        self._doubted = ending
        doubt = await self._doubts.about(ending.text, computed=computed, blind=blind, code=code)
        if doubt is None:
            return self._final(ending)
        if not computed and not self._ran_well and not self._bench.goes_on:
            self._stumbles += STUMBLES
        notes.append(doubt)
        return None

    async def _run_blocks(
        self, turn: int, blocks: Sequence[Block], notes: list[str]
    ) -> tuple[list[RanBlock], Ending | None]:
        ran: list[RanBlock] = []
        for position, block in enumerate(blocks):
            ran.append(await self._bench.run(turn, block.code))
            error, ready = ran[-1].result.error, ran[-1].answer is not None
            if ready and error is None:
                skipped = _skipped(blocks, position)
                ending = await self._set_by(ran[-1], skipped, notes)
                if ending is not None or self._bench.candidate.strip():
                    notes += skipped
                    return ran, ending
                notes.append(EMPTY_ANSWER)
            if error is not None:
                if ready:
                    notes.append("The block raised, so its answer was not accepted.")
                notes += _skipped(blocks, position)
                break
        return ran, None

    async def _set_by(
        self, block: RanBlock, skipped: tuple[str, ...], notes: list[str]
    ) -> Ending | None:
        """Return the ending of a block that set the answer; None where it is not accepted."""
        if not self._bench.candidate.strip():
            return None
        ending = answered(self._bench.candidate, notes=skipped)
        computed = self._doubts.is_computed(block, ending.text)
        return await self._accepted(ending, notes, computed=computed, code=block.code)

    async def _stopped(self, stop_reason: StopReason, detail: str) -> Ending:
        """Return the ending at a limit: an answer that stands though it was questioned, if any."""
        return self._standing(stop_reason, detail) or await self._end_by(stop_reason, detail)

    def _standing(self, stop_reason: StopReason, detail: str) -> Ending | None:
        """Return an answer that was questioned, a blind one after errors alone, where there is one.

        What kept a better one from coming is recorded: a replay ends there too.
        """
        ending = self._doubted
        if ending is not None and (stop_reason == "errors" or not ending.is_blind):
            self._reached(stop_reason, detail)
            return ending
        return None

    async def _end_by(self, stop_reason: StopReason, detail: str) -> Ending:
        """End with one last root call, or, where that fails, with what there is."""
        self._reached(stop_reason, detail)
        await self._tasks.close()
        self._history.told(await self._last_request(detail))
        new = self._history.take_new()
        turn = self.iterations + 1
        self._recorder.record(events.TurnStarted(run=self._run_id, turn=turn, messages=new))
        await self._compaction.before(turn, may_ask=False)
        try:
            completion = await self._last_reply(turn)
        except (ModelError, LimitReached):
            return self._bench.ending(stop_reason, detail, detail)
        text = await self._last_text(completion.text)
        if not text.strip():
            return self._bench.ending(stop_reason, detail, detail)
        return Ending(
            text,
            stop_reason,
            detail,
            is_blind=not self._ran_well or self._doubts.lacks(text, computed=False) is not None,
            is_cut=completion.finish_reason == "length",
        )

    async def _last_reply(self, turn: int) -> Completion:
        """Make the last root call, with fewer older turns where the limits have no room for all."""
        while True:
            try:
                return await self._complete(turn, final=True)
            except LimitReached as reached:
                if reached.name not in ("budget_tokens", "budget_usd"):
                    raise
                if not await self._compaction.shorten(turn):
                    raise

    async def _last_text(self, reply: str) -> str:
        """Return the answer that a last reply gives, also where it gives it as code."""
        parsed = parse_reply(reply)
        if parsed.final_var is not None:
            result = await self._bench.look(f"FINAL_VAR({parsed.final_var!r})")
            return self._bench.candidate if result is not None else ""
        if parsed.final is not None or not parsed.blocks:
            return parsed.final or without_thought(reply)
        stated = stated_answer(parsed.blocks)
        if stated is not None:
            return stated
        only_code = len(reply.strip().splitlines()) <= sum(
            block.code.count("\n") + 3 for block in parsed.blocks
        )
        return self._bench.candidate if only_code else reply

    async def _last_request(self, detail: str) -> str:
        parts = [f"The run ends here: {detail}. No more code will run."]
        kept = await self._bench.look()
        if self._bench.candidate:
            parts.append(f"Your answer so far:\n{self._bench.candidate}")
        if kept is not None and kept.value:
            parts.append(f"`answers`: {kept.value}")
        if self._bench.variables:
            names = ", ".join(f"{name} ({kind})" for name, kind, _ in self._bench.variables[:50])
            parts.append(f"Your variables: {names}")
        results = self._tasks.unfetched_results()
        if results:
            parts.append(results)
        parts.append(
            "Reply now with the best answer you can give from what you have seen, as plain text "
            "with its citations, and say what is missing."
        )
        if self._doubts.form is not None:
            parts.append(self._doubts.form.instruction)
        return "\n\n".join(parts)

    def _final(self, ending: Ending) -> Ending:
        """Return the ending of an answer, and record that it does not stand where it is blind."""
        if ending.is_blind:
            self._reached(ending.stop_reason, ending.detail or "")
        return ending

    def _broken(self, detail: str) -> Ending:
        self._reached("errors", detail)
        return self._bench.ending("errors", detail, detail)

    def _reached(self, name: StopReason, detail: str) -> None:
        self._recorder.record(events.LimitReached(run=self._run_id, name=name, detail=detail))

    def _status(self, turn: int) -> str:
        return self._guide.ended(status_line(turn, self._limits, self._budget))


def _skipped(blocks: Sequence[Block], position: int) -> tuple[str, ...]:
    lines = ", ".join(str(block.line) for block in blocks[position + 1 :])
    return (f"Not run: the later blocks, at lines {lines} of the reply.",) if lines else ()


def _blocks(parsed: ParsedReply) -> Sequence[Block]:
    if parsed.blocks or parsed.final_var is None:
        return parsed.blocks
    return (Block(code=f"FINAL_VAR({parsed.final_var!r})", tag="repl", line=1),)
