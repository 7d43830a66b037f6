"""From the places of definitions to their rows: what encloses each, and what it says of itself."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, count
from operator import add

from rlm_rag.indexes.grammars import Grammar
from rlm_rag.indexes.places import Place, told
from rlm_rag.indexes.signatures import (
    begins_line,
    doc_above,
    doc_inside,
    doc_of_module,
    doc_quoted,
    signature,
)
from rlm_rag.indexes.skeleton import Row

STATE = frozenset(("variable", "constant", "field", "property"))

_RUNS_CODE = frozenset(("function", "method", "macro"))
_HOLDS_METHODS = frozenset(
    (
        *("class", "struct", "interface", "trait", "impl", "object", "enum", "record", "protocol"),
        "extension",
    )
)
_SMALL = STATE | {"enumerator"}
# Of these the name is the signature: several share what they stand for.
_NAMED_ALONE = frozenset(("rule",))
# Inside a function these are its own affair.
_LOCAL = frozenset(("variable", "constant", "property", "declaration"))
_MEMBERS = {"function": "method", "declaration": "method", "variable": "field"}
_UNDOCUMENTED = frozenset(("variable", "field", "enumerator", "heading", "key"))
_QUALIFIED = frozenset(("function", "method", "class", "struct", "variable", "constant", "type"))
_QUALIFIER = re.compile(r"(?P<scope>.+?)(?:::|\.|:)(?P<name>operator\b.*|~?\w+[?!=]?)", re.DOTALL)
# The innermost names that lead to a definition: a hostile text nests thousands, each within all.
MOST_PARENTS = 32
_SEPARATOR = re.compile(r"::|\.|:")


@dataclass(frozen=True, slots=True)
class Source:
    """A text with its lines, without their line feeds, and the offset where each starts."""

    text: bytes
    lines: Sequence[bytes]
    starts: Sequence[int]
    grammar: Grammar

    def row_at(self, offset: int) -> int:
        """Return the row of an offset, counted from 0."""
        # Points of the tree would tell rows as well, and take three times as long to make.
        return bisect_right(self.starts, offset) - 1

    def point(self, offset: int) -> tuple[int, int]:
        """Return the row and the column of an offset, both in bytes and counted from 0."""
        row = self.row_at(offset)
        return row, offset - self.starts[row]


def starts_of(lines: Sequence[bytes]) -> list[int]:
    """Return where each line starts; what is behind the last line feed is none, if empty."""
    # A list, since an array makes a number anew whenever it is asked for one.
    starts = list(map(add, accumulate(map(len, lines), initial=0), count()))
    return starts[: -1 if lines[-1] else -2]


def without_clauses(places: Sequence[Place], text: bytes) -> list[Place]:
    """Join the clauses of a function, which follow each other, to the first of them."""
    kept: list[Place] = []
    for one in places:
        told(one, text)
        last = kept[-1] if kept else None
        if last and last.end <= one.start and _identity(last) == _identity(one):
            last.end = one.end
        else:
            kept.append(one)
    return kept


def _identity(one: Place) -> tuple[str, str, int]:
    return one.kind, one.name, one.parameters


def nested(places: Sequence[Place], source: Source) -> Iterator[Row]:
    """Yield a row for each place that counts; `places` are in order, the outer ones first."""
    enclosing: list[Place] = []
    # Beside each that encloses: the names that lead to it, its own the last.
    paths: list[tuple[str, ...]] = [()]
    depths = [0]
    stated: set[tuple[int, str]] = set()
    for one in places:
        while enclosing and (enclosing[-1].end <= one.start or _same(enclosing[-1], one)):
            enclosing.pop()
            paths.pop()
            depths.pop()
        depth = len(enclosing)
        if one.apart:
            first, behind = one.apart
            while depth and first <= enclosing[depth - 1].start < behind:
                depth -= 1
        outer = enclosing[depth - 1] if depth else None
        if outer and outer.kind in _RUNS_CODE and one.kind in _LOCAL:
            continue
        if not told(one, source.text).name:
            continue
        if one.kind in STATE:
            # Set again, it is still the same.
            place = (outer.start if outer else -1, one.name)
            if place in stated:
                continue
            stated.add(place)
        _qualify(one, source.grammar)
        kind = one.kind
        if one.scope or (outer and outer.kind in _HOLDS_METHODS):
            kind = _MEMBERS.get(kind, kind)
        yield _row(one, kind, paths[depth], depths[depth], source)
        enclosing.append(one)
        depths.append(depths[depth] + 1)
        paths.append((*paths[depth], one.name)[-MOST_PARENTS:])


def _row(one: Place, kind: str, path: tuple[str, ...], depth: int, source: Source) -> Row:
    text, starts = source.text, source.starts
    row = source.row_at(one.name_start)
    parents = path
    if one.scope:
        parents += tuple(part for part in _SEPARATOR.split(one.scope) if part)
    if kind in _NAMED_ALONE:
        says = one.name
    else:
        last = max(one.end, one.name_end) if kind in _SMALL else -1
        says = signature(text, one.start, one.name_end, one.body, end=one.end, last=last)
    doc = "" if kind in _UNDOCUMENTED else _doc(one, row, source)
    end_line = bisect_right(starts, max(one.end - 1, one.name_start), row)
    return row + 1, kind, one.name, says, parents, depth, end_line, doc


def _doc(one: Place, row: int, source: Source) -> str:
    text, lines, grammar = source.text, source.lines, source.grammar
    if grammar.inside:
        return doc_inside(text, one.body) if one.body >= 0 else ""
    first = bisect_right(source.starts, one.start, 0, row + 1) - 1
    said = ""
    if grammar.quoted:
        said = doc_of_module(text, one.body) if one.kind == "module" and one.body >= 0 else ""
        said = said or doc_quoted(lines, first, grammar.quoted)
    said = said or doc_above(lines, first, grammar.comment, tagged=grammar.tagged)
    # Asked last, since most have none.
    return said if said and begins_line(text, source.starts[first], one.start) else ""


def _same(one: Place, other: Place) -> bool:
    """Whether both are named by one declaration, as `a` and `b` of `let a, b`."""
    return (one.start, one.end) == (other.start, other.end)


def _qualify(one: Place, grammar: Grammar) -> None:
    if grammar.dotted or one.name.isidentifier() or one.kind not in _QUALIFIED:
        return
    if match := _QUALIFIER.fullmatch(one.name):
        one.scope = ".".join(part for part in (one.scope, match["scope"]) if part)
        one.name = match["name"]
