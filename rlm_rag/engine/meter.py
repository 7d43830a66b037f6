"""What the calls of one task or child cost, whatever it starts below it included."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rlm_rag.models.base import Usage


class Meter:
    """Adds up the usage of every call made inside `metered`, by model too."""

    def __init__(self, above: Meter | None = None) -> None:
        self.usage = Usage()
        self.by_model: dict[str, Usage] = {}
        self.above = above


_INNERMOST: ContextVar[Meter | None] = ContextVar("innermost_meter", default=None)


@contextmanager
def metered() -> Iterator[Meter]:
    """Give a meter for the calls of the body, and of the tasks that it starts."""
    meter = Meter(_INNERMOST.get())
    token = _INNERMOST.set(meter)
    try:
        yield meter
    finally:
        _INNERMOST.reset(token)


def count(usage: Usage, model: str) -> None:
    """Add what a call cost to the meters that run around it."""
    meter = _INNERMOST.get()
    while meter is not None:
        meter.usage += usage
        meter.by_model[model] = meter.by_model.get(model, Usage()) + usage
        meter = meter.above
