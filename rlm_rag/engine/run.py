"""One question asked of one corpus, from its first check to a checked answer and a closed trace."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypedDict

from rlm_rag import __version__
from rlm_rag.argument_types import check_arguments
from rlm_rag.corpus import Corpus
from rlm_rag.engine.added import Added
from rlm_rag.engine.answer import Answer, denies, usage_dict
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.calls import PricedModel
from rlm_rag.engine.carried import Carried, Exchange
from rlm_rag.engine.citations import CitationCheck, content_digest
from rlm_rag.engine.coverage import Coverage, not_looked_at
from rlm_rag.engine.ending import Driver, Ending
from rlm_rag.engine.form import Form, Unfit, bare, prose_of
from rlm_rag.engine.hosted import HostSide
from rlm_rag.engine.images import read_images
from rlm_rag.engine.lineup import Lineup
from rlm_rag.engine.offers import NOTHING
from rlm_rag.engine.options import RunOptions, to_record
from rlm_rag.engine.past import Past
from rlm_rag.engine.prompts.texts import profile_name
from rlm_rag.engine.slots import Slots
from rlm_rag.engine.strategies.choice import choose
from rlm_rag.engine.strategies.opening import Asked, in_place_of, needs_evidence, open_driver
from rlm_rag.engine.tree import Assignment, Spread, Tree
from rlm_rag.engine.view import View
from rlm_rag.errors import DivergedError, NotHeldError, TraceError, UsageError
from rlm_rag.indexes.requests import Retriever
from rlm_rag.loaders.commit import commit_of
from rlm_rag.sandbox.layers import abandon_self_test, choose_layer
from rlm_rag.sandbox.opening import Isolation
from rlm_rag.sandbox.session import Said
from rlm_rag.setting_table import WEAK_SANDBOXES
from rlm_rag.trace import events
from rlm_rag.trace.recorder import Recorder
from rlm_rag.trace.store import TraceStore, new_run_id

LEAVE_SECONDS = 5.0
LEAVE_AT_ONCE_SECONDS = 1.0
"""How long variables may take to be kept, and how long where somebody waits for the end."""

# The strategies whose runs may have children.
_NESTING = ("auto", "rlm")
# Children of more values of Python run here: each node that runs some needs a copy of the text.
_MOST_COPIED_BYTES = 2 << 30

_ONLY_REPEATED = "no model is asked here: the run is only repeated from its trace"


class _Asked(TypedDict):
    question: str


class Run:
    """One run; used once, on the library's loop.

    Given a `past` it is taken up again, or replayed. It goes on with a conversation that is
    `carried`; once it has ended, `carried_on` is what the next question goes on with.
    """

    def __init__(
        self,
        *,
        corpus: Corpus,
        retriever: Retriever,
        question: str,
        options: RunOptions,
        images: Sequence[str | Path] = (),
        past: Past | None = None,
        form: Form | None = None,
        carried: Carried | None = None,
    ) -> None:
        self._form = form
        self._host = HostSide(options.offers)
        self._corpus = corpus
        self._citations = CitationCheck(corpus)
        self._retriever = retriever
        self._question = question
        self._images = images
        self._options = options
        self._past = past or Past()
        self._carried = carried or self._past.carried
        self.carried_on: Carried | None = None
        self._run_id = self._past.run_id or new_run_id()
        self._interrupted = False
        self._spread: Spread | None = None
        self._running: asyncio.Future[Answer] | None = None
        self._driving: asyncio.Future[Ending] | None = None

    async def interrupted(self) -> Answer:
        """End the run now and return what there is; `execute`, if it was called, returns it too.

        Raises:
            RlmRagError: what `execute` raised, where it had come to that already.
        """
        self._interrupted = True
        if self._running is None:
            return self.no_answer()
        (self._driving or self._running).cancel()
        await asyncio.wait([self._running])
        return self.no_answer() if self._running.cancelled() else self._running.result()

    def no_answer(self) -> Answer:
        """Return the answer of a run that was interrupted before its first turn."""
        return Answer(text="", stop_reason="interrupted", model=self._options.names.model)

    async def execute(self) -> Answer:
        """Answer the question.

        Raises:
            UsageError: the question or an option cannot be used.
            ModelError: no answer because of the key, the model's name or the network.
            SandboxError: no worker could be started.
        """
        if self._interrupted:
            return self.no_answer()
        self._check()
        self._running = asyncio.ensure_future(self._execute())
        try:
            return await self._running
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
            return self.no_answer()

    async def _execute(self) -> Answer:
        async with AsyncExitStack() as stack:
            absent = _ONLY_REPEATED if self._past.is_over else None
            await self._spread_over(stack)
            lineup = await stack.enter_async_context(self._options.lineup(absent=absent))
            recorder = self._open_recorder()
            stack.callback(recorder.close)
            budget, coverage = self._carried_over()
            asked = await self._open(stack, lineup, recorder, budget, coverage)
            loop = await stack.enter_async_context(open_driver(asked))
            try:
                ending = await self._drive(loop)
                if self._options.strategy == "auto" and needs_evidence(asked.strategy, ending):
                    ending = await self._from_evidence(stack, asked, ending)
            except DivergedError:
                # The trace stays as it is, for the version or the corpus that it is of.
                raise
            except Exception as error:
                # The trace of a run that failed has its end too.
                failed = Ending("", "errors", str(error))
                answer = await self._answer(failed, loop, recorder, budget, coverage)
                self._record_answer(answer, recorder, budget)
                raise
            answer = await self._answer(ending, loop, recorder, budget, coverage)
            if self._carried is not None:
                self.carried_on = await self._leave(loop, asked.view, answer, self._carried)
            self._record_answer(answer, recorder, budget)
            if ending.stop_reason == "interrupted" and not self._interrupted:
                raise asyncio.CancelledError
            warnings = self._warnings(ending, answer, lineup, recorder)
            return replace(answer, warnings=warnings, commit=asked.tree.commit)

    def _check(self) -> None:
        # None is no question, rather than one of another type.
        if self._question is not None:
            check_arguments({"question": self._question}, _Asked, of="rlm_rag.RLM.ask")
        if not self._question or not self._question.strip():
            raise UsageError("the question is empty", hint='ask something: rlm-rag ask . "..."')
        self._options.check()

    async def _spread_over(self, stack: AsyncExitStack) -> None:
        """Have children run elsewhere, where that may be and makes sense."""
        options = self._options
        if options.spreading is None or self._past.run_id or options.limits.depth == 0:
            return
        if self._corpus.shape != "documents" and self._corpus.total_bytes > _MOST_COPIED_BYTES:
            return
        # What blocks have of the caller is on this machine; a person can be asked from any.
        if replace(options.offers, ask_user=None) != NOTHING or options.strategy not in _NESTING:
            return
        self._spread = await stack.enter_async_context(options.spreading.spread(options))
        self._options = replace(options, share=self._spread.share)

    def _carried_over(self) -> tuple[Budget, Coverage]:
        """Return a budget and a coverage with what the past has of them."""
        budget = Budget(
            self._options.limits,
            elapsed_seconds=self._past.elapsed_seconds,
            share=self._options.share,
        )
        for sent, usage in self._past.spent():
            budget.carry_over(sent, usage)
        return budget, self._past.coverage()

    def _open_recorder(self) -> Recorder:
        if self._past.run_id:
            return self._reopened(self._past)
        trace = self._options.trace
        if trace is False:
            return Recorder(None, listener=self._options.on_event)
        try:
            store = TraceStore() if trace is True else TraceStore(Path(trace))
        except TraceError as error:
            failure = f"{error.message} ({error.hint})"
            return Recorder(None, listener=self._options.on_event, failure=failure)
        return store.create(self._run_id, listener=self._options.on_event)

    def _reopened(self, past: Past) -> Recorder:
        listener = self._options.on_event
        if past.is_over:
            return Recorder(None, listener=listener, known=past.knows)
        # The past of one that went on elsewhere is in no file of this machine.
        path = None if self._options.trace is False else past.path
        recorder = Recorder(path, listener=listener, known=past.knows, after=past.lines)
        recorder.record(
            events.Resumed(
                run=self._run_id, limits=asdict(self._options.limits), version=__version__
            )
        )
        return recorder

    async def _open(
        self,
        stack: AsyncExitStack,
        lineup: Lineup,
        recorder: Recorder,
        budget: Budget,
        coverage: Coverage,
    ) -> Asked:
        """Put together what every strategy of the run shares, and choose the first."""
        options, limits, carried = self._options, self._options.limits, self._carried
        spread = self._spread
        # Before any worker starts: an image that cannot be shown is told at once.
        assignment = self._assignment(lineup.root)
        added = None if carried is None else Added(carried.added)
        view = View(self._corpus, self._retriever, added=added)
        stack.push_async_callback(view.aclose)
        strategy = self._strategy(view, lineup)
        tree = Tree(
            budget=budget,
            limits=limits,
            recorder=recorder,
            coverage=coverage,
            layer=await self._layer() if strategy == "rlm" else None,
            worker_limits=options.worker_limits,
            profile=options.profile,
            system_prompt=options.system_prompt,
            lineup=lineup,
            slots=spread.slots if spread else Slots(limits.live_children, limits.depth),
            past=self._past,
            host=self._host,
            citations=self._citations,
            options=self._recorded_options(lineup),
            commit=await self._commit(),
            on_text=options.on_text,
            elsewhere=spread.elsewhere if spread else None,
        )
        return Asked(strategy, tree, assignment, view)

    def _assignment(self, root: PricedModel) -> Assignment:
        return Assignment(
            run_id=self._run_id,
            question=self._question,
            root=root,
            images=read_images(self._images, model=root.name, facts=root.facts),
            form=self._form,
            carried=self._carried,
            is_followed=self._options.strategy == "auto",
        )

    def _strategy(self, view: View, lineup: Lineup) -> str:
        options = self._options
        if options.strategy != "auto":
            return options.strategy
        if self._carried is not None and self._carried.names:
            # No other strategy can look at variables.
            return "rlm"
        return choose(
            view,
            question=self._question,
            root=lineup.root,
            profile=profile_name(options.profile, lineup.root.name),
            calls_left=options.limits.calls or 0,
        )

    def _recorded_options(self, lineup: Lineup) -> dict[str, Any]:
        return {
            **to_record(self._options, self._images, source=self._corpus.origin),
            "windows": dict(lineup.windows),
            "schema": None if self._form is None else self._form.schema,
            "carried": None if self._carried is None else self._carried.to_json(),
        }

    async def _commit(self) -> str | None:
        if self._past.run_id:
            return self._past.commit
        return await asyncio.to_thread(commit_of, self._corpus.origin)

    async def _layer(self) -> Isolation:
        try:
            # Its self-test waits for a process, which must not hold up the loop.
            return await asyncio.to_thread(
                choose_layer, self._options.sandbox, image=self._options.sandbox_image
            )
        except asyncio.CancelledError:
            if self._interrupted:
                abandon_self_test()
            raise

    async def _drive(self, loop: Driver) -> Ending:
        """Run the loop in a task of its own, so that an interruption reaches only it."""
        self._driving = asyncio.ensure_future(loop.run())
        try:
            return await self._driving
        except asyncio.CancelledError:
            self._driving.cancel()
            await asyncio.wait([self._driving])
            await loop.look_back()
            return loop.interrupted()

    async def _leave(self, driver: Driver, view: View, answer: Answer, carried: Carried) -> Carried:
        left = await driver.leave(
            seconds=LEAVE_AT_ONCE_SECONDS if self._interrupted else LEAVE_SECONDS
        )
        number = len(carried.exchanges)
        exchange = Exchange(
            self._question,
            answer.text,
            answer.stop_reason,
            self._run_id,
            tuple(Said(number, turn, role, content) for turn, role, content in left.said),
            usage_dict(answer.usage),
        )
        has_repl = left.variables is not None
        return replace(
            carried,
            exchanges=(*carried.exchanges, exchange),
            variables=left.variables if has_repl else carried.variables,
            names=left.names if has_repl else carried.names,
            added=dict(view.added.documents),
        )

    async def _from_evidence(self, stack: AsyncExitStack, asked: Asked, ending: Ending) -> Ending:
        """Answer from passages where the root model could not drive its REPL to an answer."""
        with_passages = replace(
            asked, strategy="retrieve", assignment=in_place_of(asked.assignment)
        )
        driver = await stack.enter_async_context(open_driver(with_passages))
        found = await self._drive(driver)
        asked.tree.recorder.record(
            events.Answered(
                run=with_passages.assignment.run_id,
                text=found.text,
                stop_reason=found.stop_reason,
                iterations=driver.iterations,
            )
        )
        note = f"the root model did not drive its REPL to an answer ({ending.detail})"
        if found.is_answer:
            return replace(found, notes=(f"{note}; this one is from passages", *found.notes))
        return replace(
            ending, text=found.text or ending.text, is_answer=False, notes=(*ending.notes, note)
        )

    async def _answer(
        self, ending: Ending, loop: Driver, recorder: Recorder, budget: Budget, coverage: Coverage
    ) -> Answer:
        text, data, fits = await _formed(self._form, ending.text, budget)
        prose = prose_of(json.loads(text)) if fits else text
        await View(self._corpus, self._retriever).hold_cited(prose)
        return Answer(
            text=text,
            data=data,
            fits=fits,
            artifacts=self._host.artifacts.saved,
            stop_reason=ending.stop_reason,
            model=self._options.names.model,
            citations=self._citations(prose),
            iterations=loop.iterations,
            usage=budget.usage,
            by_model=budget.by_model,
            by_role={str(role): usage for role, usage in budget.by_role.items()},
            coverage=coverage.summary(self._corpus.paths()),
            found=ending.is_answer and bool(text.strip()) and not denies(prose),
            fingerprint=self._corpus.fingerprint,
            trace=None if recorder.path is None else str(recorder.path),
            limit_detail=ending.detail,
        )

    def _warnings(
        self, ending: Ending, answer: Answer, lineup: Lineup, recorder: Recorder
    ) -> tuple[str, ...]:
        return (
            *_weakness(self._options.sandbox),
            *ending.notes,
            *_cut(ending),
            *lineup.warnings,
            *lineup.guesses,
            *_failure(recorder),
            *_misfit(answer),
            *not_looked_at(self._question, answer.coverage),
        )

    def _cited(self, answer: Answer) -> dict[str, str]:
        paths = dict.fromkeys(each.path for each in answer.citations if each.status != "false")
        digests: dict[str, str] = {}
        for path in paths:
            # What cannot be read now cannot be compared later.
            with suppress(NotHeldError):
                digests[path] = content_digest(self._corpus[path].content)
        return digests

    def _record_answer(self, answer: Answer, recorder: Recorder, budget: Budget) -> None:
        shown = answer.to_dict()
        recorder.record(
            events.Answered(
                run=self._run_id,
                text=answer.text,
                stop_reason=answer.stop_reason,
                citations=shown["citations"],
                cited=self._cited(answer),
                usage=shown["usage"],
                coverage=shown["coverage"],
                iterations=answer.iterations,
                seconds=round(budget.elapsed_seconds(), 3),
            )
        )


def _weakness(sandbox: str) -> tuple[str, ...]:
    weakness = WEAK_SANDBOXES.get(sandbox)
    return () if weakness is None else (weakness,)


def _cut(ending: Ending) -> tuple[str, ...]:
    return ("the output limit of its call cut the answer off",) if ending.is_cut else ()


async def _formed(form: Form | None, text: str, budget: Budget) -> tuple[str, Any, bool | None]:
    """Return an answer's text, its data, and whether it has the form that was asked for."""
    if form is None:
        return text, None, None
    try:
        return bare(text), await form.read(text, seconds_left=budget.seconds_left()), True
    except Unfit:
        return text, None, False


def _misfit(answer: Answer) -> tuple[str, ...]:
    return ("the answer does not fit the schema",) if answer.fits is False else ()


def _failure(recorder: Recorder) -> tuple[str, ...]:
    if recorder.failure is None:
        return ()
    return (f"the trace is not complete: {recorder.failure}",)
