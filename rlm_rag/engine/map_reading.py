"""Reading the documents of a map by sub-models, wherever that is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from rlm_rag.corpus import Corpus
from rlm_rag.engine.admission import LimitReached
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.caller import Caller
from rlm_rag.engine.calls import ModelCalls
from rlm_rag.engine.coverage import Coverage
from rlm_rag.engine.delegation import Delegation, delegation_of
from rlm_rag.engine.lineup import Lineup
from rlm_rag.engine.options import RunOptions
from rlm_rag.engine.past import Past
from rlm_rag.engine.refusals import FOR_GOOD
from rlm_rag.engine.subcalls import LeafReply
from rlm_rag.engine.view import View
from rlm_rag.errors import RlmRagError
from rlm_rag.indexes.requests import Retriever
from rlm_rag.trace.recorder import Recorder


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOrder:
    """Which documents of a corpus are to be read, for what, and how."""

    corpus: Corpus
    retriever: Retriever
    paths: tuple[str, ...]
    prompt: str
    options: RunOptions
    run_id: str


Reading = Callable[
    [MapOrder, Budget, Recorder, Callable[[str, LeafReply], None]], Awaitable[tuple[str, ...]]
]
"""Has the documents of an order read within a budget; tells each reply, returns the warnings."""


async def read_documents(
    order: MapOrder,
    budget: Budget,
    recorder: Recorder,
    tell: Callable[[str, LeafReply], None],
    past: Past | None = None,
) -> tuple[str, ...]:
    """Have sub-models read documents; `tell` is given each path and reply as it comes.

    What `past` has a reply to is not sent. What failed only because a provider refuses the key, or
    the time is over, is not told. Where `tell` raises, nothing more is sent; what is under way is
    told too, and the error raised.

    Raises:
        UsageError: an option cannot be used.
        ModelError: a model's name or key cannot be used, also where only the provider knew.
    """
    calls = _calls(order, budget, recorder, past or Past())
    told = _Told(tell, calls, budget)
    async with AsyncExitStack() as stack:
        lineup = await stack.enter_async_context(order.options.lineup())
        view = View(order.corpus, order.retriever)
        stack.push_async_callback(view.aclose)
        delegation = _delegation(order, calls, lineup, view, recorder)
        await delegation.delegate.map_files(
            list(order.paths),
            order.prompt,
            caller=Caller(0, 1, seconds=budget.seconds_left()),
            tell=told.take,
        )
        told.check()
        guesses = lineup.guesses if delegation.reader.has_cut else ()
        return (*lineup.warnings, *guesses)


def _calls(order: MapOrder, budget: Budget, recorder: Recorder, past: Past) -> ModelCalls:
    return ModelCalls(
        run_id=order.run_id,
        budget=budget,
        limits=order.options.limits,
        recorder=recorder,
        past=past,
        keeps_final=False,
    )


def _delegation(
    order: MapOrder, calls: ModelCalls, lineup: Lineup, view: View, recorder: Recorder
) -> Delegation:
    return delegation_of(
        calls,
        run_id=order.run_id,
        lineup=lineup,
        view=view,
        coverage=Coverage(),
        recorder=recorder,
        concurrency=order.options.limits.concurrency,
    )


class _Told:
    """Tells of replies, and ends the calls once one could not be told."""

    def __init__(
        self, tell: Callable[[str, LeafReply], None], calls: ModelCalls, budget: Budget
    ) -> None:
        self._tell = tell
        self._calls = calls
        self._budget = budget
        self._failure: RlmRagError | None = None

    def take(self, path: str, reply: LeafReply) -> None:
        if isinstance(reply.cause, FOR_GOOD):
            self._calls.refusal = self._calls.refusal or reply.cause
        # Where the time is over, a request may end by its own clock before it is cancelled.
        is_over = self._calls.refusal is not None or self._budget.seconds_left() == 0
        if not reply.ok and reply.limit is None and is_over:
            return
        try:
            self._tell(path, reply)
        except RlmRagError as error:
            self._failure = self._failure or error
            self._calls.refusal = LimitReached("errors", error.message)

    def check(self) -> None:
        """Raise what ended the calls, if anything did."""
        failure = self._failure or self._calls.refusal
        if failure is not None:
            raise failure
