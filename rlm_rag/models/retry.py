"""Sends a request until it is answered, waiting as long as the provider asks, and no longer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

from rlm_rag.errors import (
    ModelError,
    ModelTimeoutError,
    ProviderServerError,
    RateLimitError,
)
from rlm_rag.models.base import Completion, LanguageModel, ModelRequest
from rlm_rag.models.limiter import Leave, Turns

DEFAULT_ATTEMPTS = 4
# A provider that limits its rate will answer in the end; each refusal halves what it is sent, so
# that a few are enough to come down to what it takes.
RATE_LIMITED_ATTEMPTS = 10
FIRST_WAIT_SECONDS = 0.5
MAX_BACKOFF_SECONDS = 20.0
MAX_WAIT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Pauses:
    """How to wait between attempts; tests put their own clock and dice here."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    dice: random.Random = field(default_factory=random.Random)

    def seconds_before(self, attempt: int, error: ModelError) -> float:
        """The wait before `attempt` (2 for the first repetition), in seconds.

        What the provider asked for, and up to a tenth more, so that callers who were told the
        same moment do not come back together; else between half and the whole of a bound that
        doubles with each attempt, from `FIRST_WAIT_SECONDS` to `MAX_BACKOFF_SECONDS`.
        """
        if error.retry_after_seconds is not None:
            return error.retry_after_seconds * (1 + 0.1 * self.dice.random())
        bound = min(MAX_BACKOFF_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** (attempt - 2))
        return bound * (0.5 + 0.5 * self.dice.random())


# Dice take longer to make than all else that a call costs here.
_PAUSES = Pauses()


@dataclass(frozen=True, slots=True)
class Patience:
    """How long and how often one call may be tried.

    `attempts` bounds its requests, but for those that met a rate limit: of these there may be
    `RATE_LIMITED_ATTEMPTS`. `seconds` runs from the first turn to the last reply, `queue_seconds`
    from now to the first turn; None: no limit.
    """

    attempts: int = DEFAULT_ATTEMPTS
    seconds: float | None = None
    queue_seconds: float | None = None


async def complete_with_retries(
    model: LanguageModel,
    request: ModelRequest,
    *,
    limiter: Turns,
    owner: Hashable = None,
    before_attempt: Callable[[], Awaitable[None]] | None = None,
    before_repeat: Callable[[], Awaitable[None]] | None = None,
    after_loss: Callable[[], Awaitable[None]] | None = None,
    patience: Patience | None = None,
    pauses: Pauses | None = None,
) -> Completion:
    """The model's completion, after as many requests as `patience` allows.

    `before_attempt` is awaited each time a request is about to be sent, in its turn, and may
    raise to stop, `before_repeat` before it waits for a turn to send one again, and may raise too,
    `after_loss` each time that one has failed and may have been billed. No wait
    is longer than `MAX_WAIT_SECONDS`, and one that would be is not begun. A rate limit, a timeout,
    and a failure that says when to come back, have fewer requests sent at a time from then on,
    and none to the provider before the moment it named. A turn of the limiter, in the line of
    `owner`, is held while a request is under way, not while waiting to repeat it. The
    completion's `usage.calls` counts the requests sent.

    Raises:
        ModelError: the last attempt's, at once where repeating is of no use.
    """
    trying = _Trying(
        model,
        request,
        limiter,
        owner,
        before_attempt,
        before_repeat,
        after_loss,
        patience or Patience(),
        pauses or _PAUSES,
    )
    return await trying.complete()


@dataclass(slots=True)
class _Trying:
    """One call's attempts."""

    model: LanguageModel
    request: ModelRequest
    limiter: Turns
    owner: Hashable
    before_attempt: Callable[[], Awaitable[None]] | None
    before_repeat: Callable[[], Awaitable[None]] | None
    after_loss: Callable[[], Awaitable[None]] | None
    patience: Patience
    pauses: Pauses
    sent: int = 0
    failed: int = 0
    end: float | None = None

    async def complete(self) -> Completion:
        while True:
            try:
                completion = await self._attempt()
            except ModelError as error:
                wait = self._wait_after(error)
                if wait is None:
                    raise _counted(error, self.sent) from error
                await self.pauses.sleep(wait)
            else:
                usage = completion.usage
                if usage.calls == self.sent:
                    return completion
                return replace(completion, usage=replace(usage, calls=self.sent))

    def _wait_after(self, error: ModelError) -> float | None:
        """The seconds to wait before the next attempt; None where there is to be none."""
        if not isinstance(error, RateLimitError):
            self.failed += 1
        if (
            not error.retryable
            or self.failed >= self.patience.attempts
            or self.sent >= max(RATE_LIMITED_ATTEMPTS, self.patience.attempts)
        ):
            return None
        wait = self.pauses.seconds_before(self.sent + 1, error)
        late = self.end is not None and _now() + wait >= self.end
        return None if wait > MAX_WAIT_SECONDS or late else wait

    async def _attempt(self) -> Completion:
        until = self.end
        if until is None and self.patience.queue_seconds is not None:
            until = _now() + self.patience.queue_seconds
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout_at(until):
                    if self.sent > 0 and self.before_repeat is not None:
                        await self.before_repeat()
                    permit = await stack.enter_async_context(
                        self.limiter.permit(self.owner, again=self.sent > 0)
                    )
            except TimeoutError:
                self.end = until
                raise self._out_of_time() from None
            if self.end is None and self.patience.seconds is not None:
                self.end = _now() + self.patience.seconds
            return await self._send(permit)

    async def _send(self, permit: Leave) -> Completion:
        request = self.request
        if self.end is not None:
            left = self.end - _now()
            if left <= 0:
                raise self._out_of_time()
            if left < request.timeout_seconds:
                request = replace(request, timeout_seconds=left)
        if self.before_attempt is not None:
            await self.before_attempt()
        self.sent += 1
        try:
            completion = await self._completion(request)
        except ModelError as error:
            pause = _pause_for_all(error)
            if pause is not None:
                # Whoever is told to wait longer than is worth it gives up, each for itself.
                permit.throttled(pause if pause <= MAX_WAIT_SECONDS else 0.0)
            raise
        permit.succeeded()
        return completion

    async def _completion(self, request: ModelRequest) -> Completion:
        try:
            return await self.model.complete(request)
        except ModelError as error:
            if error.may_be_billed and self.after_loss is not None:
                await self.after_loss()
            raise

    def _out_of_time(self) -> ModelTimeoutError:
        return ModelTimeoutError(
            f"no time was left to send the request to model {self.model.name!r}",
            hint="raise the call's time limit, or lower --concurrency",
        )


def _pause_for_all(error: ModelError) -> float | None:
    """How long nobody may send after an error; None where it does not say that too much is sent.

    A rate limit, a timeout, and a server that fails and says when to come back (503, 529).
    """
    asked = error.retry_after_seconds
    if isinstance(error, RateLimitError):
        return FIRST_WAIT_SECONDS if asked is None else asked
    if isinstance(error, ModelTimeoutError):
        return asked or 0.0
    return asked if isinstance(error, ProviderServerError) else None


def _now() -> float:
    return asyncio.get_running_loop().time()


def _counted(error: ModelError, attempts: int) -> ModelError:
    if attempts <= 1:
        return error
    return type(error)(
        f"{error.message} ({attempts} attempts)",
        hint=error.hint,
        provider_message=error.provider_message,
        retry_after_seconds=error.retry_after_seconds,
    )
