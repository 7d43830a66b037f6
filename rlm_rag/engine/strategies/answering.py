"""Answers by prompts that the host writes: no REPL, the same limits, trace and checks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from rlm_rag.engine.admission import LimitReached
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.calls import ModelCalls, PricedModel
from rlm_rag.engine.carried import Left
from rlm_rag.engine.doubts import Doubts
from rlm_rag.engine.ending import Ending, answered
from rlm_rag.engine.history import BEFORE_HEADING
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.strategies.answer_text import answer_text, is_only_code
from rlm_rag.errors import ModelError
from rlm_rag.models.base import Completion, Message
from rlm_rag.trace import events
from rlm_rag.trace.recorder import Recorder

MOST_SEARCHES = 2
BLANK = "Your reply was empty. Answer the question."
ONLY_CODE = (
    "Your reply is only code, and none runs here. Answer the question in words, from the "
    "documents that you were shown; where code is the answer, say so beside it."
)
SEARCHED = (
    "There is no further search. Answer the question from the passages above, or begin with "
    '"Not in the corpus:".'
)
_SEARCH = re.compile(r"^[\s*`>]*SEARCH:[ \t]*(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the root model is given: `prompt`; `evidence` stands for an answer where none comes.

    `notes` are sentences for people, such as what did not fit; `limit` is what left a part of
    the documents unread.
    """

    prompt: str
    evidence: str = ""
    notes: tuple[str, ...] = ()
    limit: LimitReached | None = None


Prepare = Callable[[], Awaitable[Prepared]]
Search = Callable[[str], Awaitable[Prepared]]


class Answering:
    """Asks the root model once, and again where it searches or its answer is questioned.

    One that `takes_over` from another strategy returns what was found where the model fails.
    """

    def __init__(
        self,
        *,
        run_id: str,
        system: str,
        prepare: Prepare,
        search: Search | None,
        calls: ModelCalls,
        root: PricedModel,
        budget: Budget,
        limits: Limits,
        recorder: Recorder,
        doubts: Doubts,
        images: tuple[str, ...] = (),
        before: str = "",
        takes_over: bool = False,
    ) -> None:
        self._run_id = run_id
        self._prepare = prepare
        self._search = search
        self._calls = calls
        self._root = root
        self._budget = budget
        self._limits = limits
        self._recorder = recorder
        self._doubts = doubts
        self._images = images
        self._before = f"{BEFORE_HEADING}\n{before}\n\n" if before else ""
        self._messages = [Message("system", system)]
        self._new: list[Message] = list(self._messages)
        self._takes_over = takes_over
        self._evidence = ""
        self._notes: tuple[str, ...] = ()
        self._limit: LimitReached | None = None
        self._doubted: Ending | None = None
        self._was_blank = False
        self._searches = 0
        self.iterations = 0

    async def run(self) -> Ending:
        """Return the answer, or what was found where a limit came first.

        Raises:
            ModelError: the very first call failed, so that there is nothing to return.
        """
        try:
            return await self._within_time()
        except ModelError as error:
            if not self._takes_over:
                raise
            return self._without(LimitReached("errors", f"the root model failed: {error.message}"))

    async def _within_time(self) -> Ending:
        try:
            async with asyncio.timeout(self._budget.seconds_left()) as deadline:
                return await self._steps()
        except LimitReached as reached:
            return self._without(reached)
        except TimeoutError:
            if not deadline.expired():
                raise
            detail = f"the limit of {self._limits.seconds:g} seconds was reached"
            return self._without(LimitReached("timeout", detail))

    async def look_back(self) -> None:
        """Nothing of it is ever cut short."""

    def interrupted(self) -> Ending:
        """Return what was found, without another call."""
        return self._without(LimitReached("interrupted", "the run was interrupted"))

    async def leave(self, *, seconds: float) -> Left:
        """Return its messages; it has no REPL."""
        return Left([(1 + n // 2, m.role, m.content) for n, m in enumerate(self._messages[1:])])

    async def _steps(self) -> Ending:
        prepared = await self._prepare()
        while True:
            self._take(prepared)
            completion = await self._asked()
            text = answer_text(completion.text)
            words = None if self._search is None else _SEARCH.search(completion.text)
            if words is not None:
                if self._searches <= MOST_SEARCHES and not self._is_last():
                    prepared = await self._searched(words[1])
                    self._searches += 1
                    continue
                text = _SEARCH.sub("", text).strip()
                if not text:
                    return self._without(LimitReached("errors", "the root model only searched"))
            ending = self._ending(text, completion)
            if not ending.text:
                is_code = is_only_code(completion.text)
                if self._was_blank or self._is_last():
                    said = "wrote only code" if is_code else "said nothing"
                    return self._without(LimitReached("errors", f"the root model {said}"))
                self._was_blank = True
                prepared = self._again(ONLY_CODE if is_code else BLANK)
                continue
            if self._is_last():
                return ending
            self._doubted = ending
            doubt = await self._doubts.about(ending.text, computed=False)
            if doubt is None:
                return ending
            prepared = self._again(doubt)

    def _ending(self, text: str, completion: Completion) -> Ending:
        is_cut = completion.finish_reason == "length"
        if self._limit is None:
            return answered(text, is_cut=is_cut, notes=self._notes)
        return Ending(text, self._limit.name, self._limit.detail, is_cut=is_cut, notes=self._notes)

    async def _searched(self, words: str) -> Prepared:
        if self._search is None or self._searches == MOST_SEARCHES:
            return self._again(SEARCHED)
        return await self._search(words.strip(" `*\"'"))

    def _again(self, prompt: str) -> Prepared:
        return Prepared(prompt, self._evidence, self._notes)

    def _take(self, prepared: Prepared) -> None:
        self._evidence = prepared.evidence
        if self._limit is None and prepared.limit is not None:
            self._limit = prepared.limit
            self._record_limit(prepared.limit)
        self._notes = tuple(dict.fromkeys((*self._notes, *prepared.notes)))
        self._doubts.shown(self._before + prepared.prompt)
        first = self.iterations == 0
        prompt = (self._before if first else "") + prepared.prompt
        self._add(Message("user", prompt, self._images if first else ()))

    def _add(self, message: Message) -> None:
        self._messages.append(message)
        self._new.append(message)

    async def _asked(self) -> Completion:
        """Return the root model's reply; that it fails once it has answered is a limit."""
        self.iterations += 1
        new = [{"role": each.role, "content": each.content} for each in self._new]
        self._new.clear()
        self._recorder.record(
            events.TurnStarted(run=self._run_id, turn=self.iterations, messages=new)
        )
        try:
            completion = await self._complete()
        except ModelError as error:
            if self._doubted is None:
                raise
            raise LimitReached("errors", f"the root model failed: {error.message}") from error
        self._add(Message("assistant", completion.text or "(empty reply)"))
        return completion

    async def _complete(self) -> Completion:
        """Send the messages; with what is kept back for a last call, where nothing else is left."""
        complete = partial(
            self._calls.complete,
            self._root,
            self._messages,
            role="root",
            turn=self.iterations,
            schema=None if self._may_search() else self._doubts.schema,
        )
        try:
            return await complete()
        except LimitReached:
            return await complete(final=True)

    def _may_search(self) -> bool:
        """Whether the reply may be words to search for, in the place of an answer."""
        is_over = self._doubted is not None or self._searches >= MOST_SEARCHES or self._is_last()
        return self._search is not None and not is_over

    def _is_last(self) -> bool:
        return self.iterations >= self._limits.iterations

    def _without(self, reached: LimitReached) -> Ending:
        if self._doubted is not None:
            if self._limit is None:
                # A replay ends there too; where documents were left unread it has that limit.
                self._record_limit(reached)
            return self._doubted
        self._record_limit(reached)
        text = f"No answer was reached: {reached.detail}."
        if self._evidence:
            text += f"\n\nThese passages match the question best:\n\n{self._evidence}"
        return Ending(text, reached.name, reached.detail, is_answer=False, notes=self._notes)

    def _record_limit(self, reached: LimitReached) -> None:
        self._recorder.record(
            events.LimitReached(run=self._run_id, name=reached.name, detail=reached.detail)
        )
