"""Admit calls before they are sent, so that no limit is overshot by calls in flight.

All of a run's calls, the root's, its sub-models' and its children's, go through one Budget.
It is not thread-safe: the engine's event loop is its only user.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

from rlm_rag.counts import counted
from rlm_rag.engine import meter
from rlm_rag.engine.admission import (
    Amounts,
    Asked,
    CallEstimate,
    CallRole,
    Grant,
    LimitReached,
    Reservation,
)
from rlm_rag.engine.answer import StopReason
from rlm_rag.engine.bounds import fitted, too_costly
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.pool import Share
from rlm_rag.engine.tally import Tally
from rlm_rag.engine.waiting import Line
from rlm_rag.models.base import Usage
from rlm_rag.trace.events import CallSent

FINAL_SHARE = 0.25
"""At most this part of a limit is kept back for the last root call, so that small limits still
leave something to work with."""

DEFAULT_FINAL_SECONDS = 30.0


@dataclass(slots=True)
class _Pending:
    reservation: Reservation
    calls: int = 1
    grants: list[Grant] = field(default_factory=list)


class Budget:
    """What a run may spend, has spent, and has promised to calls in flight.

    One final root call is kept back from the start in calls, tokens, money and time; only
    `admit_final` may use it. `final` estimates it until `expect_final` knows better. A run that
    is taken up again has taken `elapsed_seconds`, and `carry_over` counts what it had spent. A
    `share` in what other runs have too bounds it besides. Without `keeps_final` there is no root
    model whose last call would have to be kept back.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.monotonic,
        final: CallEstimate | None = None,
        elapsed_seconds: float = 0.0,
        share: Share | None = None,
        keeps_final: bool = True,
    ) -> None:
        self._limits = limits
        self._share = share
        self._clock = clock
        self._started = clock() - elapsed_seconds
        self._final = final or CallEstimate(0, 0, 0.0)
        self._final_taken = not keeps_final
        self._final_counted: Callable[[], Awaitable[CallEstimate]] | None = None
        self._pending: dict[int, _Pending] = {}
        self._promised = Amounts()
        self._doubted = Amounts()
        self._line = Line()
        self._next_id = 1
        self._spent = Amounts()
        self._tally = Tally()

    async def admit(
        self,
        estimate: CallEstimate,
        *,
        model: str = "",
        role: CallRole = "sub",
        waits: bool = True,
    ) -> Reservation:
        """Admit one call, waiting while only calls in flight keep it from fitting.

        Beside them it has to fit with all that providers may count in all their prompts beyond
        what we do; once nothing is in flight, as it is estimated. It `is_doubtful` then where the
        limits have no room for all that may be counted in its own prompt: whoever sends it counts
        it with care before. First come, first served. Where its reply is longer than would fit
        then, a shorter one is admitted. Without `waits` it must fit now, as estimated.

        Raises:
            LimitReached: it does not fit, whatever the calls in flight turn out to cost.
        """

        def attempt() -> Reservation | None:
            return self._attempt(self.fitted(estimate), model, role, waits=waits)

        return await self._granted(await self._line.until(attempt), waits=waits)

    async def admit_final(self, estimate: CallEstimate, *, model: str = "") -> Reservation:
        """Admit the run's last root call, out of all that is left, with a shorter reply if need be.

        It waits only where calls in flight could pass a limit together with it.

        Raises:
            LimitReached: even so it does not fit, or the time is over.
        """

        def attempt() -> Reservation | None:
            fitting = fitted(self._limits, estimate, self._committed(keep_final=False))
            return self._attempt(fitting, model, "root", waits=False, final=True)

        try:
            async with asyncio.timeout(self.seconds_left(final=True)):
                return await self._granted(await self._line.until(attempt))
        except TimeoutError:
            raise self._out_of_time() from None

    async def admit_retry(self, reservation: Reservation) -> None:
        """Admit one more request for a call whose last request failed.

        Raises:
            LimitReached: the request does not fit.
            ValueError: the reservation was settled or released.
        """
        pending = self._get(reservation)
        free = CallEstimate(0, 0, 0.0)
        self._check(free, keep_final=not reservation.final)
        pending.calls += 1
        self._promised += Amounts(calls=1)
        if self._share is None:
            return
        nothing = replace(reservation, estimate=free)
        try:
            grant = await self._share.admit(self._asked(nothing, waits=False))
        except BaseException:
            self._get(reservation).calls -= 1
            self._promised -= Amounts(calls=1)
            raise
        self._get(reservation).grants.append(grant)

    async def admit_again(self, reservation: Reservation) -> Reservation:
        """Admit a call once more, as long as it was, whose last request has settled.

        It waits as `admit` does, so that nobody should wait for the caller meanwhile.

        Raises:
            LimitReached: it does not fit.
        """
        own = reservation
        # The request is made: nobody may give it a shorter reply.
        estimate = replace(own.estimate, least_output_tokens=None)

        def attempt() -> Reservation | None:
            return self._attempt(estimate, own.model, own.role, waits=True, final=own.final)

        return await self._granted(await self._line.until(attempt), waits=True)

    async def _granted(self, reservation: Reservation, *, waits: bool = False) -> Reservation:
        """Have what the run shares with others admit a call that its own limits do."""
        if self._share is None:
            return reservation
        try:
            grant = await self._share.admit(self._asked(reservation, waits=waits))
        except BaseException:
            self.release(reservation)
            raise
        if grant.gone is not None:
            self.heard(grant.gone)
        if grant.estimate != reservation.estimate:
            self._withdraw(self._pending.pop(reservation.id))
            reservation = replace(reservation, estimate=grant.estimate)
            self._hold(reservation)
        self._get(reservation).grants.append(grant)
        return replace(reservation, is_doubtful=reservation.is_doubtful or grant.is_doubtful)

    def _asked(self, reservation: Reservation, *, waits: bool) -> Asked:
        return Asked(
            reservation.estimate,
            reservation.role,
            reservation.model,
            waits=waits,
            final=reservation.final,
            kept=None if self._final_taken else self._final,
        )

    def check_fits(self, reservation: Reservation) -> None:
        """Check an admitted call just before it is sent.

        Calls that settled meanwhile may have cost more than their estimates: a provider can count
        more tokens in a prompt than we do.

        Raises:
            LimitReached: it fits the limits in tokens or money no more.
        """
        own = reservation.estimate
        held = self._committed(keep_final=not reservation.final)
        if (refusal := too_costly(self._limits, own, held - own.amounts)) is not None:
            raise refusal

    def settle(self, reservation: Reservation, usage: Usage | None) -> Usage:
        """Count what a call cost, and return it; `usage.calls` counts its requests, retries too.

        None, for a call that was sent and whose cost nobody knows, counts its whole estimate, and
        all that may have been counted in its prompt beyond it, unless that was counted with care.

        Raises:
            ValueError: the reservation was settled or released.
        """
        pending = self._get(reservation)
        estimate = reservation.estimate
        if usage is None:
            at_most = not reservation.is_doubtful
            usage = estimate.spent(calls=pending.calls, at_most=at_most)
        self._withdraw(self._pending.pop(reservation.id))
        self._spend(usage, estimate.usd)
        self._give_back(pending, usage)
        self._count(usage, reservation.model, reservation.role)
        self._line.call_next()
        return usage

    def carry_over(self, sent: CallSent, usage: Usage) -> None:
        """Count a call that was not admitted here: made elsewhere, or before this budget was."""
        self._spend(usage, sent.estimate.get("usd"))
        self._tally.add_recorded(usage, sent)

    def release(self, reservation: Reservation) -> None:
        """Give back what a call that was not sent had reserved; idempotent."""
        if (pending := self._pending.pop(reservation.id, None)) is None:
            return
        self._withdraw(pending)
        self._give_back(pending, None)
        if reservation.final:
            self._final_taken = False
        self._line.call_next()

    def expect_final(
        self,
        estimate: CallEstimate,
        *,
        counted: Callable[[], Awaitable[CallEstimate]] | None = None,
    ) -> None:
        """Keep back enough for a final root call of this size from now on.

        `counted` counts it with care, for `count_final`.
        """
        self._final, self._final_counted = estimate, counted

    async def count_final(self) -> bool:
        """Count with care what the final root call needs; return whether that is more."""
        before, counted = self._final, self._final_counted
        if counted is None or self._final_taken:
            return False
        self._final_counted = None
        careful = await counted()
        if self._final is before:
            self._final = careful
        return self._final.tokens > before.tokens

    def fitted(self, estimate: CallEstimate) -> CallEstimate:
        """Return a call with as long a reply as the limits allow once nothing is in flight.

        It may be too large even so: its prompt, or the shortest reply that is of use.
        """
        return fitted(self._limits, estimate, self.gone)

    def limit_of(self, estimate: CallEstimate) -> StopReason | None:
        """Which limit keeps a call out as it is, once nothing is in flight; None: none does."""
        refusal = self._refusal(estimate, self.gone, keep_final=True)
        return None if refusal is None else refusal.name

    def count_cached(
        self, *, saved_usd: float = 0.0, model: str = "", role: CallRole = "sub"
    ) -> None:
        """Count a call that was answered without sending a request, and what that saved."""
        self._count(Usage(cached_calls=1, saved_usd=saved_usd), model, role)

    @property
    def usage(self) -> Usage:
        """What all settled calls cost."""
        return self._tally.usage

    @property
    def by_model(self) -> Mapping[str, Usage]:
        """What settled calls cost, by the model's name."""
        return self._tally.by_model

    @property
    def by_role(self) -> Mapping[CallRole, Usage]:
        """What settled calls cost, by `root` and `sub`."""
        return self._tally.by_role

    @property
    def gone(self) -> Amounts:
        """What no other call can have, once nothing is in flight: spent, or kept back."""
        return self._committed(keep_final=True, in_flight=False)

    def heard(self, gone: Amounts) -> None:
        """Take for spent what is `gone` of the limits by what all do whom they bind."""
        self._spent = gone

    @property
    def bounds_replies(self) -> bool:
        """Whether a limit in tokens or money holds, so that a reply's length must be known."""
        shared = self._share is not None and self._share.usd is not None
        return shared or self._limits.tokens is not None or self._limits.usd is not None

    def elapsed_seconds(self) -> float:
        """Time since the budget was made."""
        return self._clock() - self._started

    def seconds_left(self, *, final: bool = False) -> float | None:
        """Time left for ordinary work, or with `final` for the last call too; None: no limit."""
        limit = self._limits.seconds
        if limit is None:
            return None
        kept = 0.0
        if not final and not self._final_taken:
            kept = min(DEFAULT_FINAL_SECONDS, limit * FINAL_SHARE)
        return max(0.0, limit - kept - self.elapsed_seconds())

    def calls_left(self) -> int | None:
        """Ordinary calls that would be admitted now; None: no limit."""
        if self._limits.calls is None:
            return None
        return max(0, self._limits.calls - self._committed(keep_final=True).calls)

    def tokens_left(self) -> int | None:
        """Tokens left for ordinary calls; None: no limit."""
        if self._limits.tokens is None:
            return None
        return max(0, self._limits.tokens - self._committed(keep_final=True).tokens)

    def usd_left(self) -> float | None:
        """Money left for ordinary calls; None: no limit."""
        if self._limits.usd is None:
            return None
        return max(0.0, self._limits.usd - self._committed(keep_final=True).usd)

    def _get(self, reservation: Reservation) -> _Pending:
        if (pending := self._pending.get(reservation.id)) is None:
            raise ValueError(f"reservation {reservation.id} was settled or released before")
        return pending

    def _count(self, usage: Usage, model: str, role: CallRole) -> None:
        meter.count(usage, model)
        self._tally.add(usage, model, role)

    def _spend(self, usage: Usage, estimated_usd: float | None) -> None:
        usd = usage.usd if usage.usd is not None else estimated_usd or 0.0
        self._spent += Amounts(usage.calls, usage.input_tokens + usage.output_tokens, usd)

    def _attempt(
        self,
        estimate: CallEstimate,
        model: str,
        role: CallRole,
        *,
        waits: bool,
        final: bool = False,
    ) -> Reservation | None:
        """Reserve a call, or return None where it is to try again once one in flight has settled.

        One that `waits` does so where it would fit without them, and, as the `final` one does,
        where they could pass a limit together.
        """
        try:
            self._check(estimate, keep_final=not final)
        except LimitReached as refusal:
            if waits and refusal.may_fit_later:
                return None
            raise
        may_pass = self._may_pass(estimate, final=final)
        if may_pass and self._pending and (waits or final):
            return None
        doubtful = may_pass and estimate.more_tokens > 0
        reservation = Reservation(self._next_id, estimate, model, role, final, doubtful)
        self._next_id += 1
        self._final_taken = self._final_taken or final
        self._hold(reservation)
        return reservation

    def _hold(self, reservation: Reservation) -> None:
        self._pending[reservation.id] = _Pending(reservation)
        self._promised += reservation.estimate.amounts
        if reservation.estimate.more_tokens:
            self._doubted += reservation.estimate.more

    def _give_back(self, pending: _Pending, usage: Usage | None) -> None:
        """Settle what was granted from above; all that the call cost is counted with the first."""
        for grant in pending.grants:
            assert self._share is not None
            self._share.settle(grant, usage)
            usage = None

    def _withdraw(self, pending: _Pending) -> None:
        if not self._pending:
            # Sums of floats drift; nothing in flight is nothing promised.
            self._promised = self._doubted = Amounts()
            return
        estimate = pending.reservation.estimate
        self._promised -= replace(estimate.amounts, calls=pending.calls)
        if estimate.more_tokens:
            self._doubted -= estimate.more

    def _kept_for_final(self) -> Amounts:
        if self._final_taken:
            return Amounts()
        tokens, usd = self._final.tokens, self._final.usd or 0.0
        if self._limits.tokens is not None:
            tokens = min(tokens, int(self._limits.tokens * FINAL_SHARE))
        if self._limits.usd is not None:
            usd = min(usd, self._limits.usd * FINAL_SHARE)
        return Amounts(1, tokens, usd)

    def _committed(self, *, keep_final: bool, in_flight: bool = True) -> Amounts:
        held = self._spent + self._kept_for_final() if keep_final else self._spent
        return held + self._promised if in_flight else held

    def _check(self, estimate: CallEstimate, *, keep_final: bool) -> None:
        refusal = self._refusal(estimate, self._committed(keep_final=keep_final), keep_final)
        if refusal is None:
            return
        alone = self._committed(keep_final=keep_final, in_flight=False)
        refusal.may_fit_later = self._refusal(estimate, alone, keep_final) is None
        raise refusal

    def _may_pass(self, estimate: CallEstimate, *, final: bool) -> bool:
        """Whether one more call could pass a limit together with those in flight."""
        if not self.bounds_replies:
            return False
        held = self._committed(keep_final=not final) + self._doubted + estimate.more
        return too_costly(self._limits, estimate, held) is not None

    def _out_of_time(self) -> LimitReached:
        return LimitReached("timeout", f"the limit of {self._limits.seconds:g} seconds is reached")

    def _refusal(
        self, estimate: CallEstimate, committed: Amounts, keep_final: bool
    ) -> LimitReached | None:
        limits = self._limits
        is_kept = keep_final and not self._final_taken
        kept = ", one call being kept for the final answer" if is_kept else ""
        seconds_left = self.seconds_left(final=not keep_final)
        if seconds_left == 0:
            return self._out_of_time()
        if limits.calls is not None and committed.calls + 1 > limits.calls:
            return LimitReached(
                "budget_calls", f"the limit of {counted(limits.calls, 'call')}{kept}"
            )
        return too_costly(limits, estimate, committed, kept=kept)
