"""Patterns with possessive repeats of groups, which CPython before 3.11.5 lets overrun.

There `(?:ab?c)*+` takes all of `aca` (Debian 12 has 3.11.2); the atomic group around a plain
repeat, which means the same, does not.
"""

from __future__ import annotations

import re
import sys

_OVERRUNS = sys.version_info < (3, 11, 5)
_TOKEN = re.compile(rb"\\[\s\S]|\[\^?\]?(?:\\[\s\S]|[^\]\\])*\]|[\s\S]")
_QUANTIFIER = re.compile(rb"(?:[*+?]|\{\d*,?\d*\})\+")


def compiled(pattern: bytes, flags: int = 0) -> re.Pattern[bytes]:
    """Compile a pattern; where possessive repeats of groups overrun, without them."""
    return re.compile(without_possessive_groups(pattern) if _OVERRUNS else pattern, flags)


def without_possessive_groups(pattern: bytes) -> bytes:
    """Return a pattern of the same meaning in which no group is repeated possessively."""
    out: list[bytes] = []
    opened: list[int] = []
    place = 0
    closed: int | None = None
    while place < len(pattern):
        repeat = _QUANTIFIER.match(pattern, place) if closed is not None else None
        if repeat is not None and closed is not None:
            out[closed] = b"(?>" + out[closed]
            out.append(repeat[0][:-1] + b")")
            place, closed = repeat.end(), None
            continue
        token = _TOKEN.match(pattern, place)
        assert token is not None
        text, place, closed = token[0], token.end(), None
        if text == b"(":
            opened.append(len(out))
        elif text == b")":
            closed = opened.pop()
        out.append(text)
    return b"".join(out)
