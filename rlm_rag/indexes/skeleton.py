"""One definition or heading of a document, and its form between processes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

MAX_SIGNATURE_CHARS = 200
MAX_DOC_CHARS = 120
# What is left out first where there is little room.
MINOR_KINDS = frozenset(("field", "property", "variable", "enumerator"))


@dataclass(frozen=True, slots=True)
class Definition:
    """A named place in a document.

    `line` is the name's, `end_line` that of its end (both 1-based); `parents` are the names that
    it belongs to, outermost first: what encloses it, and the class that it names itself, as
    `Foo` of `Foo::run`. `depth` counts only what encloses it. `doc` is the first line of its
    documentation, or empty.
    """

    line: int
    kind: str
    name: str
    signature: str
    parents: tuple[str, ...] = ()
    depth: int = 0
    end_line: int = 0
    doc: str = ""


Row = tuple[int, str, str, str, tuple[str, ...], int, int, str]
"""The values of a definition, in the order of its fields: what JSON carries of it."""

_values = attrgetter(*Definition.__slots__)
_FIELDS = len(Definition.__slots__)
_NAMES = frozenset((str,))


def to_rows(definitions: Iterable[Definition]) -> list[Row]:
    """Return plain values that JSON can carry."""
    # `dataclasses.astuple` copies every value, which takes as long as finding them did.
    return [_values(one) for one in definitions]


def from_rows(rows: Any) -> tuple[Definition, ...]:
    """Return the definitions that `to_rows` gave.

    Raises:
        ValueError: they are not what it gives.
    """
    if not isinstance(rows, list):
        raise ValueError("definitions are a list")
    return tuple(_from_row(row) for row in rows)


def _from_row(row: Any) -> Definition:
    # Written out: every definition of a corpus passes here, and `all` takes twice as long.
    if type(row) is not list or len(row) != _FIELDS:
        raise ValueError("a definition has as many values as fields")
    line, kind, name, signature, parents, depth, end_line, doc = row
    if not (type(line) is type(depth) is type(end_line) is int) or min(line, depth, end_line) < 0:
        raise ValueError("a definition's lines and depth are whole numbers")
    if type(parents) is not list or set(map(type, parents)) - _NAMES:
        raise ValueError("a definition's parents are names")
    if not (type(kind) is type(name) is type(signature) is type(doc) is str):
        raise ValueError("a definition's kind, name, signature and doc are texts")
    return Definition(line, kind, name, signature, tuple(parents), depth, end_line, doc)
