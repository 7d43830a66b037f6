"""Counts as a person reads them."""

from __future__ import annotations


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with what it counts: `1 call`, `1,200 calls`; `many` is by default `one`s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
