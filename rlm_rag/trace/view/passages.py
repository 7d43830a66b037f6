"""The lines that a citation names, with its quote marked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One line in pieces, each with whether it belongs to the quote; `cited` is false for the
    lines around the cited ones. A line that is not known has no pieces."""

    number: int
    cited: bool
    pieces: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines in order, and a sentence on where they were taken from, or why there are none."""

    lines: tuple[Line, ...]
    note: str
