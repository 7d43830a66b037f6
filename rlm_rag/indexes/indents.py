"""Which bodies of functions an outline does not need, where indents tell what is a body."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from rlm_rag.indexes.atomic import compiled
from rlm_rag.indexes.bodies import LEAST_BYTES, LEAST_SHARE, Span

# Few functions have as many strings that go on at the margin.
_MOST_PARTS = 20
_QUOTES = (b'"""', b"'''")

_DEFINES = compiled(rb"\n([ \t\f]*+)(?:(?:async[ \t]++)?+(def)|class)[ \t]++(?=\w)")
_WORDS = rb"\"(?:[^\"\\\n]|\\.){0,200}+\"|'(?:[^'\\\n]|\\.){0,200}+'|#[^\n]*+"
_FLAT = rb"\((?:[^()\"'#]++|%b)*+\)" % _WORDS
_DEEP = rb"\((?:[^()\"'#]++|%b|%b)*+\)" % (_WORDS, _FLAT)
_PARAMETERS = rb"\((?:[^()\"'#]++|%b|%b)*+\)" % (_WORDS, _DEEP)
_BLANK = rb"[ \t\f\r]*+(?:#[^\n]*+)?+\n"
# From the name of a function to its body; the group is what the body's first line begins with.
_HEADER = compiled(
    rb"\w++[ \t]*+(?:\[[^()\"'#:\n]{0,200}+\][ \t]*+)?+%b(?:[ \t]*+->(?:[^:\"'#]|%b){0,500}+)?+"
    rb"[ \t]*+:%b(?:%b)*+([ \t]++)(?=[^\s#])" % (_PARAMETERS, _WORDS, _BLANK, _BLANK)
)
# A type may be named in a body, where one simple statement may stand behind another.
_NAMES_TYPE = compiled(rb"\btype[ \t]++\w++[ \t]*+[=\[]")
_STRINGS = compiled(
    rb'"""[^"\\]*+(?:(?:\\[\s\S]|"(?!""))[^"\\]*+)*+"""'
    rb"|'''[^'\\]*+(?:(?:\\[\s\S]|'(?!''))[^'\\]*+)*+'''"
    rb"|\"[^\"\\\n]*+(?:\\[\s\S][^\"\\\n]*+)*+\"|'[^'\\\n]*+(?:\\[\s\S][^'\\\n]*+)*+'|#[^\n]*+"
)


@dataclass(frozen=True, slots=True)
class Indents:
    """What Python tells bodies by: the lines that begin as the first of the body does.

    In the place of each stands `joint`, since no function is without a body.
    """

    joint: bytes = b"0"
    least_share: float = LEAST_SHARE

    def bodies(self, text: bytes) -> list[Span]:
        """Return the bodies of the functions in which nothing is defined."""
        return list(_bodies(text))


def _bodies(text: bytes) -> Iterator[Span]:
    # What the first line defines stays: no line feed is before it.
    heads = [(one.start(), one[1], one.end(), one[2]) for one in _DEFINES.finditer(text)]
    following: tuple[int, bytes, int, bytes | None] = (len(text), b"", 0, None)
    for (_, indent, name, word), (limit, next_indent, *_) in pairwise([*heads, following]):
        # A class, or something is defined in it.
        if word is None or len(next_indent) > len(indent):
            continue
        head = _HEADER.match(text, name, limit)
        if head is None:
            continue
        margin, start = head[1], head.end()
        if len(margin) <= len(indent) or not margin.startswith(indent):
            continue
        end = _end(text, start, limit, margin)
        if end - start >= LEAST_BYTES and not _NAMES_TYPE.search(text, start, end):
            yield start, end


def _end(text: bytes, start: int, limit: int, margin: bytes) -> int:
    """Return where the lines with a margin end; 0 where that is unsure."""
    lines, at = _lines(margin), start
    for _ in range(_MOST_PARTS):
        match = lines.match(text, at, limit)
        end = match.end() if match else 0
        at = end
        if any(text.count(quotes, start, end) % 2 for quotes in _QUOTES):
            at = _behind_string(text, start, limit, end)
        if at == end:
            return 0 if text.endswith(b"\\", start, end) else end
    return 0


def _behind_string(text: bytes, start: int, limit: int, at: int) -> int:
    """Return where the string ends that an offset lies in; the offset where it lies in none."""
    for one in _STRINGS.finditer(text, start, limit):
        if one.end() > at:
            return one.end() if one.start() < at else at
    return at


@lru_cache(maxsize=100)
def _lines(margin: bytes) -> re.Pattern[bytes]:
    return compiled(rb"[^\n]*+(?:\n(?:%b)*+%b[^\n]*+)*+" % (_BLANK, re.escape(margin)))
