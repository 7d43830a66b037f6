"""Work given out to the nodes of a Ray cluster, and done again elsewhere where one dies."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rlm_rag.distributed.desk import Desk, Terms
from rlm_rag.distributed.ray_host import RayLine, WorkHost
from rlm_rag.distributed.ray_shards import DIED, nodes_up
from rlm_rag.distributed.remote import RemoteAccount
from rlm_rag.distributed.work import (
    Account,
    Copy,
    Done,
    Failed,
    Listener,
    Message,
    Question,
    Told,
    Work,
)
from rlm_rag.errors import ClusterError, RetrievalError, RlmRagError
from rlm_rag.holes import pieces_of
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.stamp import stamp_of

_TRIES = 3
_START_SECONDS = 90.0
# How long a list of the nodes that are up is believed, so that new ones are soon of use.
_GLANCE_SECONDS = 10.0
_MOST_AT_ONCE = 10_000
_LAST_WORDS_SECONDS = 5.0


@dataclass(slots=True)
class _Host:
    actor: Any
    name: str
    copying: dict[str, asyncio.Lock] = field(default_factory=dict)


class FanOut:
    """The nodes of the cluster that this process has joined, and the desk that they share.

    It belongs to the library's loop. All actors end with this process.
    """

    def __init__(self) -> None:
        self._name = secrets.token_hex(4)
        self._numbers = itertools.count(1)
        self._hosts: dict[str, _Host] = {}
        self._working: Counter[str] = Counter()
        self._up: tuple[float, list[str]] = (0.0, [])
        self._starting = asyncio.Lock()
        here = ray.get_runtime_context().get_node_id()
        # On the machine that asks: where that dies nothing goes on, and no other death matters.
        self._desk = _actor(Desk, here, _MOST_AT_ONCE)
        self._line = RayLine(self._desk)

    async def opened(self, terms: Terms) -> Account:
        """Open an account at the desk, for work that is bound together."""
        limits = terms.limits
        account = Account(
            name=f"{self._name}-{next(self._numbers)}",
            usd=terms.usd,
            deepest=0 if limits is None else min(limits.live_children, limits.depth),
        )
        await self._line.ask("open", account.name, terms)
        return account

    def account(self, account: Account) -> RemoteAccount:
        """Return this process's own part in an account, whose calls it hears of by itself."""
        return RemoteAccount(
            self._line,
            account.name,
            self._name,
            usd=account.usd,
            deepest=account.deepest,
            follows=False,
        )

    def close(self, account: Account) -> None:
        """Close an account."""
        self._line.tell("close", account.name)

    async def run(
        self, made: Callable[[], Work], listener: Listener, *, copy: Copy | None = None
    ) -> Any:
        """Have a piece of work done on a node, with a `copy` there; return its result.

        Where a node dies, `made` gives the work for the next, three times in all.

        Raises:
            ClusterError: the nodes died, or there are none.
            RlmRagError: what the work raised.
        """
        for _ in range(_TRIES):
            node, host = await self._least_busy()
            self._working[node] += 1
            try:
                async with self._copied(host, copy):
                    return await self._done(host, made(), listener)
            except DIED:
                await self._lose(node, host)
            finally:
                self._working[node] -= 1
        raise ClusterError(
            "the nodes died each time that this was tried",
            hint="look at the memory of the nodes; three were tried",
        )

    async def _done(self, host: _Host, work: Work, listener: Listener) -> Any:
        number = next(self._numbers)
        heard = asyncio.create_task(self._heard(host, number, work, listener))
        try:
            await asyncio.wait([heard])
        except asyncio.CancelledError:
            host.actor.stop.remote(number)
            # What it had begun has cost something, of which it tells now.
            await asyncio.wait([heard], timeout=_LAST_WORDS_SECONDS)
            raise
        finally:
            heard.cancel()
            await asyncio.gather(heard, return_exceptions=True)
        return heard.result()

    async def _heard(self, host: _Host, number: int, work: Work, listener: Listener) -> Any:
        said = host.actor.run.options(num_returns="streaming").remote(number, work)
        answering: set[asyncio.Task[None]] = set()
        try:
            async for reference in said:
                for message in await reference:
                    if isinstance(message, Done):
                        return message.result
                    if isinstance(message, Failed):
                        raise message.error
                    self._hear(host, number, message, listener, answering)
        except RayTaskError as error:
            raise error.cause from error
        finally:
            for task in answering:
                task.cancel()
        raise ClusterError("a node ended its work without a word")

    def _hear(
        self,
        host: _Host,
        number: int,
        message: Message,
        listener: Listener,
        answering: set[asyncio.Task[None]],
    ) -> None:
        if isinstance(message, Told):
            listener.tell(message.item)
        elif isinstance(message, Question):
            task = asyncio.create_task(_answer(host.actor, number, message, listener))
            answering.add(task)
            task.add_done_callback(answering.discard)

    @asynccontextmanager
    async def _copied(self, host: _Host, copy: Copy | None) -> AsyncIterator[None]:
        """Have a node keep a copy, if there is one, for as long as the body runs."""
        if copy is None:
            yield
            return
        copying = asyncio.create_task(self._copy(host, copy))
        try:
            # Whoever waits no longer leaves it to its end: it is in use from then on.
            await asyncio.wait([copying])
            copying.result()
            yield
        finally:
            copying.add_done_callback(partial(_release, host.actor, copy.name))

    async def _copy(self, host: _Host, copy: Copy) -> None:
        """Have a node keep a copy, sent once."""
        lock = host.copying.setdefault(copy.name, asyncio.Lock())
        async with lock:
            if await host.actor.use.remote(copy.name):
                return
            pieces = pieces_of(copy.path)
            while piece := await asyncio.to_thread(next, pieces, None):
                await host.actor.add.remote(copy.name, *piece)
            await host.actor.finish.remote(copy.name)

    async def _least_busy(self) -> tuple[str, _Host]:
        """Return the node that does the least, and the process there, started if need be."""
        async with self._starting:
            then, up = self._up
            if time.monotonic() - then > _GLANCE_SECONDS or not up:
                up = await self._nodes_up()
                self._up = time.monotonic(), up
            why: object = None
            while up:
                node = min(up, key=lambda one: (self._working[one], one))
                try:
                    if node not in self._hosts:
                        self._hosts[node] = await self._started(node)
                except (RayError, TimeoutError) as error:
                    # It may have died since it was seen.
                    up.remove(node)
                    why = error
                else:
                    return node, self._hosts[node]
            raise ClusterError(f"no process starts on any node of the cluster: {why}")

    async def _nodes_up(self) -> list[str]:
        try:
            return await asyncio.to_thread(nodes_up)
        except RetrievalError as error:
            raise ClusterError(error.message) from error

    async def _started(self, node: str) -> _Host:
        name = f"{self._name}-host{next(self._numbers)}"
        actor = _actor(WorkHost, node, _MOST_AT_ONCE, name, self._desk)
        host, version = _Host(actor, name), b""
        try:
            version = await asyncio.wait_for(actor.version.remote(), _START_SECONDS)
        finally:
            if version != stamp_of(Weights()):
                ray.kill(actor)
        if version != stamp_of(Weights()):
            raise ClusterError(
                "a node of the cluster has another version of rlm-rag",
                hint="install the same version on every node",
            )
        return host

    async def _lose(self, node: str, host: _Host) -> None:
        """Give up a process that died; what it held is given back before anything else is done."""
        async with self._starting:
            self._up = (0.0, [])
            if self._hosts.get(node) is host:
                del self._hosts[node]
        ray.kill(host.actor)
        await self._line.ask("lose", host.name)


def _release(actor: Any, name: str, copying: asyncio.Task[None]) -> None:
    if not copying.cancelled() and copying.exception() is None:
        actor.release.remote(name)


async def _answer(actor: Any, number: int, question: Question, listener: Listener) -> None:
    assert listener.answer is not None
    try:
        answer = await listener.answer(question.item)
    except RlmRagError as error:
        answer = Failed(error)
    actor.answer.remote(number, question.number, answer)


def _actor(kind: type, node: str, at_once: int, *arguments: Any) -> Any:
    # Not detached: whatever becomes of this process, Ray ends the actor with it. It takes no
    # share of a processor that Ray counts, for it waits most of the time.
    return (
        ray.remote(kind)
        .options(
            num_cpus=0,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=at_once,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )
        .remote(*arguments)
    )
