"""The conditions that a question puts on records: values of theirs that it names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rlm_rag.engine.question import negates

Column = tuple[str, ...]
"""The name of a column, and behind it that of a value within its cells, where those are dicts."""

MOST_CONDITIONS = 3
_MOST_LEVELS = 20
_LEAST_CHARS = 3
_MOST_CHARS = 60
_WORD = re.compile(r"\w+")
_ASKS = ("which", "what", "different", "distinct", "unique")


def filtered(rows: Sequence[Mapping[str, Any]], question: str, name: str) -> str:
    """Return an expression for the records of the document `name` that a question is about.

    A column counts where values of it come again in other rows, as those of a kind do: the 1.5B
    took the largest of all records where the question named one of their places. Where a question
    leaves out what it names, it is about all of them.
    """
    every = f"records({name!r})"
    named = conditions(rows, question)
    if not named:
        return every
    found = (_condition(column, values) for column, values in named.items())
    return f"[r for r in {every} if {' and '.join(found)}]"


def conditions(rows: Sequence[Mapping[str, Any]], question: str) -> dict[Column, list[str]]:
    """Return the columns, and of each the values, that `filtered` goes by."""
    named = {} if negates(question) else _named(rows, question)
    return named if len(named) <= MOST_CONDITIONS else {}


def lacks_a_value(rows: Sequence[Mapping[str, Any]], question: str) -> bool:
    """Whether a question names a column with values of a kind, and none of those in `rows`.

    It may mean one that only later rows have, or none; what it asks `which` of, it gives none of.
    """
    asked = _plain(question)
    values = conditions(rows, question)
    forms = {each: [_plain(each[-1]), _plain(f"{each[-1]}s")] for each in _kinds(rows)}
    return any(
        name not in values
        and any(form in asked for form in each)
        and not any(f" {word}{form}" in asked for word in _ASKS for form in each)
        for name, each in forms.items()
    )


def out_of_reach(rows: Sequence[Mapping[str, Any]], question: str) -> tuple[str, str] | None:
    """Return a value that a question names where `conditions` cannot go, and its column.

    It stands in a list, or deeper than one level down.
    """
    asked = _plain(question)
    reached = {value for values in conditions(rows, question).values() for value in values}
    for row in rows:
        for name, cell in row.items():
            for value in _out_of_reach(cell):
                if value not in reached and _is_named(value, asked):
                    return value, name
    return None


def _out_of_reach(cell: Any) -> Iterator[str]:
    if isinstance(cell, dict):
        cell = [each for each in cell.values() if not isinstance(each, str)]
    return iter(()) if isinstance(cell, str) else _texts(cell)


def _texts(value: Any, *, levels: int = _MOST_LEVELS) -> Iterator[str]:
    """Return the texts of a value of JSON as long as those of a condition."""
    if isinstance(value, str):
        if _LEAST_CHARS <= len(value) <= _MOST_CHARS:
            yield value
    elif isinstance(value, (dict, list)) and levels:
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each, levels=levels - 1)


def _condition(column: Column, values: Sequence[str]) -> str:
    is_one = len(values) == 1
    against = f"== {values[0]!r}" if is_one else f"in {values!r}"
    if len(column) == 1:
        return f"r.get({column[0]!r}) {against}"
    outer, inner = column
    return f"isinstance(r.get({outer!r}), dict) and r[{outer!r}].get({inner!r}) {against}"


def _named(rows: Sequence[Mapping[str, Any]], question: str) -> dict[Column, list[str]]:
    """Return the values of each column that a question names, in the order of the columns."""
    asked = _plain(question)
    columns = {name.casefold() for row in rows for column, _ in _cells(row) for name in column}
    found: dict[Column, list[str]] = {}
    for name, counts in _kinds(rows).items():
        named = [
            value for value in counts if value.casefold() not in columns and _is_named(value, asked)
        ]
        if named:
            found[name] = named
    return found


def _cells(row: Mapping[str, Any]) -> Iterator[tuple[Column, Any]]:
    """Return the cells of a row; of one that is a dict, those within it too."""
    for name, value in row.items():
        yield (name,), value
        if isinstance(value, dict):
            for inner, each in value.items():
                yield (name, inner), each


def _is_named(value: str, asked: str) -> bool:
    return _plain(value) in asked or _plain(f"{value}s") in asked


def _kinds(rows: Sequence[Mapping[str, Any]]) -> dict[Column, Counter[str]]:
    """Return the columns whose values come again in other rows, and how often each does."""
    values: dict[Column, Counter[str]] = {}
    for row in rows:
        for name, value in _cells(row):
            if isinstance(value, str) and _LEAST_CHARS <= len(value) <= _MOST_CHARS:
                values.setdefault(name, Counter())[value] += 1
    return {name: counts for name, counts in values.items() if 2 * len(counts) <= counts.total()}


def _plain(text: str) -> str:
    """Return the words of a text as another text can be looked for in it, whole words alone."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "
