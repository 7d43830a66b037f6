"""The documents of a map read on the nodes of a Ray cluster, some at a time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlm_rag.corpus import Corpus
from rlm_rag.distributed.desk import Terms
from rlm_rag.distributed.heard import Heard
from rlm_rag.distributed.spool import run_on, trace_of
from rlm_rag.distributed.spreading import fan_out
from rlm_rag.distributed.work import Account, Listener, Node
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.map_reading import MapOrder, read_documents
from rlm_rag.engine.options import RunOptions
from rlm_rag.engine.past import Past
from rlm_rag.engine.subcalls import LeafReply, failed
from rlm_rag.engine.view import View
from rlm_rag.errors import ClusterError, NotHeldError, RetrievalError, RlmRagError
from rlm_rag.indexes.retriever import ProcessRetriever
from rlm_rag.trace.events import Event
from rlm_rag.trace.recorder import Recorder

if TYPE_CHECKING:
    from rlm_rag.distributed.fan_out import FanOut

MOST_DOCUMENTS = 8
MOST_BYTES = 1 << 20
"""What one piece of work has to read at most: where its node dies, so much is sent again."""
LEAST_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Read:
    """What a sub-model made of a document."""

    path: str
    reply: LeafReply


@dataclass(frozen=True, slots=True, kw_only=True)
class MapWork:
    """Reads some documents on a node; tells the events of its calls, and each reply.

    `told` is what others had told that were to read them, and died.
    """

    documents: tuple[tuple[str, str], ...]
    prompt: str
    options: RunOptions
    run_id: str
    account: Account
    elapsed_seconds: float
    told: bytes

    async def __call__(self, node: Node) -> tuple[str, ...]:
        options = replace(self.options, share=node.account(self.account).share())
        budget = Budget(
            options.limits,
            share=options.share,
            elapsed_seconds=self.elapsed_seconds,
            keeps_final=False,
        )
        corpus = await asyncio.to_thread(Corpus.from_documents, self.documents)
        retriever = ProcessRetriever(corpus.packed_path)
        order = MapOrder(
            corpus=corpus,
            retriever=retriever,
            paths=tuple(path for path, _ in self.documents),
            prompt=self.prompt,
            options=options,
            run_id=self.run_id,
        )
        past = Past(trace_of(self.told))
        try:
            return await read_documents(
                order,
                budget,
                Recorder(None, listener=node.tell, known=past.knows),
                lambda path, reply: node.tell(Read(path, reply)),
                past,
            )
        finally:
            await retriever.aclose()
            corpus.close()


class SpreadReading:
    """Has the documents of a map read on the nodes of a cluster, within its limits."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def __call__(
        self,
        order: MapOrder,
        budget: Budget,
        recorder: Recorder,
        tell: Callable[[str, LeafReply], None],
    ) -> tuple[str, ...]:
        """Read them; `tell` is given each path and reply as it comes.

        Raises:
            MissingExtraError, ClusterError: there is no cluster that can be joined.
            UsageError, ModelError: as where they are read here.
        """
        fan = await fan_out(self._address)
        limits = order.options.limits
        terms = Terms(concurrency=limits.concurrency, limits=limits, keeps_final=False)
        account = await fan.opened(terms)
        reading = _Reading(order, budget, recorder, tell, fan, account)
        at_once = max(LEAST_AT_ONCE, math.ceil(2 * limits.concurrency / MOST_DOCUMENTS))
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(at_once):
                    group.create_task(reading.go_on())
        finally:
            fan.close(account)
        if reading.refusals:
            raise reading.refusals[0]
        return tuple(reading.warnings)


class _Reading:
    """One map under way: its batches go to whoever asks next.

    `refusals` are of all documents, not of one: after what is under way, nothing more is sent.
    """

    def __init__(
        self,
        order: MapOrder,
        budget: Budget,
        recorder: Recorder,
        tell: Callable[[str, LeafReply], None],
        fan: FanOut,
        account: Account,
    ) -> None:
        self._order = order
        self._budget = budget
        self._recorder = recorder
        self._tell = tell
        self._fan = fan
        self._account = account
        self._batches = _batches(order.corpus, order.paths)
        self.warnings: dict[str, None] = {}
        self.refusals: list[RlmRagError] = []

    async def go_on(self) -> None:
        """Have one batch after another read, as long as there are some and time is left."""
        for batch in self._batches:
            if self.refusals or self._budget.seconds_left() == 0:
                return
            try:
                self.warnings.update(dict.fromkeys(await self._read(batch)))
            except RlmRagError as error:
                self.refusals.append(error)

    async def _read(self, batch: Sequence[str]) -> tuple[str, ...]:
        corpus = self._order.corpus
        try:
            await View(corpus, self._order.retriever).hold(batch)
            left = {path: corpus[path].content for path in batch}
        except (RetrievalError, NotHeldError) as error:
            return self._unread(batch, error)
        heard = Heard(self._recorder, self._budget)

        def made(told: bytes) -> MapWork:
            # What a node that died had not told is read again by the next.
            heard.lose()
            elapsed = self._budget.elapsed_seconds()
            return _work(self._order, tuple(left.items()), self._account, elapsed, told)

        def hear(item: Event | Read) -> None:
            if isinstance(item, Read):
                left.pop(item.path, None)
                self._tell(item.path, item.reply)
            else:
                heard.take(item)

        try:
            found: tuple[str, ...] = await run_on(self._fan, made, Listener(hear))
        except ClusterError as error:
            heard.lose()
            return self._unread(left, error)
        return found

    def _unread(self, paths: Iterable[str], error: RlmRagError) -> tuple[str, ...]:
        for path in paths:
            self._tell(path, failed(error.message))
        return ()


def _batches(corpus: Corpus, paths: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for path in paths:
        size_bytes = corpus.size_of(path)
        if batch and (len(batch) == MOST_DOCUMENTS or size + size_bytes > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += size_bytes
    if batch:
        yield batch


def _work(
    order: MapOrder,
    documents: tuple[tuple[str, str], ...],
    account: Account,
    elapsed_seconds: float,
    told: bytes,
) -> MapWork:
    return MapWork(
        documents=documents,
        prompt=order.prompt,
        options=order.options.away(),
        run_id=order.run_id,
        account=account,
        elapsed_seconds=elapsed_seconds,
        told=told,
    )
