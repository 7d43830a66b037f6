"""Markdown as documents are written in: tables, lists and headings on lines of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence

MAX_COLUMNS = 16_384
"""As many as a sheet of Excel has."""

_FENCES = re.compile("`{3,}")


def one_line(text: str) -> str:
    """Fold every run of white space into one space."""
    return " ".join(text.split())


def raised(text: str) -> str:
    """Mark text that stands above the line, so that a power does not become more digits."""
    return f"^{text}" if text.strip() else text


def heading(level: int, text: str) -> str:
    """Return a heading of level 1 to 6; deeper ones are of level 6."""
    title = one_line(text)
    return f"{'#' * min(max(level, 1), 6)} {title}" if title else ""


def fence_of(text: str) -> str:
    """Return a fence that is longer than any within the text."""
    return "`" * (1 + max(map(len, _FENCES.findall(text)), default=2))


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose first row is its head; empty where no cell has text.

    Rows may differ in length; what is empty at the end of a row, or of the table, is left out.
    """
    kept = [[_cell(value) for value in row[: _used(row)]] for row in rows]
    while kept and not kept[-1]:
        kept.pop()
    width = max(map(len, kept), default=0)
    if width == 0:
        return ""
    head = _row([*kept[0], *[""] * (width - len(kept[0]))])
    return "\n".join((head, _row(["---"] * width), *(_row(row or [""]) for row in kept[1:])))


def grid(rows: Sequence[tuple[int, Sequence[str]]]) -> str:
    """Return a sheet's rows as a table with the letters of its columns and its row numbers.

    Each row comes with its number in the sheet, so that a cell is found there as `B7`; rows
    and columns without any text are left out.
    """
    columns = sorted({at for _, row in rows for at, value in enumerate(row) if value.strip()})
    if not columns:
        return ""
    lines = [["row", *map(column_letters, columns)]]
    for number, row in rows:
        cells = [row[at] if at < len(row) else "" for at in columns]
        if any(map(str.strip, cells)):
            lines.append([str(number), *cells])
    return table(lines)


def column_letters(column: int) -> str:
    """Return the letters of a column that is numbered from 0: `A`, `Z`, `AA`."""
    letters = ""
    column += 1
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(65 + letter) + letters
    return letters


def _cell(value: str) -> str:
    return one_line(value).replace("|", "\\|")


def _used(row: Sequence[str]) -> int:
    """Return how many cells of a row there are up to the last that has text."""
    for length in range(min(len(row), MAX_COLUMNS), 0, -1):
        if row[length - 1].strip():
            return length
    return 0


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
