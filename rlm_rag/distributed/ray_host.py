"""What does work on a node of a Ray cluster: one process, in an actor, for all that runs there."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from rlm_rag.distributed.work import Done, Failed, Message, Node, Work
from rlm_rag.engine.loop_thread import loop_thread
from rlm_rag.errors import ClusterError, RlmRagError
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.scratch import ScratchFolder

T = TypeVar("T")

MOST_IDLE = 2
"""Copies that nothing on the node works on, kept for what may come."""


class RayLine:
    """The way to the desk by its actor."""

    def __init__(self, desk: Any) -> None:
        self._desk = desk

    async def ask(self, name: str, *arguments: Any) -> Any:
        try:
            return await getattr(self._desk, name).remote(*arguments)
        except Exception as error:
            # Which of Ray's it is says nothing more: without the desk no call may be sent.
            raise ClusterError(
                "the desk that keeps the limits of all nodes cannot be reached",
                hint="its process, on the machine that asks, has died: run it again",
            ) from error

    def tell(self, name: str, *arguments: Any) -> None:
        getattr(self._desk, name).remote(*arguments)


class Copies:
    """The packed corpora that a node has copies of, and what is open over them."""

    def __init__(self) -> None:
        self._scratch = ScratchFolder()
        self._users: OrderedDict[str, int] = OrderedDict()
        self._opened: dict[str, dict[Callable[..., Any], Any]] = {}

    def path(self, name: str) -> Path:
        """Return where a copy is, or is to be."""
        return self._scratch.path / name

    def use(self, name: str) -> bool:
        """Keep a copy until `release`; False where there is none."""
        if name not in self._users:
            return False
        self._users[name] += 1
        self._users.move_to_end(name)
        return True

    def add(self, name: str, place: int, data: bytes) -> None:
        """Write part of a copy, at its place in the file; the first one begins it."""
        with self.path(f"{name}.part").open("r+b" if place else "wb") as file:
            file.seek(place)
            file.write(data)

    def finish(self, name: str) -> None:
        """Use a copy, all of which was written, until `release`."""
        self.path(f"{name}.part").replace(self.path(name))
        self._users[name] = self._users.get(name, 0) + 1

    def release(self, name: str) -> None:
        """No longer use a copy; those that were idle for longest go."""
        self._users[name] -= 1
        idle = [one for one, users in self._users.items() if not users]
        for one in idle[: max(0, len(idle) - MOST_IDLE)]:
            del self._users[one]
            for thing in self._opened.pop(one, {}).values():
                # It may wait for a process to end.
                asyncio.get_running_loop().run_in_executor(None, thing.close)
            self.path(one).unlink()

    def opened(self, name: str, opener: Callable[[Path], T]) -> T:
        """Return what `opener` makes of a copy, made once."""
        things = self._opened.setdefault(name, {})
        if opener not in things:
            things[opener] = opener(self.path(name))
        found: T = things[opener]
        return found


class WorkHost:
    """Does the work that is sent to a node, all of it in this process, whose name is `holder`."""

    def __init__(self, holder: str, desk: Any) -> None:
        self._holder = holder
        self._line = RayLine(desk)
        self._copies = Copies()
        self._running: dict[int, tuple[Future[None], Node]] = {}

    async def version(self) -> bytes:
        """Return what must be the same on all nodes."""
        return stamp_of(Weights())

    async def use(self, name: str) -> bool:
        """Keep the copy of a packed file; False where it has to be sent."""
        return self._copies.use(name)

    async def add(self, name: str, place: int, data: bytes) -> None:
        """Write a part of a copy."""
        self._copies.add(name, place, data)

    async def finish(self, name: str) -> None:
        """Keep a copy, all of which was sent."""
        self._copies.finish(name)

    async def release(self, name: str) -> None:
        """No longer use a copy."""
        self._copies.release(name)

    async def run(self, number: int, work: Work) -> AsyncIterator[list[Message]]:
        """Do a piece of work; yield what it says, and at last what it came to."""
        loop, said = asyncio.get_running_loop(), asyncio.Queue[Message]()

        def say(message: Message) -> None:
            with suppress(RuntimeError):  # the process ends
                loop.call_soon_threadsafe(said.put_nowait, message)

        node = Node(self._line, self._holder, self._copies, say)
        future = loop_thread().submit(_to_its_end(work, node, say))
        self._running[number] = future, node
        try:
            last: Message | None = None
            while not isinstance(last, Done | Failed):
                messages = [await said.get()]
                while not said.empty():
                    messages.append(said.get_nowait())
                last = messages[-1]
                if isinstance(last, Failed):
                    await _check(future)
                yield messages
        finally:
            future.cancel()
            del self._running[number]

    async def answer(self, number: int, question: int, answer: Any) -> None:
        """Hand work the answer to what it asked."""
        if number in self._running:
            _, node = self._running[number]
            loop_thread().submit(_answered(node, question, answer))

    async def stop(self, number: int) -> None:
        """End a piece of work, if it has not ended."""
        if number in self._running:
            self._running[number][0].cancel()


async def _to_its_end(work: Work, node: Node, say: Callable[[Message], None]) -> None:
    ended: Message = Failed(ClusterError("the work was stopped"))
    try:
        ended = Done(await work(node))
    except RlmRagError as error:
        ended = Failed(error)
    finally:
        say(ended)


async def _check(future: Future[None]) -> None:
    """Raise what ended work, where it is none of this package's errors."""
    await asyncio.wait([asyncio.wrap_future(future)])
    if not future.cancelled():
        future.result()


async def _answered(node: Node, question: int, answer: Any) -> None:
    node.answered(question, answer)
