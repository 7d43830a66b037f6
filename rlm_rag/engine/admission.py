"""What is asked before a call is sent, and who may say no beside the run's own budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

from rlm_rag.engine.answer import StopReason
from rlm_rag.models.base import Usage

CallRole = Literal["root", "sub"]


class LimitReached(Exception):
    """A limit ends the run, or keeps a call from being sent; `name` is the stop reason.

    `may_fit_later` is true where the call would fit if the calls in flight cost nothing, so
    that it is worth asking again once one of them has settled.
    """

    def __init__(self, name: StopReason, detail: str, *, may_fit_later: bool = False) -> None:
        super().__init__(f"{name}: {detail}")
        self.name: StopReason = name
        self.detail = detail
        self.may_fit_later = may_fit_later


@dataclass(frozen=True, slots=True)
class Amounts:
    """Calls, tokens and money, spent or promised."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(self.calls + other.calls, self.tokens + other.tokens, self.usd + other.usd)

    def __sub__(self, other: Amounts) -> Amounts:
        return Amounts(self.calls - other.calls, self.tokens - other.tokens, self.usd - other.usd)


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """What one call is thought to cost: its counted prompt and the output cap that is sent.

    `usd` is None where the price is not known; `reply_usd` of it are for each token of the reply.
    Where so long a reply does not fit, one of `least_output_tokens` is worth having; None: none
    that is shorter. `more_tokens`, which cost `more_usd`, are what the provider may count in the
    prompt beyond what we do.
    """

    input_tokens: int
    output_tokens: int
    usd: float | None = None
    reply_usd: float = 0.0
    least_output_tokens: int | None = None
    more_tokens: int = 0
    more_usd: float = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def prompt_usd(self) -> float:
        """What the prompt alone costs, 0 where the price is not known."""
        return (self.usd or 0.0) - self.output_tokens * self.reply_usd

    def to_dict(self) -> dict[str, float | None]:
        """What a trace keeps of it."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "usd": self.usd,
        }

    @property
    def amounts(self) -> Amounts:
        """What is promised to it, money of an unknown price not counted."""
        return Amounts(1, self.tokens, self.usd or 0.0)

    @property
    def more(self) -> Amounts:
        """What it may cost beyond that."""
        return Amounts(0, self.more_tokens, self.more_usd)

    def spent(self, *, calls: int = 1, at_most: bool = False) -> Usage:
        """What it counts for where nobody knows what it cost, with `at_most` all it may have."""
        more = self.more if at_most else Amounts()
        return Usage(
            calls=calls,
            input_tokens=self.input_tokens + more.tokens,
            output_tokens=self.output_tokens,
            usd=None if self.usd is None else self.usd + more.usd,
        )

    def shortened(self, output_tokens: int) -> CallEstimate:
        """Return it with a shorter reply, no longer than it was nor shorter than is of use."""
        if self.least_output_tokens is None:
            return self
        tokens = min(self.output_tokens, max(output_tokens, self.least_output_tokens))
        usd = None if self.usd is None else self.prompt_usd + tokens * self.reply_usd
        return replace(self, output_tokens=tokens, usd=usd)


@dataclass(frozen=True, slots=True)
class Reservation:
    """An admitted call that has not settled yet.

    It `is_doubtful` where the limits have room for it as it is estimated, not for all that its
    provider may count in its prompt.
    """

    id: int
    estimate: CallEstimate
    model: str
    role: CallRole
    final: bool = False
    is_doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that a run's own limits admit, as it is put to what is above the run.

    It `waits` where only calls in flight keep it out. `final` is the run's last root call;
    `kept` is what that one is thought to need, None for a run that keeps none back.
    """

    estimate: CallEstimate
    role: CallRole = "sub"
    model: str = ""
    waits: bool = True
    final: bool = False
    kept: CallEstimate | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """Leave for one call, which is settled once; its reply may have to be shorter than asked for.

    `gone` is what no other call can have of limits that bind several processes together, None
    where each has its own. It `is_doubtful` as a `Reservation` is.
    """

    estimate: CallEstimate
    number: int = 0
    gone: Amounts | None = None
    is_doubtful: bool = False


class Account(Protocol):
    """What admits the calls of a run beside those of others."""

    async def admit(self, asked: Asked) -> Grant:
        """Admit a call.

        Raises:
            LimitReached: it does not fit.
        """
        ...

    def settle(self, grant: Grant, usage: Usage | None) -> None:
        """Count what an admitted call cost, None where it was not sent."""
        ...
