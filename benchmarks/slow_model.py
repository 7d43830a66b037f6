"""A model in process that takes its time: `slow:0.05` replies after 50 ms.

It comes in as any third party's would, by an entry point, so that nothing of the library is
replaced to measure it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractContextManager

from benchmarks import entry_points
from rlm_rag.models.base import Completion, ModelRequest, Usage
from rlm_rag.models.router import ENTRY_POINT_GROUP, ModelOptions

PREFIX = "slow"


class SlowModel:
    """Replies to each call after `delay_seconds`, however many are in flight."""

    def __init__(self, name: str, delay_seconds: float) -> None:
        self._name = name
        self._delay_seconds = delay_seconds

    @property
    def name(self) -> str:
        return self._name

    async def complete(self, request: ModelRequest) -> Completion:
        await asyncio.sleep(self._delay_seconds)
        return Completion("done", Usage(calls=1, input_tokens=11, output_tokens=7), self._name)


def open_slow(name: str, options: ModelOptions) -> SlowModel:
    """Open `slow:SECONDS`."""
    return SlowModel(name, float(name.partition(":")[2]))


def registered(others: Mapping[str, str] | None = None) -> AbstractContextManager[None]:
    """Let the router find `slow:SECONDS`, as if a package that brings it were installed.

    `others` are more backends of that package: `module:function` by prefix.
    """
    rows = {PREFIX: f"{__name__}:{open_slow.__name__}", **(others or {})}
    return entry_points.registered({ENTRY_POINT_GROUP: rows})
