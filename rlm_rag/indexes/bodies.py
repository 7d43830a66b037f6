"""Which parts of a text an outline does not need: what stands in functions and defines nothing.

Bodies of functions are half of most texts, define little, and take a grammar as long as the rest.
Where they begin and end, brackets and the words of a language tell in a tenth of that time. Where
these are odd, nothing is left out; what is left out wrongly shows in the tree, which then has
brackets too many. Patterns are possessive or bounded: what a text takes grows with its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from rlm_rag.indexes.atomic import compiled

# To leave less out takes longer than to read it.
LEAST_BYTES = 16
# Of a text: to leave less out gains less than it takes to place what is found.
LEAST_SHARE = 0.15
# In a longer line, where it begins is not looked for again and again.
_LINE_BYTES = 300
# Of what people write, nothing is nested as deep by far.
_MOST_DEPTH = 1_000
_BRACE, _BRACKET = ord("{"), ord(")")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Braces:
    """What a language with braces tells bodies by.

    Each pattern begins with one character, by which it is found fast. `skipped` are strings and
    comments, `unending` what begins one that has no end. `body` ends with the brace that opens a
    body. The braces that follow `function` are a body as well; those that follow `holder`, or
    that it ends with, hold definitions; in those that follow `whole` nothing is left out. Other
    braces are like those around them; with `loose`, those in none are bodies. A body stays that
    holds one of the three, or `other`, or `value`, or in which `within` is found. Of what `value`
    matches, what is behind its empty group is left out. Of a body that holds `kept` one stays,
    where a grammar takes empty braces for something else. Where there is `control`, a `body`
    behind brackets in another defines something, unless it is the first of a line that begins so.
    Less than `least_share` of a text is not worth leaving out.
    """

    skipped: tuple[bytes, ...]
    unending: tuple[bytes, ...] = (rb'"', rb"'", rb"/\*")
    body: tuple[bytes, ...] = ()
    function: tuple[bytes, ...] = ()
    holder: tuple[bytes, ...] = ()
    whole: tuple[bytes, ...] = ()
    other: tuple[bytes, ...] = ()
    value: tuple[bytes, ...] = ()
    within: bytes | None = None
    kept: bytes = b""
    control: bytes | None = None
    loose: bool = False
    least_share: float = LEAST_SHARE
    joint: bytes = b""

    def bodies(self, text: bytes) -> list[Span] | None:
        """Return what lies between the braces of each body; None where that is unsure."""
        tokens = _tokens(self)
        both = _between_braces(text, tokens)
        if both is None:
            return None
        found, values = both
        if found and tokens.within:
            found = [span for span in found if not tokens.within.search(text, span[0] - 1, span[1])]
        if found and self.kept:
            found = list(_but_one(text, found, self.kept))
        values = [span for span in values if span[1] - span[0] >= LEAST_BYTES]
        return sorted(found + values) if values else found


@dataclass(frozen=True, slots=True)
class Blocks:
    """What a language with `end` tells bodies by: the line that opens one, and indents.

    `opening` matches that line without its indent. Its body are the lines indented deeper, up to
    a line with the same indent that begins with `end`; it stays where `within` is found.
    """

    opening: bytes
    within: bytes
    least_share: float = LEAST_SHARE
    joint: bytes = b""

    def bodies(self, text: bytes) -> list[Span]:
        """Return the lines of each body."""
        block, within = _block(self)
        found: list[Span] = []
        match = block.search(text)
        while match:
            start, end = match.span("body")
            stays = end - start < LEAST_BYTES or within.search(text, start - 1, end)
            if not stays:
                found.append((start, end))
            match = block.search(text, (start if stays else end) - 1)
        return found


# What a pattern does, and what braces hold: plain numbers, which the loop over a text compares
# three times as fast as members of an enumeration.
_OPENS, _CLOSES, _DEFINES, _GIVES_UP, _IS_VALUE = range(5)
_DEFINITIONS, _CODE, _WHOLE = range(3)


@dataclass(frozen=True, slots=True)
class _Tokens:
    """`steps` has for each group of `pattern` what to do, and what the next braces hold."""

    pattern: re.Pattern[bytes]
    steps: Sequence[tuple[int, int | None]]
    within: re.Pattern[bytes] | None
    control: re.Pattern[bytes] | None
    outside: int


@cache
def _tokens(braces: Braces) -> _Tokens:
    marked = (
        (braces.body, _OPENS, _CODE),
        (braces.function, _DEFINES, _CODE),
        (braces.holder, _DEFINES, _DEFINITIONS),
        (braces.whole, _DEFINES, _WHOLE),
        (braces.other, _DEFINES, None),
        ((rb"\{",), _OPENS, None),
        ((rb"\}",), _CLOSES, None),
        (braces.unending, _GIVES_UP, None),
    )
    # The empty group stands last, so that each pattern still begins with its character.
    written = [
        *(*braces.skipped, *braces.value),
        *(one + rb"()" for some, _, _ in marked for one in some),
    ]
    values: list[tuple[int, int | None]] = [(_IS_VALUE, None)] * len(braces.value)
    steps = [(step, holds) for some, step, holds in marked for _ in some]
    return _Tokens(
        compiled(b"|".join(written)),
        [(_GIVES_UP, None), *values, *steps],
        compiled(braces.within) if braces.within else None,
        compiled(braces.control) if braces.control else None,
        _CODE if braces.loose else _DEFINITIONS,
    )


def _between_braces(text: bytes, tokens: _Tokens) -> tuple[list[Span], list[Span]] | None:
    """Return the bodies that define nothing, and the values; None where braces are odd."""
    found, values = list[Span](), list[Span]()
    around: list[tuple[int, int, int, bool]] = []
    holds, start, before, defines = tokens.outside, 0, 0, False
    announced: int | None = None
    steps, control = tokens.steps, tokens.control
    for match in tokens.pattern.finditer(text):
        if match.lastindex is None:
            continue
        step, what = steps[match.lastindex]
        if step == _CLOSES:
            if not around:
                return None
            end, outer = match.start(), around.pop()
            if holds == _CODE and not defines and end - start >= LEAST_BYTES:
                del found[before:]
                found.append((start, end))
            holds, start, before, defines = *outer[:3], defines or outer[3]
            continue
        if step == _IS_VALUE:
            values.append((match.start(match.lastindex), match.end()))
            defines = True
            continue
        if step == _GIVES_UP or len(around) == _MOST_DEPTH:
            return None
        if step == _DEFINES:
            defines, announced = True, announced if what is None else what
            if what is None or text[match.end() - 1] != _BRACE:
                continue
        elif control and what == holds == _CODE and text[match.start()] == _BRACKET:
            defines = defines or not _begins_line(control, text, match.start())
        around.append((holds, start, before, defines))
        if announced is not None:
            holds = announced
        elif what is not None and holds != _WHOLE:
            holds = what
        start, before, defines, announced = match.end(), len(found), False, None
    return None if around else (found, values)


def _begins_line(control: re.Pattern[bytes], text: bytes, at: int) -> bool:
    """Whether the braces behind an offset are the first of a line that begins with `control`."""
    line = text.rfind(b"\n", max(0, at - _LINE_BYTES), at) + 1
    begins = control.match(text, line) if line else None
    return begins is not None and text.find(b"{", begins.end(), at) < 0


def _but_one(text: bytes, spans: Iterable[Span], kept: bytes) -> Iterator[Span]:
    """Leave the last of `kept` in each body; values, behind `=`, are none."""
    for start, end in spans:
        last = text.rfind(kept, start, end)
        if last < 0 or text[start - 3 : start - 1].endswith((b"=", b"= ")):
            yield start, end
            continue
        behind = last + len(kept)
        yield start, last
        if text[behind:end].strip():
            yield behind, end


@cache
def _block(blocks: Blocks) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    # A bound on the lines bounds how often those are read that open blocks without an end.
    lines = rb"(?:(?P=indent)[ \t]++[^\n]*+\n|[ \t]*+\n){1,1000}+"
    block = rb"\n(?P<indent>[ \t]*+)(?:%b)\n(?P<body>%b)(?P=indent)end\b" % (blocks.opening, lines)
    return compiled(block), compiled(blocks.within)
