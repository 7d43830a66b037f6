"""A part in an account at the desk, as any other process has it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Protocol

from rlm_rag.distributed.desk import Refusal, Ticket
from rlm_rag.engine.admission import Asked, Grant, LimitReached
from rlm_rag.engine.pool import Share
from rlm_rag.engine.windows import Said
from rlm_rag.models.base import Usage


class DeskLine(Protocol):
    """How a process reaches the desk: what it says there arrives in its order."""

    async def ask(self, name: str, *arguments: Any) -> Any:
        """Call a method of the desk and return what it returns."""
        ...

    def tell(self, name: str, *arguments: Any) -> None:
        """Call a method of the desk without waiting for it."""
        ...


class RemoteAccount:
    """An account at the desk, used by the process `holder`.

    With `follows` a run's budget learns from each grant what is gone of the limits by all whom
    they bind; the one that hears of every call by itself must not.
    """

    def __init__(
        self,
        line: DeskLine,
        account: str,
        holder: str,
        *,
        usd: float | None,
        deepest: int = 0,
        follows: bool = True,
    ) -> None:
        self._line = line
        self._account = account
        self._holder = holder
        self._usd = usd
        self._follows = follows
        self.deepest = deepest
        self._windows: Said = {}

    def share(self) -> Share:
        """Return a part in it, for a run."""
        return Share(self, self.limiter, usd=self._usd, windows=self._windows)

    async def spent(self) -> float:
        """Return what all processes have spent of it, in dollars."""
        return float(await self._line.ask("spent_usd", self._account))

    def limiter(self, provider: str) -> RemoteTurns:
        """Return the line of requests to a provider, which all processes stand in."""
        return RemoteTurns(self._line, self._account, self._holder, provider)

    async def admit(self, asked: Asked) -> Grant:
        """Have the desk admit a call.

        Raises:
            LimitReached: it does not fit.
        """
        ticket = _ticket(self._holder)
        try:
            answer = await self._line.ask("admit", self._account, ticket, asked)
        except asyncio.CancelledError:
            self._line.tell("settle", ticket, None)
            raise
        _check(answer)
        grant: Grant = answer
        return grant if self._follows else replace(grant, gone=None)

    def settle(self, grant: Grant, usage: Usage | None) -> None:
        """Tell the desk what an admitted call cost, None where it was not sent."""
        self._line.tell("settle", (self._holder, grant.number), usage)

    @asynccontextmanager
    async def place(self, depth: int) -> AsyncIterator[None]:
        """Wait for a place for a child of `depth`, among all processes, and hold it."""
        ticket = _ticket(self._holder)
        try:
            _check(await self._line.ask("place", self._account, ticket, depth))
            yield
        finally:
            self._line.tell("leave", ticket)


class RemoteTurns:
    """Turns to send requests to one provider, given at the desk."""

    def __init__(self, line: DeskLine, account: str, holder: str, provider: str) -> None:
        self._line = line
        self._account = account
        self._holder = holder
        self._provider = provider

    @asynccontextmanager
    async def permit(
        self, owner: Hashable = None, *, again: bool = False
    ) -> AsyncIterator[RemoteLeave]:
        """Wait for a turn among all processes, and hold it for as long as the block runs."""
        ticket, leave = _ticket(self._holder), RemoteLeave()
        place = (self._account, ticket, self._provider, str(owner), again)
        try:
            _check(await self._line.ask("turn", *place))
            yield leave
        finally:
            self._line.tell("leave", ticket, leave.throttled_seconds, leave.has_succeeded)


class RemoteLeave:
    """How a request went, as the desk hears it with the turn that is given back."""

    def __init__(self) -> None:
        self.throttled_seconds: float | None = None
        self.has_succeeded = False

    def throttled(self, pause_seconds: float = 0.0) -> None:
        """The provider asked to slow down, or did not keep up; nobody sends for so long."""
        self.throttled_seconds = pause_seconds

    def succeeded(self) -> None:
        """The provider answered in full."""
        self.has_succeeded = True


def _check(answer: object) -> None:
    if isinstance(answer, Refusal):
        raise LimitReached(answer.name, answer.detail)


_NUMBERS = itertools.count(1)


def _ticket(holder: str) -> Ticket:
    return holder, next(_NUMBERS)
