"""Calls of the caller's tools: JSON in, the function on the host, JSON out."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from rlm_rag.engine.caller import Caller
from rlm_rag.engine.offers import Tool
from rlm_rag.engine.services import Handler
from rlm_rag.engine.threads import called
from rlm_rag.models.redact import environment_secrets, without_keys
from rlm_rag.sandbox.calls import uncounted
from rlm_rag.sandbox.session import ServiceError

MAX_RESULT_CHARS = 8 << 20
MAX_RESULT_DEPTH = 32
MAX_RESULT_ITEMS = 100_000
MAX_ERROR_CHARS = 2_000
THREADS = 16
"""How many calls of functions that are not async run at the same time, as sub-calls do."""


class ToolCalls:
    """Runs the tools of a run, for all of its RLMs."""

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(THREADS)

    def handlers(self, tools: Iterable[Tool]) -> dict[str, Handler]:
        """Return what serves each tool, which takes a call's arguments as they came."""
        return {tool.name: self._handler(tool) for tool in tools}

    def _handler(self, tool: Tool) -> Handler:
        async def call(args: list[Any], kwargs: dict[str, Any], *, caller: Caller) -> Any:
            if tool.function is None:
                raise ServiceError("tool", f"{tool.name} is not given to this run")
            _check_arguments(tool, tool.function, args, kwargs)
            try:
                async with asyncio.timeout(caller.seconds) as deadline:
                    with uncounted():
                        bound = partial(tool.function, *args, **kwargs)
                        value = await called(bound, room=self._room)
            except TimeoutError as error:
                what = f"it did not end within {caller.seconds:g} s" if deadline.expired() else ""
                raise ServiceError("tool", f"{tool.name}: {what or _shown(error)}") from error
            except Exception as error:
                raise ServiceError("tool", f"{tool.name}: {_shown(error)}") from error
            return _checked(tool.name, value)

        return call


def _check_arguments(
    tool: Tool, function: Callable[..., Any], args: list[Any], kwargs: Mapping[str, Any]
) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ServiceError(
            "argument", f"{error}; it is called as {tool.name}{tool.signature}"
        ) from error


def _checked(name: str, value: Any) -> Any:
    """Return a result as JSON has it: tuples as lists, keys as text.

    Raises:
        ServiceError: it is no JSON, or too large.
    """
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ServiceError(
            "tool", f"{name}: its result is a {type(value).__name__} that is not JSON: {error}"
        ) from error
    if len(text) > MAX_RESULT_CHARS:
        raise ServiceError(
            "tool",
            f"{name}: its result has {len(text):,} characters, of at most {MAX_RESULT_CHARS:,}",
        )
    found = json.loads(text)
    if not _is_small(found, MAX_RESULT_DEPTH):
        raise ServiceError(
            "tool",
            f"{name}: its result has more than {MAX_RESULT_ITEMS:,} items, or is nested deeper "
            f"than {MAX_RESULT_DEPTH}",
        )
    return found


def _is_small(value: Any, depth: int) -> bool:
    left, level = MAX_RESULT_ITEMS, [value]
    for _ in range(depth + 1):
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict | list):
                below += each.values() if isinstance(each, dict) else each
        left -= len(below)
        if left < 0 or not below:
            return left >= 0
        level = below
    return False


def _shown(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    # What a caller's function says of itself goes to hostile code.
    return without_keys(text, environment_secrets())[:MAX_ERROR_CHARS]
