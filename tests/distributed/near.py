"""Nodes and a desk in this process: what goes to them and comes back is pickled, as if far away."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import pickle
import re
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from rlm_rag.distributed.desk import Desk, Terms
from rlm_rag.distributed.ray_host import Copies
from rlm_rag.distributed.remote import RemoteAccount
from rlm_rag.distributed.work import (
    Account,
    Copy,
    Failed,
    Listener,
    Message,
    Node,
    Question,
    Told,
    Work,
)
from rlm_rag.errors import ClusterError, RlmRagError
from rlm_rag.holes import pieces_of
from rlm_rag.trace.events import CallSent, Delegated, Event, ReplyReceived, RunStarted
from rlm_rag.trace.reader import Trace


class NearLine:
    """A desk in this process; what is said and answered is pickled, as if far away."""

    def __init__(self) -> None:
        self.desk = Desk()
        self._told: set[asyncio.Task[Any]] = set()

    async def ask(self, name: str, *arguments: Any) -> Any:
        # The desk does not learn that nobody waits any more, unless it is told.
        return await asyncio.shield(_elsewhere(self._asked(name, pickle.dumps(arguments))))

    async def _asked(self, name: str, arguments: bytes) -> Any:
        await asyncio.sleep(0)
        return pickle.loads(pickle.dumps(await getattr(self.desk, name)(*pickle.loads(arguments))))

    def tell(self, name: str, *arguments: Any) -> None:
        task = asyncio.ensure_future(self.ask(name, *arguments))
        self._told.add(task)
        task.add_done_callback(self._told.discard)

    async def settled(self) -> None:
        while self._told:
            await asyncio.gather(*self._told)


def _elsewhere(work: Any) -> asyncio.Task[Any]:
    """Start what would run in another process, where nothing of this one's context is."""
    return asyncio.get_running_loop().create_task(work, context=contextvars.Context())


class NearFanOut:
    """Gives work to nodes in this process, of which some die after so many items they told."""

    def __init__(self, *deaths: int | None) -> None:
        self._line: NearLine | None = None
        self._numbers = itertools.count(1)
        self._deaths = list(deaths)
        self.copies: Copies | None = None
        self.done = 0

    @property
    def line(self) -> NearLine:
        """The way to the desk, in the loop that first took it."""
        if self._line is None:
            self._line = NearLine()
        return self._line

    async def opened(self, terms: Terms) -> Account:
        account = Account(
            name=f"account{next(self._numbers)}", usd=terms.usd, deepest=_deepest(terms)
        )
        await self.line.ask("open", account.name, terms)
        return account

    def account(self, account: Account) -> RemoteAccount:
        return self._part(account, "here", follows=False)

    def close(self, account: Account) -> None:
        self.line.tell("close", account.name)

    async def run(
        self, made: Callable[[], Work], listener: Listener, *, copy: Copy | None = None
    ) -> Any:
        for _ in range(3):
            holder = f"node{next(self._numbers)}"
            with suppress(asyncio.IncompleteReadError):
                return await self._done(holder, pickle.loads(pickle.dumps(made())), listener, copy)
            await self.line.ask("lose", holder)
        raise ClusterError("the nodes died each time that this was tried")

    async def _done(self, holder: str, work: Work, listener: Listener, copy: Copy | None) -> Any:
        left = self._deaths.pop(0) if self._deaths else None
        dies: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        answering: list[asyncio.Task[None]] = []
        here = contextvars.copy_context()

        def say(message: Message) -> None:
            nonlocal left
            message = pickle.loads(pickle.dumps(message))
            if dies.done():
                return
            if isinstance(message, Told):
                here.run(listener.tell, message.item)
            elif isinstance(message, Question):
                answering.append(asyncio.ensure_future(_answer(node, message, listener)))
            if left is not None:
                left -= 1
                if not left:
                    dies.set_exception(asyncio.IncompleteReadError(b"", None))

        node = Node(self.line, holder, self._held(copy), say)
        task = _elsewhere(work(node))
        try:
            await asyncio.wait([task, dies], return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        if dies.done():
            dies.result()
        dies.cancel()
        self.done += 1
        return pickle.loads(pickle.dumps(task.result()))

    def _held(self, copy: Copy | None) -> Copies:
        if self.copies is None:
            self.copies = Copies()
        if copy is not None and not self.copies.use(copy.name):
            for place, data in pieces_of(copy.path):
                self.copies.add(copy.name, place, data)
            self.copies.finish(copy.name)
        return self.copies

    def _part(self, account: Account, holder: str, *, follows: bool) -> RemoteAccount:
        return RemoteAccount(
            self.line,
            account.name,
            holder,
            usd=account.usd,
            deepest=account.deepest,
            follows=follows,
        )


def _deepest(terms: Terms) -> int:
    limits = terms.limits
    return 0 if limits is None else min(limits.live_children, limits.depth)


async def _answer(node: Node, question: Question, listener: Listener) -> None:
    assert listener.answer is not None
    try:
        answer = await listener.answer(question.item)
    except RlmRagError as error:
        answer = Failed(error)
    node.answered(question.number, pickle.loads(pickle.dumps(answer)))


def by_run(trace: Trace) -> dict[str, list[str]]:
    """Return the events of each run without what differs from run to run, children by task."""
    root = trace.of_type(RunStarted)[0].run
    names = {each.run: each.question for each in trace.of_type(RunStarted)}
    events = defaultdict(list)
    for event in trace.events:
        events["root" if event.run == root else names[event.run]].append(event)
    return {name: [_shown(event) for event in _in_order(said)] for name, said in events.items()}


def _shown(event: Event) -> str:
    fields = {"type": event.type, **asdict(event)}
    for varying in ("run", "parent", "seconds", "waited_seconds", "coverage"):
        fields.pop(varying, None)
    # How many calls are left at a moment hangs on which of the others were made by then.
    return re.sub(r"[Ll]eft\W+(calls\W+)?\d+", "", str(fields))


def _in_order(events: list[Event]) -> list[Event]:
    """Return a run's events with each batch's calls as if they had gone one after the other.

    What a batch sends side by side is answered in any order: each call has its reply behind it,
    all in the order of the batch, and what was thereby read by a sub-model comes after them.
    """
    begun: dict[tuple[int | None, int | None], int] = {}
    places: dict[int, tuple[Any, ...]] = {}
    keys: list[tuple[Any, ...]] = []
    for number, event in enumerate(events):
        key: tuple[Any, ...] = (number,)
        match event:
            case CallSent(block=block, seq=seq, item=item) if item is not None:
                key = begun.setdefault((block, seq), number), 0, item
                places[event.call] = key
            case ReplyReceived(call=call) if call in places:
                key = places[call]
            case Delegated(path=path, first=first, last=last) if number and len(keys[-1]) > 1:
                key = keys[-1][0], 1, path, first, last
        keys.append(key)
    ordered = [events[at] for at in sorted(range(len(events)), key=keys.__getitem__)]
    calls = [event.call for event in ordered if isinstance(event, CallSent)]
    called = dict(zip(calls, sorted(calls), strict=True))
    return [
        replace(event, call=called.get(event.call, event.call))
        if isinstance(event, CallSent | ReplyReceived)
        else event
        for event in ordered
    ]
