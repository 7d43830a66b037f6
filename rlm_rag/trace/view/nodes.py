"""What a page shows of a run: a tree of nodes, each with its parts, figures and place in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

State = Literal["ok", "error", "open"]
Form = Literal["text", "code", "markdown", "error", "hits", "facts"]

TITLE_CHARS = 160
# More than anybody spent; a number beyond it is none.
_MOST = 10**15


@dataclass(frozen=True, slots=True)
class Part:
    """One text, table or list of a node. `value` is a string, or JSON for `hits` and `facts`."""

    label: str
    form: Form
    value: Any


@dataclass(frozen=True, slots=True)
class Spent:
    """Calls, tokens and US dollars; `usd` is None where a price is not known."""

    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0

    def __add__(self, other: Spent) -> Spent:
        unknown = self.usd is None or other.usd is None
        return Spent(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
            None if unknown else (self.usd or 0.0) + (other.usd or 0.0),
        )


@dataclass(frozen=True, slots=True)
class Node:
    """`parent` is the number of a node before it, -1 for none; times are seconds on the axis.

    `spent` has what all nodes beneath it spent, too. `end` is None where it had not ended.
    """

    kind: str
    title: str
    parent: int
    start: float
    end: float | None
    state: State
    spent: Spent
    parts: tuple[Part, ...]


NOTHING = Spent()


def spent_of(usage: Mapping[str, Any]) -> Spent:
    """Return a usage as a trace has it; what is no number counts as none."""
    usd = usage.get("usd")
    return Spent(
        calls=_count(usage.get("calls")),
        input_tokens=_count(usage.get("input_tokens")),
        cached_tokens=_count(usage.get("cached_tokens")),
        output_tokens=_count(usage.get("output_tokens")),
        usd=float(usd) if isinstance(usd, int | float) and abs(usd) < _MOST else None,
    )


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if abs(value) < _MOST else 0
