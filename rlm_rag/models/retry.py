"""Sends a request until it is answered, waiting as long as the provider asks, and no longer."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from rlm_rag.errors import ModelError, ModelTimeoutError, RateLimitError
from rlm_rag.models.base import Completion, LanguageModel, ModelRequest
from rlm_rag.models.limiter import Limiter

DEFAULT_ATTEMPTS = 4
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


async def complete_with_retries(
    model: LanguageModel,
    request: ModelRequest,
    *,
    limiter: Limiter,
    before_attempt: Callable[[], Awaitable[None] | None] | None = None,
    attempts: int = DEFAULT_ATTEMPTS,
    deadline_seconds: float | None = None,
    pauses: Pauses | None = None,
) -> Completion:
    """The model's completion, after at most `attempts` requests.

    `before_attempt` is called each time a request is about to be sent, in its turn, and may
    raise to stop. All attempts and waits together end `deadline_seconds` from now (None: no
    limit); no wait is longer than `MAX_WAIT_SECONDS`, and one that would be is not begun. A turn
    of the limiter is held while a request is under way, not while waiting to repeat it. The
    completion's `usage.calls` counts the requests sent.

    Raises:
        ModelError: the last attempt's, at once where repeating is of no use.
    """
    how = pauses or Pauses()
    clock = asyncio.get_running_loop().time
    end = None if deadline_seconds is None else clock() + deadline_seconds
    for attempt in range(1, attempts + 1):
        try:
            completion = await _attempt(model, request, limiter, before_attempt, end)
        except ModelError as error:
            wait = how.seconds_before(attempt + 1, error)
            too_long = wait > MAX_WAIT_SECONDS or (end is not None and clock() + wait >= end)
            if not error.retryable or attempt == attempts or too_long:
                raise _counted(error, attempt) from error
            await how.sleep(wait)
        else:
            return replace(completion, usage=replace(completion.usage, calls=attempt))
    raise ValueError(f"attempts must be at least 1, not {attempts}")


async def _attempt(
    model: LanguageModel,
    request: ModelRequest,
    limiter: Limiter,
    before_attempt: Callable[[], Awaitable[None] | None] | None,
    end: float | None,
) -> Completion:
    async with limiter.permit() as permit:
        if end is not None:
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                raise ModelTimeoutError(
                    f"no time was left to send the request to model {model.name!r}",
                    hint="raise the call's time limit, or lower --concurrency",
                )
            request = replace(request, timeout_seconds=min(request.timeout_seconds, left))
        if before_attempt is not None:
            ready = before_attempt()
            if inspect.isawaitable(ready):
                await ready
        try:
            completion = await model.complete(request)
        except (RateLimitError, ModelTimeoutError):
            permit.throttled()
            raise
        permit.succeeded()
        return completion


def _counted(error: ModelError, attempts: int) -> ModelError:
    if attempts == 1:
        return error
    return type(error)(
        f"{error.message} ({attempts} attempts)",
        hint=error.hint,
        provider_message=error.provider_message,
        retry_after_seconds=error.retry_after_seconds,
    )
