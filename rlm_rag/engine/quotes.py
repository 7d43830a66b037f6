"""Quotations: how they may be spelled, and where they stand in a text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

MIN_QUOTE_CHARS = 20

_ELLIPSIS = re.compile(r"\s*(?:\[\s*)?(?:\.\.\.+|…)(?:\s*\])?\s*")
_WORD = re.compile(r"\S+")


def fold(text: str) -> str:
    """Return a text with each run of white space as one space."""
    return " ".join(text.split())


def is_long(quote: str) -> bool:
    """Whether a quote says enough to be looked for anywhere: MIN_QUOTE_CHARS but ellipses."""
    return len(_ELLIPSIS.sub("", quote)) >= MIN_QUOTE_CHARS


def spellings(quote: str) -> Sequence[str]:
    """Return the quote as it is, and without a mark of the sentence that it ends."""
    return (quote, quote[:-1]) if len(quote) > 1 and quote[-1] in ".,;:!?" else (quote,)


def readings(quote: str) -> Iterator[Sequence[str]]:
    """Yield the quote as it may be spelled, and as the pieces around its ellipses."""
    for spelling in spellings(quote):
        yield [spelling]
    pieces = [piece for piece in _ELLIPSIS.split(quote) if piece]
    if pieces and pieces != [quote]:
        yield pieces


def end_of(text: str, pieces: Sequence[str], begin: int, end: int) -> int | None:
    """Return where the last of the pieces ends, found in order within `begin`..`end`."""
    spans = _spans_of(text, pieces, begin, end)
    return spans[-1][1] if spans else None


def marks_of(quote: str, lines: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return where a folded quote first stands: index of the line, first and end character.

    Empty where it does not stand in these lines.
    """
    words = [(n, m.start(), m[0]) for n, line in enumerate(lines) for m in _WORD.finditer(line)]
    starts, size = [], 0
    for _, _, word in words:
        starts.append(size)
        size += len(word) + 1
    text = " ".join(word for _, _, word in words)
    for pieces in readings(quote):
        spans = _spans_of(text, pieces, 0, len(text))
        marks: dict[int, tuple[int, int]] = {}
        for begin, end in spans:
            for at in range(bisect_right(starts, begin) - 1, bisect_right(starts, end - 1)):
                number, column, word = words[at]
                first = column + max(begin - starts[at], 0)
                last = column + min(end - starts[at], len(word))
                known = marks.get(number, (first, last))
                marks[number] = min(known[0], first), max(known[1], last)
        if marks:
            return [(number, *span) for number, span in marks.items()]
    return []


def _spans_of(text: str, pieces: Sequence[str], begin: int, end: int) -> list[tuple[int, int]]:
    """The places of the pieces, found in order; none where one is missing."""
    spans = []
    for piece in pieces:
        at = text.find(piece, begin, end)
        if at < 0:
            return []
        begin = at + len(piece)
        spans.append((at, begin))
    return spans
