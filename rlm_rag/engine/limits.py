"""The limits of a run, and the values they have when nobody says otherwise."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from rlm_rag.errors import UsageError

DEFAULT_CALLS = 200
_AMOUNTS = frozenset(
    {"usd", "seconds", "cell_seconds", "call_seconds", "await_seconds", "start_seconds"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one run may spend; None means no limit.

    `iterations`, `errors` (consecutive) and `cell_seconds` hold for each RLM, the rest for the
    whole tree of root and children. `calls` counts requests sent to providers, root, sub and
    retries included. `tokens` counts input and output tokens together. Defaults: docs/design.md
    section 4.5.

    Raises:
        UsageError: a limit that is not a positive number.
    """

    iterations: int = 30
    depth: int = 1
    calls: int | None = DEFAULT_CALLS
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None
    cell_seconds: float = 120.0
    call_seconds: float = 300.0
    await_seconds: float = 600.0
    start_seconds: float = 10.0
    errors: int = 5
    concurrency: int = 16
    live_children: int = 16
    output_chars: int = 20_000

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if value is None and item.default is None:
                continue
            if value is None and item.name == "calls":
                continue
            lowest_is_zero = item.name in ("depth", "usd")
            wanted = "number" if item.name in _AMOUNTS else "whole number"
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float if item.name in _AMOUNTS else int)
                or math.isnan(value)
                or value < 0
                or (value == 0 and not lowest_is_zero)
            ):
                raise UsageError(
                    f"limit {item.name} must be a positive {wanted}, not {value!r}",
                    hint=f"for example Limits({item.name}={item.default or 1})",
                )
