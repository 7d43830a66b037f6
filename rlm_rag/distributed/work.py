"""A piece of work that a node does, what it has there, and what it says meanwhile."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from rlm_rag.corpus import Corpus, Skipped
from rlm_rag.distributed.remote import DeskLine, RemoteAccount
from rlm_rag.errors import RlmRagError

T = TypeVar("T")
C = TypeVar("C", bound=Corpus)


@dataclass(frozen=True, slots=True)
class Copied:
    """A corpus of which nodes have a copy: what is told of it besides its documents."""

    fingerprint: str
    skipped: tuple[Skipped, ...]
    warnings: tuple[str, ...]
    origin: str | None

    @classmethod
    def of(cls, corpus: Corpus) -> Copied:
        return cls(corpus.fingerprint, corpus.skipped, corpus.warnings, corpus.origin)


@dataclass(frozen=True, slots=True)
class Copy:
    """A packed file that nodes have a copy of, and what the copy is known by."""

    name: str
    path: Path

    @classmethod
    def of(cls, corpus: Corpus) -> Copy:
        return cls(corpus.fingerprint, corpus.packed_path)


@dataclass(frozen=True, slots=True)
class Opening(Generic[C]):
    """Opens a node's copy of a corpus, as one of a `kind`; equal ones open it once."""

    kind: type[C]
    copied: Copied

    def __call__(self, packed_path: Path) -> C:
        copied = self.copied
        return self.kind(
            packed_path, skipped=copied.skipped, warnings=copied.warnings, origin=copied.origin
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account at the desk, as it is named to work; `RemoteAccount` says what each means."""

    name: str
    usd: float | None = None
    deepest: int = 0


@dataclass(frozen=True, slots=True)
class Told:
    """What work says while it goes on."""

    item: Any


@dataclass(frozen=True, slots=True)
class Question:
    """What work asks of the process that gave it out."""

    number: int
    item: Any


@dataclass(frozen=True, slots=True)
class Done:
    """What work came to."""

    result: Any


@dataclass(frozen=True, slots=True)
class Failed:
    """Why work came to nothing, or a question to no answer."""

    error: RlmRagError


Message = Told | Question | Done | Failed


@dataclass(frozen=True, slots=True)
class Listener:
    """What hears the work: all that it tells, in order, and what it asks, which is answered."""

    tell: Callable[[Any], None]
    answer: Callable[[Any], Awaitable[Any]] | None = None


class Holding(Protocol):
    """The copies of corpora that a node has."""

    def opened(self, name: str, opener: Callable[[Path], T]) -> T:
        """Return what `opener` makes of a copy's packed file, made once and closed with it."""
        ...


class Node:
    """What a piece of work has where it runs; it belongs to the library's loop there."""

    def __init__(
        self,
        line: DeskLine,
        holder: str,
        corpora: Holding,
        say: Callable[[Message], None],
    ) -> None:
        self._line = line
        self._holder = holder
        self._say = say
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self.corpora = corpora

    def account(self, account: Account) -> RemoteAccount:
        """Return a part in an account at the desk."""
        return RemoteAccount(
            self._line, account.name, self._holder, usd=account.usd, deepest=account.deepest
        )

    def tell(self, item: Any) -> None:
        """Say something to the process that gave the work out; from any thread, in order."""
        self._say(Told(item))

    async def ask(self, item: Any) -> Any:
        """Ask something of the process that gave the work out.

        Raises:
            RlmRagError: what that process failed with.
        """
        number = next(self._numbers)
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[number] = answered
        self._say(Question(number, item))
        try:
            answer = await answered
        finally:
            del self._asked[number]
        if isinstance(answer, Failed):
            raise answer.error
        return answer

    def answered(self, number: int, answer: Any) -> None:
        """Take the answer to what was asked; on the loop that asked."""
        waiting = self._asked.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)


class Work(Protocol):
    """What can be sent to a node and done there: it, and what it gives, can be pickled."""

    async def __call__(self, node: Node) -> Any:
        """Do it.

        Raises:
            RlmRagError: raised again where it was given out.
        """
        ...
