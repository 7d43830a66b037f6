"""Look-ups that a block made, and whether they found anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

BY_WORDS = frozenset({"search", "grep_context", "symbols"})
"""The functions that go through the whole corpus for what they are given."""

MAX_CHARS = 200
MAX_LOOKS = 100
"""Of a block's look-ups so many are kept, by the beginning of their words."""


@dataclass(frozen=True, slots=True)
class Look:
    """One call of a function of `BY_WORDS`: what it was asked for, and whether that was there."""

    name: str
    words: str
    found: bool


def look_of(name: str, arguments: Mapping[str, Any], result: Any) -> Look | None:
    """Return the look-up that a result is of, None for one that says nothing.

    `result` is as blocks get it. A grep that a bad pattern or the time cut short, and that has no
    hits, leaves open what is there.
    """
    if name not in BY_WORDS:
        return None
    words = next((value for value in arguments.values() if isinstance(value, str)), "")[:MAX_CHARS]
    if not isinstance(result, Mapping):
        return Look(name, words, bool(result))
    hits = bool(result.get("hits"))
    return None if result.get("error") and not hits else Look(name, words, hits)
