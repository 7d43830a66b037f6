"""A REPL that no root model drives: its caller gives the blocks."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Self

from rlm_rag.corpus import Corpus
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.citations import CitationCheck
from rlm_rag.engine.coverage import Coverage
from rlm_rag.engine.hosted import HostSide
from rlm_rag.engine.options import RunOptions
from rlm_rag.engine.past import Past
from rlm_rag.engine.rlm import Repl, open_repl
from rlm_rag.engine.slots import Slots
from rlm_rag.engine.tree import Assignment, Tree
from rlm_rag.engine.view import View
from rlm_rag.indexes.requests import Retriever
from rlm_rag.models.base import Usage
from rlm_rag.sandbox.layers import choose_layer
from rlm_rag.sandbox.session import BlockResult
from rlm_rag.trace.recorder import Recorder
from rlm_rag.trace.store import new_run_id

NO_MODEL = "no model is set; give Repl(corpus, model=...) one for sub-calls"


class BareRepl:
    """One REPL, its sub-models and children within the limits of `options`; no trace is kept."""

    def __init__(self, repl: Repl, budget: Budget, options: RunOptions, stack: AsyncExitStack):
        self._repl = repl
        self._budget = budget
        self._options = options
        self._stack = stack
        self._block = 0
        self._turn = asyncio.Lock()

    @classmethod
    async def open(
        cls, corpus: Corpus, retriever: Retriever, options: RunOptions, *, has_model: bool
    ) -> Self:
        """Start the worker; without a model, what asks one says that there is none.

        Raises:
            SandboxUnavailableError: no worker started.
            ModelError: a name or key that cannot be used.
        """
        async with AsyncExitStack() as stack:
            limits, asked = options.limits, options
            if not has_model:
                asked = replace(options, limits=replace(limits, usd=None), share=None)
            absent = None if has_model else NO_MODEL
            lineup = await stack.enter_async_context(asked.lineup(absent=absent))
            view = View(corpus, retriever)
            stack.push_async_callback(view.aclose)
            budget = Budget(limits, share=asked.share)
            tree = Tree(
                budget=budget,
                limits=limits,
                recorder=Recorder(None, listener=options.on_event),
                coverage=Coverage(),
                layer=await asyncio.to_thread(
                    choose_layer, options.sandbox, image=options.sandbox_image
                ),
                worker_limits=options.worker_limits,
                profile=options.profile,
                system_prompt=options.system_prompt,
                lineup=lineup,
                slots=Slots(limits.live_children, limits.depth),
                past=Past(),
                host=HostSide(options.offers),
                citations=CitationCheck(corpus),
                options={},
            )
            assignment = Assignment(run_id=new_run_id(), question="", root=lineup.root)
            repl = await stack.enter_async_context(open_repl(tree, assignment, view))
            return cls(repl, budget, options, stack.pop_all())

    @property
    def usage(self) -> Usage:
        """What the calls of all blocks came to."""
        return self._budget.usage

    async def run(self, code: str) -> BlockResult:
        """Run one block, after those before it; cancelling interrupts it, and its variables stay.

        Raises:
            SandboxError: the worker was lost too often.
        """
        async with self._turn:
            self._block += 1
            return await self._repl.session.run(
                code,
                block=self._block,
                timeout_seconds=self._options.limits.cell_seconds,
                output_chars=self._options.limits.output_chars,
            )

    async def aclose(self) -> None:
        """End the worker and what its blocks started; idempotent."""
        await self._stack.aclose()
