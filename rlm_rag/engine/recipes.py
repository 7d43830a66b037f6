"""What a question asks to be computed of records, as the Python that computes it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rlm_rag.engine.accounted import accounts_for
from rlm_rag.engine.conditions import conditions
from rlm_rag.engine.question import asks_how_many, bounds, negates

_MOST_ROWS = 200
_DISTINCT = re.compile(r"\b(?:distinct|different|unique)\b", re.IGNORECASE)
# What is said before `in total` is added up, else what comes behind the word.
_TOTAL = re.compile(r"\b(?:(in total|in all|altogether|add(?:ed)? up)|total|sum)\b", re.IGNORECASE)
_MEAN = re.compile(r"\b(?:average|mean)\b", re.IGNORECASE)
_MOST = re.compile(r"\bmost\b(?! (?:recent|expensive))", re.IGNORECASE)
_LARGEST = re.compile(
    r"\b(?:largest|highest|biggest|greatest|longest|maximum|max|latest|last|newest|oldest|heaviest"
    r"|most (?:recent|expensive))\b",
    re.IGNORECASE,
)
_SMALLEST = re.compile(
    r"\b(?:smallest|lowest|least|shortest|minimum|min|earliest|first|lightest|cheapest)\b",
    re.IGNORECASE,
)
_PLAIN_PATH = re.compile(r"[\w./-]+")


def recipe(rows: Sequence[Mapping[str, Any]], question: str, name: str) -> str:
    """Return what computes and gives the answer of a question about `rows`, "" where not plain.

    `name` is what `records` was asked for. The columns are those of the records that the question
    names. Of a largest amount, the 1.5B took the most frequent one, as the worked example of its
    prompt does of shops; where it only printed the result, it printed it again. A question with
    conditions that `rows` does not meet yet is not plain.
    """
    if negates(question) or bounds(question):
        return ""
    some = rows[:_MOST_ROWS]
    named = _named(list(dict.fromkeys(column for row in some for column in row)), question)
    amounts = [column for column in named if _has_numbers(some, column)]
    others = [column for column in named if column not in amounts]
    found = _of_amounts(some, amounts, named[0], question) if amounts else None
    if found is None and others:
        found = _of_groups(others[0], question)
    if found is None and asks_how_many(question):
        found = "n = len(rows)", "{n} of them"
    if found is None:
        return ""
    code, answer = found
    where = f" Computed in `{name}:1`." if _PLAIN_PATH.fullmatch(name) else ""
    return f'{code}\nFINAL(f"{answer}.{where}")'


def is_all_that_is_asked(
    rows: Sequence[Mapping[str, Any]], question: str, name: str, *, text: str = ""
) -> bool:
    """Whether the `recipe` for a question, of the rows that `filtered` gives, answers all of it.

    `text` is what stands around the records, of which words of the question may be.
    """
    some = rows[:_MOST_ROWS]
    columns = list(dict.fromkeys(column for row in some for column in row))
    values = conditions(rows, question)
    free = [column for column in _named(columns, question) if (column,) not in values]
    extreme = _LARGEST.search(question) or _SMALLEST.search(question)
    is_odd = _DISTINCT.search(question) and not free
    if len(free) > 2 or is_odd or (extreme and re.search(r"\bhow many\b", question, re.I)):
        return False
    named = [value for each in values.values() for value in each]
    plain = _DISTINCT.sub(" ", question)
    for value in named:
        # What a value is of: in a log without names, nothing else tells.
        plain = re.sub(rf"\b(?:the|have|has) [a-z]+ (?i:{re.escape(value)})\b", " ", plain)
    known = [name, *free, *(part for column in values for part in column), *named]
    return accounts_for(plain, names=known, which=free[0] if free else None, text=text)


def _of_groups(column: str, question: str) -> tuple[str, str] | None:
    if _DISTINCT.search(question):
        return f"n = len({{r[{column!r}] for r in rows}})", "{n} of them"
    if _MOST.search(question):
        counted = f"Counter(r[{column!r}] for r in rows).most_common(1)[0]"
        return f"most, n = {counted}", "{most}, with {n} of them"
    return None


def _of_amounts(
    rows: Sequence[Mapping[str, Any]], amounts: Sequence[str], asked: str, question: str
) -> tuple[str, str] | None:
    for words in (_TOTAL, _MEAN, _LARGEST, _SMALLEST):
        if said := words.search(question):
            column = next(iter(_named(amounts, _about(said, question))), amounts[0])
            return _of_amount(rows, column, asked, words)
    return None


def _about(said: re.Match[str], question: str) -> str:
    """Return the part of a question that tells which amount a word such as `largest` is about.

    In `the id with the largest amount` that comes behind the word; in `visitors in total, over all
    the years` before it.
    """
    return question[: said.start()] if said.lastindex else question[said.end() :]


def _of_amount(
    rows: Sequence[Mapping[str, Any]], column: str, asked: str, words: re.Pattern[str]
) -> tuple[str, str]:
    cell = f"r[{column!r}]"
    have = "rows"
    if any(row.get(column) is None for row in rows):
        have = f"[r for r in rows if r.get({column!r}) is not None]"
    if words is _TOTAL:
        return f"total = sum({cell} for r in {have})", "{total} in all"
    if words is _MEAN:
        return f"mean = sum({cell} for r in {have}) / len({have})", "{mean} on average"
    best = f"best = {'max' if words is _LARGEST else 'min'}({have}, key=lambda r: {cell})"
    shown = f"{{best[{asked!r}]}}" if asked.isidentifier() else "{best}"
    return best, shown


def _named(columns: Iterable[str], question: str) -> list[str]:
    """Return the columns that a question names, in its order; a plural is the same name."""
    words = re.findall(r"\w+", question.casefold())
    places = {word: place for place, word in reversed(list(enumerate(words)))}
    found = []
    for column in columns:
        name = column.casefold()
        at = [places[form] for form in (name, f"{name}s", name.removesuffix("s")) if form in places]
        if at:
            found.append((min(at), column))
    return [column for _, column in sorted(found)]


def _has_numbers(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    cells = [row[column] for row in rows if row.get(column) is not None]
    return bool(cells) and all(isinstance(cell, (int, float)) for cell in cells)
