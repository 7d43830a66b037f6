"""The conditions that a question puts on records: values of theirs that it names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rlm_rag.engine.question import negates

MOST_CONDITIONS = 3
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


def conditions(rows: Sequence[Mapping[str, Any]], question: str) -> dict[str, list[str]]:
    """Return the columns, and of each the values, that `filtered` goes by."""
    named = {} if negates(question) else _named(rows, question)
    return named if len(named) <= MOST_CONDITIONS else {}


def lacks_a_value(rows: Sequence[Mapping[str, Any]], question: str) -> bool:
    """Whether a question names a column with values of a kind, and none of those in `rows`.

    It may mean one that only later rows have, or none; what it asks `which` of, it gives none of.
    """
    asked = _plain(question)
    values = conditions(rows, question)
    forms = {name: [_plain(name), _plain(f"{name}s")] for name in _kinds(rows)}
    return any(
        name not in values
        and any(form in asked for form in each)
        and not any(f" {word}{form}" in asked for word in _ASKS for form in each)
        for name, each in forms.items()
    )


def _condition(column: str, values: Sequence[str]) -> str:
    is_one = len(values) == 1
    return f"r.get({column!r}) == {values[0]!r}" if is_one else f"r.get({column!r}) in {values!r}"


def _named(rows: Sequence[Mapping[str, Any]], question: str) -> dict[str, list[str]]:
    """Return the values of each column that a question names, in the order of the columns."""
    asked = _plain(question)
    columns = {name.casefold() for row in rows for name in row}
    found: dict[str, list[str]] = {}
    for name, counts in _kinds(rows).items():
        named = [
            value
            for value in counts
            if value.casefold() not in columns
            and (_plain(value) in asked or _plain(f"{value}s") in asked)
        ]
        if named:
            found[name] = named
    return found


def _kinds(rows: Sequence[Mapping[str, Any]]) -> dict[str, Counter[str]]:
    """Return the columns whose values come again in other rows, and how often each does."""
    values: dict[str, Counter[str]] = {}
    for row in rows:
        for name, value in row.items():
            if isinstance(value, str) and _LEAST_CHARS <= len(value) <= _MOST_CHARS:
                values.setdefault(name, Counter())[value] += 1
    return {name: counts for name, counts in values.items() if 2 * len(counts) <= counts.total()}


def _plain(text: str) -> str:
    """Return the words of a text as another text can be looked for in it, whole words alone."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "
