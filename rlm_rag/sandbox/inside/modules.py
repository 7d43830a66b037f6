"""Modules of the standard library that blocks use without having imported them."""

from __future__ import annotations

import builtins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType
    from typing import Any

_MODULES = frozenset(
    {"collections", "csv", "datetime", "itertools", "json", "math", "re", "statistics"}
)
_OF_COLLECTIONS = frozenset({"Counter", "defaultdict"})


def provide(code: CodeType, source: str, names: dict[str, Any]) -> None:
    """Import what a block names of them, where the name means nothing else.

    Small models write the line that uses `csv` and forget the one that imports it, in any
    number of turns.
    """
    for name in _named(code):
        if name in names or hasattr(builtins, name):
            continue
        if name in _MODULES and _stands_alone(name, source):
            names[name] = __import__(name)
        elif name in _OF_COLLECTIONS and _stands_alone(name, source):
            names[name] = getattr(__import__("collections"), name)


def _stands_alone(name: str, source: str) -> bool:
    """Whether a name is not only that of an attribute: code objects list those, too."""
    if f".{name}" not in source:
        return True
    from re import search

    return search(rf"(?<![\w.]){name}\b", source) is not None


def _named(code: CodeType) -> Iterator[str]:
    pending = [code]
    while pending:
        part = pending.pop()
        yield from part.co_names
        pending += (constant for constant in part.co_consts if isinstance(constant, type(code)))
