"""Where names are defined in a document, found lexically."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from rlm_rag.globs import without_part
from rlm_rag.indexes.forms import Language
from rlm_rag.indexes.headings import headings
from rlm_rag.indexes.keys import form_of, keys
from rlm_rag.indexes.languages import cell_language, language_of, markup_of
from rlm_rag.indexes.script_rows import GENERIC
from rlm_rag.indexes.skeleton import MAX_SIGNATURE_CHARS, Definition
from rlm_rag.lines import count_lines, line_starts

# How far a parameter list, and what stands between it and the body, may reach.
_PARAMETERS_BYTES = 4000
_BEFORE_BODY_BYTES = 400
# Of lists as people write them none has as many; where each line opens one, all are tried.
_MOST_PARENTHESES = 200
_SIGNATURE_BYTES = 1000
_TAB_COLUMNS = 4

_HOLDS_METHODS = frozenset(
    ("class", "struct", "interface", "trait", "impl", "object", "enum", "record")
)

_PARENTHESES = re.compile(rb"[()]")
_AFTER_PARAMETERS = re.compile(rb"[{;=})]")
_TYPE_NEXT = re.compile(rb"\s{0,200}(?::(?!:)|(?:\w{1,20}\s{1,20}){0,4}->)")
_AFTER_COLON = re.compile(rb"[{;]")
_NOT_LINE_FEED = re.compile(rb"[^\n]+")
_SPACES = re.compile(r"\s+")


class Match(NamedTuple):
    """A definition as the scan sees it: `offset` is its name's, in bytes of the scanned text."""

    offset: int
    indent: int
    kind: str
    name: bytes


def scan(data: bytes, language: Language, *, variables: bool = True) -> Iterator[Match]:
    """Yield the definitions of a text as they come, strings and comments not masked.

    `data` must be as `scannable` returns it; offsets are into that. Leaving out `variables` is
    several times as fast.
    """
    pattern = language.pattern if variables else language.lasting_pattern
    for found in pattern.finditer(data):
        match = _match(data, found, language)
        if match is not None:
            yield match


def definition_at(data: bytes, line_feed: int, language: Language) -> Match | None:
    """Return the definition, but no variable, that the line after a line feed begins.

    `data` must be as `scannable` returns it.
    """
    found = language.lasting_pattern.match(data, line_feed)
    return None if found is None else _match(data, found, language)


def indent_columns(indent: bytes) -> int:
    """Return how many columns the space before a line takes."""
    return len(indent) + (_TAB_COLUMNS - 1) * indent.count(b"\t")


def _match(data: bytes, found: re.Match[bytes], language: Language) -> Match | None:
    group = found.lastgroup
    if group is None:
        return None
    rule = language.rules[int(group[1:])]
    # The indent is the first group.
    indent, name = found.group(1, group)
    kind = rule.kind
    if rule.ends:
        end = _end_of(data, found.end())
        if rule.declares and end == b";" and not indent:
            kind = "declaration"
        elif not end or end not in rule.ends:
            return None
    columns = indent_columns(indent) if indent else 0
    return Match(found.start(group), columns, kind, name)


def scannable(data: bytes) -> bytes:
    """Return a text as `scan` takes it: a line feed before it, and one at each line's end."""
    if b"\r" in data and b"\n" not in data:
        data = data.replace(b"\r", b"\n")
    return b"\n" + data


def masked(data: bytes, language: Language) -> bytes:
    """Blank the strings and comments of a text, keeping its length and its lines."""
    return language.mask_pattern.sub(
        lambda found: _NOT_LINE_FEED.sub(lambda run: b" " * len(run[0]), found[0]), data
    )


def definitions(path: str, data: bytes) -> list[Definition]:
    """Return the definitions, or the headings, of a document, in order.

    Each is taken to go on until the next of its depth, or of a lesser one, begins.
    """
    markup = heading_markup(path, data)
    code_cell = cell_language(path, data)
    form = _form_of(path)
    if markup is not None:
        found = [
            Definition(one.line, "heading", one.title, one.title, one.parents, len(one.parents))
            for one in headings(data, markup)
        ]
    elif code_cell is not None:
        found = _nested(data, code_cell)
    elif form is not None:
        found = keys(data, form)
    else:
        found = _nested(data, language_of(path, data) or GENERIC)
    return _ended(found, count_lines(data))


def heading_markup(path: str, data: bytes) -> str | None:
    """Return the markup of a document whose definitions are its headings, None of any other."""
    if cell_language(path, data) is not None or _form_of(path) is not None:
        return None
    return markup_of(path)


def _form_of(path: str) -> str | None:
    return form_of(without_part(path).rpartition("/")[2])


def _ended(found: list[Definition], last_line: int) -> list[Definition]:
    ended = found.copy()
    following: list[tuple[int, int]] = []
    for at in range(len(found) - 1, -1, -1):
        one = found[at]
        while following and following[-1][0] > one.depth:
            following.pop()
        end = following[-1][1] - 1 if following else last_line
        ended[at] = replace(one, end_line=max(one.line, end))
        following.append((one.depth, one.line))
    return ended


def _nested(data: bytes, language: Language) -> list[Definition]:
    text = scannable(data)
    blanked = masked(text, language)
    starts = line_starts(text)
    found: list[Definition] = []
    enclosing: list[tuple[int, str, str]] = []
    for match in scan(blanked, language):
        while enclosing and enclosing[-1][0] >= match.indent:
            enclosing.pop()
        name = match.name.decode("utf-8", "replace")
        line = bisect_right(starts, match.offset) - 1
        signature = _signature(text, blanked, starts[line], match.offset + len(match.name))
        parents = tuple(parent for _, parent, _ in enclosing)
        kind = match.kind
        if kind == "function" and enclosing and enclosing[-1][2] in _HOLDS_METHODS:
            kind = "method"
        found.append(Definition(line, kind, name, signature, parents, len(parents)))
        enclosing.append((match.indent, name, kind))
    return found


def _end_of(data: bytes, opening: int) -> bytes:
    """Return what ends the form whose parameters open there: `{`, `;`, or nothing known."""
    after = _closing(data, opening)
    if after < 0:
        return b""
    # A constructor's initialisers and a return type come after a colon or an arrow, and may hold
    # calls.
    upcoming = _AFTER_COLON if _TYPE_NEXT.match(data, after) else _AFTER_PARAMETERS
    end = upcoming.search(data, after, after + _BEFORE_BODY_BYTES)
    if end is None:
        return b""
    is_expression_body = data.startswith(b"=>", end.start())
    return b"{" if is_expression_body else end[0]


def _closing(data: bytes, opening: int) -> int:
    """Return the offset after the parenthesis that closes the one at `opening`, or -1."""
    # Where none closes, as in a hostile text, those that open need no count.
    if data.find(b")", opening, opening + _PARAMETERS_BYTES) < 0:
        return -1
    depth = 0
    found = _PARENTHESES.finditer(data, opening, opening + _PARAMETERS_BYTES)
    for match in islice(found, _MOST_PARENTHESES):
        depth += 1 if match[0] == b"(" else -1
        if depth == 0:
            return match.end()
    return -1


def _signature(text: bytes, blanked: bytes, start: int, name_end: int) -> str:
    """Return a definition's first line, with the rest of its parameter list, on one line."""
    line_end = text.find(b"\n", name_end)
    end = line_end if line_end >= 0 else len(text)
    opening = blanked.find(b"(", name_end, end)
    if opening >= 0:
        closing = _closing(blanked, opening)
        if closing > end:
            line_end = text.find(b"\n", closing)
            end = line_end if line_end >= 0 else len(text)
    end = min(end, start + _SIGNATURE_BYTES)
    shown = _SPACES.sub(" ", text[start:end].decode("utf-8", "replace")).strip()
    shown = shown.removesuffix("{").rstrip()
    return shown if len(shown) <= MAX_SIGNATURE_CHARS else shown[: MAX_SIGNATURE_CHARS - 1] + "…"
