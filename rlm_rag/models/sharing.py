"""Identical calls are sent once: those in flight are joined, those of earlier runs looked up.

What counts as identical: the model, its address, the messages (but for the figures of what is
left of the limits), the output cap, the temperature, the schema that the reply is asked to be of
(whether or not the provider takes it) and all other parameters. A temperature set
above 0 asks for replies that differ, so each repetition within a run is a call of its own then;
across runs the n-th is served by the n-th, so that a run that is repeated finds the replies it
had. With 0, or none set, a repetition is taken for one: asking the same thing twice for two
opinions needs a temperature, or words that differ.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace

from rlm_rag.errors import ModelRequestError
from rlm_rag.models.base import Completion, Message, ModelRequest, Usage
from rlm_rag.models.cache import ReplyCache

# What is left of the limits, as engine.loop tells the root model: it differs from run to run
# (time passes, a reply from the cache costs nothing) where the question is the same.
_FIGURES = re.compile(r"(?m)^(This is turn \d+ of \d+(?:, the last: answer in it)?\.) Left: .*$")


def without_figures(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages without what is left of the limits, by which two prompts are compared."""
    return tuple(
        replace(message, content=_FIGURES.sub(r"\1", message.content)) for message in messages
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How a call that others waited for ended; neither: it was given up before its end."""

    completion: Completion | None = None
    error: Exception | None = None


class SharedReplies:
    """The replies of one run's calls, root and children, and those of a cache if there is one.

    Belongs to one event loop.
    """

    def __init__(self, cache: ReplyCache | None = None) -> None:
        self._cache = cache
        self._in_flight: dict[bytes, asyncio.Future[_Outcome]] = {}
        self._repetitions: Counter[bytes] = Counter()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why replies are not kept, where they should be."""
        failure = None if self._cache is None else self._cache.failure
        return () if failure is None else (failure,)

    def key(self, model: str, api_base: str | None, request: ModelRequest) -> bytes:
        """The key of one call; to be asked for once a call, in order.

        Raises:
            ModelRequestError: a parameter that is no JSON.
        """
        key = _digest(model, api_base, request, 0)
        if not request.temperature:
            return key
        self._repetitions[key] += 1
        return _digest(model, api_base, request, self._repetitions[key])

    async def complete(
        self,
        key: bytes,
        send: Callable[[], Awaitable[Completion]],
        *,
        keeps: Callable[[Completion], bool] = lambda _: True,
    ) -> tuple[Completion, bool]:
        """The completion of `key`, and whether `send` was called for it by this very call.

        Where it was not, its usage is a cached call's, with what was saved. Whoever sends for
        others and is cancelled leaves it to the next of them. A later run gets what `keeps`
        approves.

        Raises:
            Exception: what `send` raised, also to those who waited for it.
        """
        while True:
            ahead = self._in_flight.get(key)
            if ahead is None:
                return await self._lead(key, send, keeps)
            outcome = await asyncio.shield(ahead)
            if outcome.error is not None:
                raise outcome.error
            if outcome.completion is not None:
                return saved(outcome.completion), False

    async def _lead(
        self,
        key: bytes,
        send: Callable[[], Awaitable[Completion]],
        keeps: Callable[[Completion], bool],
    ) -> tuple[Completion, bool]:
        mine: asyncio.Future[_Outcome] = asyncio.get_running_loop().create_future()
        self._in_flight[key] = mine
        outcome = _Outcome()
        try:
            kept = None if self._cache is None else await self._cache.get(key)
            if kept is not None:
                outcome = _Outcome(kept)
                return saved(kept), False
            completion = await send()
            outcome = _Outcome(completion)
            if self._cache is not None and completion.text.strip() and keeps(completion):
                await self._cache.put(key, completion)
            return completion, True
        except Exception as error:
            outcome = _Outcome(error=error)
            raise
        finally:
            del self._in_flight[key]
            mine.set_result(outcome)


def _digest(model: str, api_base: str | None, request: ModelRequest, repetition: int) -> bytes:
    parts = [
        model,
        api_base,
        [[m.role, m.content, list(m.images)] for m in without_figures(request.messages)],
        request.max_output_tokens,
        request.temperature,
        request.extra,
        repetition,
        *([list(request.stop)] if request.stop else ()),
        *([request.schema] if request.schema is not None else ()),
    ]
    try:
        text = json.dumps(parts, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelRequestError(
            f"the request's extra parameters are no JSON: {error}",
            hint="extra parameters are strings, numbers, lists and mappings",
        ) from error
    return hashlib.sha256(text.encode()).digest()


def saved(completion: Completion) -> Completion:
    """Return a completion as one that was not sent for."""
    usage = Usage(cached_calls=1, saved_usd=completion.usage.usd or 0.0)
    return replace(completion, usage=usage)
