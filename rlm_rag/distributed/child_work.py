"""The children of a batch on the nodes of a Ray cluster, each in a REPL and a sandbox there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rlm_rag.corpus import Corpus
from rlm_rag.distributed.copying import Copying
from rlm_rag.distributed.desk import Terms
from rlm_rag.distributed.heard import Heard, HeardChild
from rlm_rag.distributed.relayed import Arrivals, RelayedRetriever, texts_for
from rlm_rag.distributed.remote import RemoteAccount
from rlm_rag.distributed.spool import run_on, trace_of
from rlm_rag.distributed.spreading import fan_out
from rlm_rag.distributed.work import Account, Copied, Copy, Listener, Node, Opening
from rlm_rag.engine.added import Added
from rlm_rag.engine.admission import Amounts
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.child_run import lost, run_child
from rlm_rag.engine.citations import CitationCheck
from rlm_rag.engine.coverage import Coverage
from rlm_rag.engine.hosted import HostSide
from rlm_rag.engine.lineup import Lineup
from rlm_rag.engine.meter import metered
from rlm_rag.engine.offers import Offers, Question
from rlm_rag.engine.options import RunOptions
from rlm_rag.engine.past import Past
from rlm_rag.engine.rlm import open_rlm
from rlm_rag.engine.subcalls import LeafReply
from rlm_rag.engine.threads import called
from rlm_rag.engine.tree import Assignment, Parent, Spread, Tree
from rlm_rag.engine.view import View
from rlm_rag.errors import ClusterError, RlmRagError
from rlm_rag.indexes.requests import HoldRequest, Retriever
from rlm_rag.sandbox.layers import choose_layer
from rlm_rag.trace.events import Answered, Event
from rlm_rag.trace.recorder import Recorder

if TYPE_CHECKING:
    from rlm_rag.distributed.fan_out import FanOut


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildWork:
    """Runs one child on a node; tells its events, and asks what only its root's host can answer.

    `paths` are the documents in its view, None for all; `added` those that blocks had added;
    `told` is what it had told before its node died.
    """

    run_id: str
    question: str
    root: str
    depth: int
    parent: Parent | None
    options: RunOptions
    asks_person: bool
    account: Account
    copy_name: str
    copied: Copied
    paths: tuple[str, ...] | None
    added: Mapping[str, str]
    elapsed_seconds: float
    gone: Amounts
    commit: str | None
    told: bytes

    async def __call__(self, node: Node) -> LeafReply:
        account = node.account(self.account)
        options = replace(self.options, share=account.share())
        corpus = node.corpora.opened(self.copy_name, Opening(Corpus, self.copied))
        arrivals = node.corpora.opened(self.copy_name, Arrivals) if corpus.has_holes else None
        async with options.lineup() as lineup:
            assignment = Assignment(
                run_id=self.run_id,
                question=self.question,
                root=lineup.roots[self.root],
                depth=self.depth,
                parent=self.parent,
            )
            tree = await self._tree(node, options, lineup, account, CitationCheck(corpus))
            view = self._view(corpus, RelayedRetriever(node, arrivals))
            try:
                return await run_child(tree, assignment, view, open_rlm)
            finally:
                node.tell(tree.coverage)
                await view.aclose()

    async def _tree(
        self,
        node: Node,
        options: RunOptions,
        lineup: Lineup,
        account: RemoteAccount,
        citations: CitationCheck,
    ) -> Tree:
        """Return what its root and its siblings share with it, as far as it reaches here."""
        budget = Budget(
            options.limits,
            share=options.share,
            elapsed_seconds=self.elapsed_seconds,
            keeps_final=False,
        )
        budget.heard(self.gone)
        past = self._past()
        return Tree(
            budget=budget,
            limits=options.limits,
            recorder=Recorder(None, listener=node.tell, known=past.knows),
            coverage=past.coverage(self.paths),
            layer=await asyncio.to_thread(
                choose_layer, options.sandbox, image=options.sandbox_image
            ),
            worker_limits=options.worker_limits,
            profile=options.profile,
            system_prompt=options.system_prompt,
            lineup=lineup,
            slots=account,
            past=past,
            host=HostSide(Offers(ask_user=node.ask if self.asks_person else None)),
            citations=citations,
            options={},
            commit=self.commit,
        )

    def _past(self) -> Past:
        trace = trace_of(self.told)
        # Its end is told again, since nobody heard what it came to.
        records = [
            record
            for record in trace.records
            if not (isinstance(record.event, Answered) and record.event.run == self.run_id)
        ]
        return Past(replace(trace, records=tuple(records)))

    def _view(self, corpus: Corpus, retriever: Retriever) -> View:
        view = View(corpus, retriever, added=Added(self.added))
        return view if self.paths is None else view.narrowed((*self.paths, *self.added))


class _Children:
    """Has children run on the nodes of a cluster, within one account."""

    def __init__(
        self, fan: FanOut, account: Account, options: RunOptions, copying: Copying
    ) -> None:
        self._fan = fan
        self._account = account
        self._options = options.away()
        self._copying = copying

    async def run(self, made: Callable[[], Assignment], tree: Tree, view: View) -> LeafReply:
        """Run a child of `tree` over the documents of `view` on a node, and record it here."""
        heard = HeardChild(Heard(tree.recorder, tree.budget))

        def hear(item: Event | Coverage) -> None:
            if isinstance(item, Coverage):
                tree.coverage.add(item)
            else:
                heard.take(item)

        def begun(told: bytes) -> ChildWork:
            assignment = made()
            first = heard.begin(assignment.run_id, goes_on=bool(told))
            return self._work(replace(assignment, run_id=first), tree, view, copy, told)

        async def answer(item: Any) -> Any:
            if isinstance(item, Question):
                return await _answered_by_person(item, tree)
            if isinstance(item, HoldRequest):
                return await texts_for(item, view)
            return await view.relayed(item)

        with metered() as meter:
            listener = Listener(hear, answer)
            try:
                copy = await self._copying.of(view.corpus)
                try:
                    reply: LeafReply = await run_on(self._fan, begun, listener, copy=copy)
                finally:
                    heard.lose()
            except RlmRagError as error:
                # A node may lack what this machine has: a key, a sandbox.
                return lost(error, meter.usage)
        return reply

    def _work(
        self, assignment: Assignment, tree: Tree, view: View, copy: Copy, told: bytes
    ) -> ChildWork:
        return ChildWork(
            run_id=assignment.run_id,
            question=assignment.question,
            root=assignment.root.name,
            depth=assignment.depth,
            parent=assignment.parent,
            options=self._options,
            asks_person=tree.host.offers.ask_user is not None,
            account=self._account,
            copy_name=copy.name,
            copied=Copied.of(view.corpus),
            paths=view.within,
            added=dict(view.added.documents),
            elapsed_seconds=tree.budget.elapsed_seconds(),
            gone=tree.budget.gone,
            commit=tree.commit,
            told=told,
        )


class SpreadChildren:
    """Has the children of runs run on the nodes of the cluster at `address`."""

    def __init__(self, address: str) -> None:
        self._address = address

    @asynccontextmanager
    async def spread(self, options: RunOptions) -> AsyncIterator[Spread]:
        """Give a run what its children run by: an account at the desk, and the nodes.

        Raises:
            MissingExtraError, ClusterError: there is no cluster that can be joined.
        """
        fan = await fan_out(self._address)
        limits = options.limits
        account = await fan.opened(Terms(concurrency=limits.concurrency, limits=limits))
        own, copying = fan.account(account), Copying()
        try:
            yield Spread(own.share(), own, _Children(fan, account, options, copying))
        finally:
            copying.close()
            fan.close(account)


async def _answered_by_person(question: Question, tree: Tree) -> Any:
    ask = tree.host.offers.ask_user
    assert ask is not None
    async with tree.host.person:
        try:
            return await called(partial(ask, question))
        except Exception as error:
            # A function of the caller's may raise anything, which the node may not know.
            raise ClusterError(f"{type(error).__name__}: {error}") from error
