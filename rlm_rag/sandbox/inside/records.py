"""Documents that hold records, as lists of dicts: CSV, JSON, JSON lines, lines of named values."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from rlm_rag.sandbox.inside.documents import Documents

    Rows = list[dict[str, Any]]

_DELIMITERS = (",", "\t", ";", "|")
_PART_MARKS = ("||", " | ", "\t", "; ")
# So many lines tell whether a text has a form; where most of them have it, it is the form.
_LINES_TRIED = 20
_MOST = 0.8
_MOST_NAMED = 5
_MOST_DIGITS = 18
_MOST_HEAD_WORDS = 4
_KEPT_CHARS = 64_000_000
_INTEGER = r"-?(?:0|[1-9]\d*)"
_NAME = r"(?<!\S)([A-Za-z_][\w.-]*)="
_MARKUP = r"\s*<[A-Za-z?!]"
_NAMED = r"\s*([A-Za-z_][\w .-]{0,40}?)\s*:\s*(.*)"


class Records:
    """Reads the records of documents; those of the first `_KEPT_CHARS` of text are kept."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._kept: dict[str, tuple[str, Rows]] = {}
        self._kept_chars = 0

    def of(self, name: str | None) -> Rows:
        """Return the records of the documents that a path, the end of one or a glob means.

        Raises:
            ValueError: no document has such a path, or none of them holds records.
        """
        numbers = self._numbers(name)
        found: Rows = []
        without = []
        for number in numbers:
            path = self._documents.path(number)
            rows = self._rows(path, self._documents.content(number))
            if rows is None:
                without.append(path)
            else:
                found += rows
        if not found and without:
            named = ", ".join(without[:_MOST_NAMED])
            raise ValueError(
                f"no records that can be told apart in {named}: neither CSV, JSON, JSON lines nor "
                "lines of name=value; outline(path) lists the definitions of code, read(path) has "
                "the lines"
            )
        return found

    def _rows(self, path: str, text: str) -> Rows | None:
        kept = self._kept.get(path)
        if kept is None or kept[0] != text:
            rows = rows_of(text)
            if rows is None:
                return None
            kept = (text, rows)
            if self._kept_chars + len(text) <= _KEPT_CHARS:
                self._kept[path] = kept
                self._kept_chars += len(text)
        return [dict(row) for row in kept[1]]

    def _numbers(self, name: str | None) -> Sequence[int]:
        documents = self._documents
        every = range(len(documents))
        if name is None:
            return every
        plain = name.removeprefix("./")
        same = [n for n in every if documents.path(n) == plain]
        same = same or [n for n in every if documents.path(n).endswith(f"/{plain}")]
        same = same or _matching(documents, plain)
        if not same:
            raise ValueError(f"no document has the path {name!r}; context[0]['path'] is one")
        return same


def _matching(documents: Documents, glob: str) -> list[int]:
    from fnmatch import translate
    from re import compile

    matches = compile(translate(f"{glob}*" if glob.endswith("/") else glob)).match
    return [n for n in range(len(documents)) if matches(documents.path(n))]


def rows_of(text: str) -> Rows | None:
    """Return the records of a text, numbers as numbers; None where it has no known form."""
    for read in (_json, _pairs, _parts, _table, _tables_within):
        rows = read(text)
        if rows:
            return rows
    return None


def _lines(text: str) -> list[str]:
    """Return the lines of a text, which end where its document's do (see `rlm_rag.lines`)."""
    return text.split("\n" if "\n" in text else "\r")


def _json(text: str) -> Rows | None:
    import json

    if text.lstrip()[:1] not in ("{", "["):
        return None
    lines = [line for line in _lines(text) if line.strip()]
    try:
        rows = [json.loads(line) for line in lines]
        if len(rows) > 1 and all(isinstance(row, dict) for row in rows):
            return rows
        value = rows[0] if len(rows) == 1 else json.loads(text)
    except (ValueError, RecursionError):
        return _whole_json(text)
    return _dicts(value)


def _whole_json(text: str) -> Rows | None:
    import json

    try:
        return _dicts(json.loads(text))
    except (ValueError, RecursionError):
        return None


def _dicts(value: Any) -> Rows | None:
    """Return a list of dicts, or the one that a dict of few keys holds beside other things."""
    if isinstance(value, dict):
        lists = [each for each in value.values() if _dicts_of_list(each)]
        return _dicts_of_list(lists[0]) if len(lists) == 1 else None
    return _dicts_of_list(value)


def _dicts_of_list(value: Any) -> Rows | None:
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        return value
    return None


def _pairs(text: str) -> Rows | None:
    """Lines of `name=value`; the words before the first are `word1`, `word2` and on."""
    from re import compile, match

    if match(_MARKUP, text):
        return None
    name = compile(_NAME)

    def read(line: str) -> dict[str, Any] | None:
        found = []
        at = name.search(line)
        first = len(line) if at is None else at.start()
        while at is not None:
            # A value in quotes may hold what looks like the next name.
            closing = line.find('"', at.end() + 1) if line.startswith('"', at.end()) else -1
            after = name.search(line, max(closing, at.end()))
            value = line[at.end() : len(line) if after is None else after.start()]
            found.append((at[1], value.strip().strip('"')))
            at = after
        if len(found) < 2:
            return None
        row: dict[str, Any] = {f"word{n}": word for n, word in enumerate(line[:first].split(), 1)}
        return row | dict(found)

    return _by_lines(text, read)


def _parts(text: str) -> Rows | None:
    """Lines of `name: value` between marks, such as `Date: May 5 || User: 12`."""
    from re import compile

    named = compile(_NAMED)
    first = next((line for line in _lines(text) if line.strip()), "")
    mark = next((mark for mark in _PART_MARKS if mark in first), None)
    if mark is None:
        return None

    def read(line: str) -> dict[str, Any] | None:
        found = [named.fullmatch(part) for part in line.split(mark)]
        pairs = {each[1]: each[2].strip() for each in found if each is not None}
        return pairs if len(pairs) == len(found) >= 2 else None

    return _by_lines(text, read)


def _by_lines(text: str, read: Callable[[str], dict[str, Any] | None]) -> Rows | None:
    lines = [line for line in _lines(text) if line.strip()]
    tried = [read(line) for line in lines[:_LINES_TRIED]]
    if len(tried) - tried.count(None) < max(1, _MOST * len(tried)):
        return None
    return _with_numbers([row for line in lines if (row := read(line)) is not None])


def _table(text: str) -> Rows | None:
    """CSV with whatever delimiter its first lines agree on, or a table of Markdown."""
    from io import StringIO

    start = _lines(text[:200_000])[: _LINES_TRIED + 1]
    delimiter = _delimiter(start)
    if delimiter is None or not all(map(_may_head, start[0].strip(" |").split(delimiter))):
        return None
    rows = _cells(StringIO(text, newline=""), delimiter, len(text))
    if delimiter == "|" and start[0].lstrip().startswith("|"):
        rows = [[cell.strip() for cell in row[1:-1]] for row in rows]
        rows = [row for row in rows if not all(set(cell) <= {"-", ":"} for cell in row)]
    rows = [row for row in rows if row]
    if not rows:
        return None
    names = [name.strip().lstrip("\ufeff") for name in rows[0]]
    if names[0] and not any(names[1:]):
        return None  # Lines that end with the delimiter, such as those of a program.
    if len(set(names)) < len(names) or any(_is_number(name) for name in names):
        names = [f"column{n}" for n in range(1, len(names) + 1)]
    else:
        rows = rows[1:]
    return _with_numbers([dict(zip(names, row, strict=False)) for row in rows])


def _cells(lines: Iterable[str], delimiter: str, longest: int) -> list[list[str]]:
    """Return the rows of CSV, none where it cannot be read as such; no cell is over `longest`."""
    import csv

    limit = csv.field_size_limit()
    csv.field_size_limit(max(longest, limit))
    try:
        return list(csv.reader(lines, delimiter=delimiter))
    except csv.Error:
        return []
    finally:
        csv.field_size_limit(limit)


def _tables_within(text: str) -> Rows | None:
    """The rows of the tables of Markdown that stand among other text."""
    found: Rows = []
    table: list[str] = []
    for line in [*_lines(text), ""]:
        if line.lstrip().startswith("|"):
            table.append(line)
            continue
        if len(table) > 2 and set(table[1]) <= set("|-: "):
            found += _table("\n".join(table)) or []
        table = []
    return found or None


def _may_head(cell: str) -> bool:
    """Whether a cell may stand in the first row: lines of prose can have as many commas each."""
    bare = cell.strip(' "')
    return len(bare.split()) <= _MOST_HEAD_WORDS and not bare.endswith((".", "!", "?", ")", "{"))


def _delimiter(lines: Sequence[str]) -> str | None:
    best, most = None, 1
    longest = sum(map(len, lines))
    for delimiter in _DELIMITERS:
        counts = [len(row) for row in _cells(lines, delimiter, longest) if row]
        # The last line may be cut within a quoted cell.
        sure = counts[:-1] if len(counts) > 2 else counts
        if len(sure) > 1 and sure[0] > most and sure.count(sure[0]) >= _MOST * len(sure):
            best, most = delimiter, sure[0]
    return best


def _with_numbers(rows: Rows) -> Rows:
    """Make numbers of the columns that hold nothing else; an empty cell of one is None."""
    columns: dict[str, Rows] = {}
    for row in rows:
        for name in row:
            columns.setdefault(name, []).append(row)
    for name, holding in columns.items():
        kind = _kind([row[name].strip() for row in holding])
        if kind is None:
            continue
        for row in holding:
            cell = row[name].strip()
            row[name] = kind(cell) if cell else None
    return rows


def _kind(cells: Iterable[str]) -> Callable[[str], Any] | None:
    from re import compile

    integer = compile(_INTEGER).fullmatch
    number = compile(rf"{_INTEGER}(?:\.\d+)?(?:[eE][-+]?\d+)?").fullmatch
    filled = [cell for cell in cells if cell]
    if not filled or max(map(len, filled)) > _MOST_DIGITS or not all(map(number, filled)):
        return None
    return int if all(map(integer, filled)) else float


def _is_number(text: str) -> bool:
    return _kind([text.strip()]) is not None
