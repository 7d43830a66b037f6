"""One desk for all processes of a run: it admits their calls, and says whose turn it is to send."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from rlm_rag.engine.admission import Asked, Grant, LimitReached, Reservation
from rlm_rag.engine.answer import StopReason
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.pool import Pool
from rlm_rag.engine.slots import Slots
from rlm_rag.models.base import Usage
from rlm_rag.models.limiter import DEFAULT_WIDTH, Leave

Ticket = tuple[str, int]
"""Who asks, and the number that it gave to what it asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What binds the processes of one account together.

    They spend at most `usd`, of which `spent_usd` is gone, and have `concurrency` requests to a
    provider in flight. With `limits` they are one run: these bind all its calls together, of
    which one is kept back for a root unless `keeps_final` is false, and it has taken
    `elapsed_seconds`.
    """

    usd: float | None = None
    spent_usd: float = 0.0
    concurrency: int = DEFAULT_WIDTH
    limits: Limits | None = None
    keeps_final: bool = True
    elapsed_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call is not admitted; exceptions with arguments of their own do not travel well."""

    name: StopReason
    detail: str


GONE = Refusal("interrupted", "it is no longer waited for")


class _Ledger:
    """What one account may spend, has spent and has in flight."""

    def __init__(self, terms: Terms) -> None:
        limits = terms.limits
        self.pool = Pool(usd=terms.usd, spent_usd=terms.spent_usd, concurrency=terms.concurrency)
        self.slots = Slots(1, 0) if limits is None else Slots(limits.live_children, limits.depth)
        self.budget: Budget | None = None
        if limits is not None:
            self.budget = Budget(
                limits,
                share=self.pool.share(),
                keeps_final=terms.keeps_final,
                elapsed_seconds=terms.elapsed_seconds,
            )
        self._grants: dict[Ticket, Grant] = {}
        self._reservations: dict[Ticket, Reservation] = {}

    async def admit(self, ticket: Ticket, asked: Asked) -> Grant:
        if self.budget is None:
            self._grants[ticket] = await self.pool.admit(asked)
            return replace(self._grants[ticket], number=ticket[1])
        if asked.kept is not None:
            self.budget.expect_final(asked.kept)
        if asked.final:
            held = await self.budget.admit_final(asked.estimate, model=asked.model)
        else:
            held = await self.budget.admit(
                asked.estimate, model=asked.model, role=asked.role, waits=asked.waits
            )
        self._reservations[ticket] = held
        return Grant(held.estimate, ticket[1], self.budget.gone, held.is_doubtful)

    def settle(self, ticket: Ticket, usage: Usage | None) -> None:
        grant = self._grants.pop(ticket, None)
        if grant is not None:
            self.pool.settle(grant, usage)
        held = self._reservations.pop(ticket, None)
        if held is None:
            return
        assert self.budget is not None
        if usage is None:
            self.budget.release(held)
        else:
            self.budget.settle(held, usage)

    def lose(self, holder: str) -> None:
        """Count what a process that died had in flight at what it was thought to cost at most."""
        for ticket in [one for one in self._grants if one[0] == holder]:
            self.settle(ticket, Usage(calls=1, usd=None))
        for ticket in [one for one in self._reservations if one[0] == holder]:
            assert self.budget is not None
            self.budget.settle(self._reservations.pop(ticket), None)


class Desk:
    """Admits calls, and gives turns and places, for every process that has an account here.

    What a process holds it gives back by its ticket; `lose` gives back all that one held which
    died. It belongs to one event loop, where calls of one process are begun in their order.
    """

    def __init__(self) -> None:
        self._ledgers: dict[str, _Ledger] = {}
        self._accounts: dict[Ticket, str] = {}
        self._waiting: dict[Ticket, asyncio.Task[None]] = {}
        self._turns: dict[Ticket, tuple[AsyncExitStack, Leave | None]] = {}
        self._lost: set[str] = set()

    async def open(self, account: str, terms: Terms) -> None:
        """Open an account."""
        self._ledgers[account] = _Ledger(terms)

    async def close(self, account: str) -> None:
        """Forget an account, which nobody uses any more."""
        del self._ledgers[account]

    async def spent_usd(self, account: str) -> float:
        """Return what was spent of an account's money."""
        return self._ledgers[account].pool.spent_usd

    async def admit(self, account: str, ticket: Ticket, asked: Asked) -> Grant | Refusal:
        """Admit a call, which waits where only calls in flight keep it out."""
        ledger, answers = self._ledgers[account], list[Grant | Refusal]()

        async def admitted() -> None:
            try:
                answers.append(await ledger.admit(ticket, asked))
                self._accounts[ticket] = account
            except LimitReached as reached:
                answers.append(Refusal(reached.name, reached.detail))

        await self._unless_dropped(ticket, admitted())
        return answers[0] if answers else GONE

    async def settle(self, ticket: Ticket, usage: Usage | None) -> None:
        """Count what an admitted call cost, None where it was not sent or not admitted yet."""
        self._drop(ticket)
        account = self._accounts.pop(ticket, None)
        if account is not None and account in self._ledgers:
            self._ledgers[account].settle(ticket, usage)

    async def turn(
        self, account: str, ticket: Ticket, provider: str, owner: str, again: bool
    ) -> Refusal | None:
        """Wait for a turn to send a request to a provider."""
        limiter = self._ledgers[account].pool.limiter(provider)

        async def taken() -> None:
            stack = AsyncExitStack()
            leave = await stack.enter_async_context(limiter.permit(owner, again=again))
            self._turns[ticket] = stack, leave

        return None if await self._unless_dropped(ticket, taken()) else GONE

    async def place(self, account: str, ticket: Ticket, depth: int) -> Refusal | None:
        """Wait for a place for a child of `depth`."""
        slots = self._ledgers[account].slots

        async def taken() -> None:
            stack = AsyncExitStack()
            await stack.enter_async_context(slots.place(depth))
            self._turns[ticket] = stack, None

        return None if await self._unless_dropped(ticket, taken()) else GONE

    async def leave(
        self, ticket: Ticket, throttled_seconds: float | None = None, succeeded: bool = False
    ) -> None:
        """Give a turn or a place back, or no longer wait for it, and say how the request went."""
        self._drop(ticket)
        stack, leave = self._turns.pop(ticket, (None, None))
        if leave is not None and throttled_seconds is not None:
            leave.throttled(throttled_seconds)
        if leave is not None and succeeded:
            leave.succeeded()
        if stack is not None:
            await stack.aclose()

    async def lose(self, holder: str) -> None:
        """Give back all that a process held which died; nothing more is taken from it."""
        self._lost.add(holder)
        for ticket in [one for one in self._waiting if one[0] == holder]:
            self._drop(ticket)
        for ticket in [one for one in self._turns if one[0] == holder]:
            await self.leave(ticket)
        for ledger in self._ledgers.values():
            ledger.lose(holder)
        for ticket in [one for one in self._accounts if one[0] == holder]:
            del self._accounts[ticket]

    async def _unless_dropped(self, ticket: Ticket, waiting: Awaitable[None]) -> bool:
        """Wait for what a process waits for; return False where it does so no longer."""
        task = asyncio.ensure_future(waiting)
        if ticket[0] in self._lost:
            task.cancel()
        self._waiting[ticket] = task
        try:
            await asyncio.wait([task])
        finally:
            del self._waiting[ticket]
        if task.cancelled():
            return False
        task.result()
        return True

    def _drop(self, ticket: Ticket) -> None:
        waiting = self._waiting.get(ticket)
        if waiting is not None:
            waiting.cancel()
