"""The rows of a text that holds records: CSV, JSON, JSON lines, tables, lines of named values."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    Rows = list[dict[str, Any]]
    Read = tuple[Rows, int]

_DELIMITERS = (",", "\t", ";", "|")
_PART_MARKS = ("||", " | ", "\t", "; ")
# So many lines tell whether a text has a form; where most of them have it, it is the form, or
# where all but one of a few.
_LINES_TRIED = 20
_MOST = 0.8
_FEWEST = 3
_MOST_DIGITS = 18
_MOST_HEAD_WORDS = 4
# Beyond so many digits a float is another number than the text.
_FLOAT_DIGITS = 15
_INTEGER = r"-?(?:0|[1-9]\d*)"
# `1e10` is a digest as often as a number; `1.5e10` and `1e-10` are none.
_NUMBER = rf"{_INTEGER}(?:\.\d+(?:[eE][-+]?\d{{1,2}})?|[eE][-+]\d{{1,2}})?"
_YEAR = r"(?:19|20)\d\d"
_NAME = r"(?<!\S)([A-Za-z_][\w.-]*)="
_MARKUP = r"\s*<[A-Za-z?!]"
_NAMED = r"\s*([A-Za-z_][\w .-]{0,40}?)\s*:\s*(.*)"


def rows_of(text: str) -> Read | None:
    """Return the records of a text, numbers as numbers; None where it has no known form.

    The number beside them counts lines that have another form: left out, such as those after a
    quote that does not end, or, in a table, with more or fewer cells than its head.
    """
    begin = text.lstrip()[:1]
    readers: tuple[Callable[[str], Read | None], ...] = (_pairs, _parts, _table, _tables_within)
    if begin == "{":
        readers = (_json,)
    elif begin == "[":
        readers = (_json, _pairs, _parts)
    for read in readers:
        found = read(text)
        if found is not None and found[0]:
            return found
    return None


def _lines(text: str) -> list[str]:
    """Return the lines of a text, which end where its document's do (see `rlm_rag.lines`)."""
    return text.split("\n" if "\n" in text else "\r")


def _json(text: str) -> Read | None:
    # The whole first: of JSON lines it fails after the first, line by line it would for each.
    whole = _value(text)
    if whole is not None:
        found = _dicts(whole)
        return None if found is None else (found, 0)
    lines = [line for line in _lines(text) if line.strip()]
    rows = [value for line in lines if isinstance(value := _value(line), dict)]
    is_form = len(rows) > 1 and _is_form(len(rows), len(lines))
    return (rows, len(lines) - len(rows)) if is_form else None


def _is_form(having: int, lines: int) -> bool:
    """Whether a form that some of the lines have is that of all."""
    return having >= _MOST * lines or having == lines - 1 >= _FEWEST


def _value(text: str) -> Any:
    import json

    try:
        return json.loads(text)
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


def _pairs(text: str) -> Read | None:
    """Lines of `name=value`; the words before the first are `word1`, `word2` and on."""
    from re import compile, match

    if match(_MARKUP, text):
        return None
    name = compile(_NAME)

    def read(line: str, least: int) -> dict[str, Any] | None:
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
        if len(found) < least:
            return None
        row: dict[str, Any] = {f"word{n}": word for n, word in enumerate(line[:first].split(), 1)}
        return row | dict(found)

    return _by_lines(text, read)


def _parts(text: str) -> Read | None:
    """Lines of `name: value` between marks, such as `Date: May 5 || User: 12`."""
    from re import compile

    named = compile(_NAMED)
    first = next((line for line in _lines(text) if line.strip()), "")
    mark = next((mark for mark in _PART_MARKS if mark in first), None)
    if mark is None:
        return None

    def read(line: str, least: int) -> dict[str, Any] | None:
        found = [named.fullmatch(part) for part in line.split(mark)]
        pairs = {each[1]: each[2].strip() for each in found if each is not None}
        return pairs if len(pairs) == len(found) >= least else None

    return _by_lines(text, read)


def _by_lines(text: str, read: Callable[[str, int], dict[str, Any] | None]) -> Read | None:
    """Read lines that have two values each for the most part, and then those of one value."""
    lines = [line for line in _lines(text) if line.strip()]
    tried = [read(line, 2) for line in lines[:_LINES_TRIED]]
    if not tried or not _is_form(len(tried) - tried.count(None), len(tried)):
        return None
    rows = [row for line in lines if (row := read(line, 1)) is not None]
    return _with_numbers(rows), len(lines) - len(rows)


def _table(text: str) -> Read | None:
    """CSV with whatever delimiter its first lines agree on."""
    from io import StringIO

    start = _lines(text[:200_000])[: _LINES_TRIED + 1]
    delimiter = None if start[0].lstrip().startswith("|") else _delimiter(start)
    if delimiter is None or not all(map(_may_head, start[0].split(delimiter))):
        return None
    cells = _cells(StringIO(text, newline=""), delimiter, len(text))
    found = _headed([row for row in cells if row])
    return None if found is None else (found[0], found[1] + _swallowed(text, delimiter))


def _swallowed(text: str, delimiter: str) -> int:
    """Return how many lines went into cells whose quote none closes, or one that opens another."""
    from io import StringIO

    if _is_whole(StringIO(text, newline=""), delimiter, len(text)):
        return 0
    lines: list[str] = []

    def heard() -> Iterator[str]:
        for line in StringIO(text, newline=""):
            lines.append(line)
            yield line

    swallowed = 0
    for _ in _read(heard(), delimiter, len(text)):
        if len(lines) > 1 and not _is_whole(lines, delimiter, len(text)):
            swallowed += sum(1 for line in lines[1:] if line.strip())
        lines.clear()
    return swallowed


def _is_whole(lines: Iterable[str], delimiter: str, longest: int) -> bool:
    """Whether each quote of some rows ends where its cell does, but for spaces."""
    from re import compile, escape

    spaces = compile(rf'" +(?={escape(delimiter)}|[\r\n]|$)')
    bare = (spaces.sub('"', line) for line in lines)
    return bool(_cells(bare, delimiter, longest, strict=True))


def _headed(rows: list[list[str]]) -> Read | None:
    """Take the first row for the names of the others, where it does not hold values as they do."""
    if not rows:
        return None
    names = [name.strip().lstrip("\ufeff") for name in rows[0]]
    if names[0] and not any(names[1:]):
        return None  # Lines that end with the delimiter, such as those of a program.
    if _is_head(names):
        names = _distinct(names)
        rows = rows[1:]
    else:
        names = [f"column{n}" for n in range(1, len(names) + 1)]
    odd = sum(len(row) != len(names) for row in rows)
    longest = max(map(len, rows), default=0)
    names += [f"column{n}" for n in range(len(names) + 1, longest + 1)]
    return _with_numbers([dict(zip(names, row, strict=False)) for row in rows]), odd


def _is_head(names: Sequence[str]) -> bool:
    """Whether the first row names columns: no number is among it but years after a name."""
    from re import fullmatch

    numbers = [name for name in names if _is_number(name)]
    years = all(fullmatch(_YEAR, number) for number in numbers)
    return not numbers or (years and not _is_number(names[0]) and len(set(names)) == len(names))


def _distinct(names: Sequence[str]) -> list[str]:
    """Return the names with a number behind one that came before, empty ones by their place."""
    found: dict[str, None] = {}
    for place, name in enumerate(names, 1):
        base = distinct = name or f"column{place}"
        again = 2
        while distinct in found:
            distinct = f"{base}_{again}"
            again += 1
        found[distinct] = None
    return list(found)


def _cells(
    lines: Iterable[str], delimiter: str, longest: int, *, strict: bool = False
) -> list[list[str]]:
    """Return the rows of CSV, none where it cannot be read as such; no cell is over `longest`."""
    import csv

    try:
        return list(_read(lines, delimiter, longest, strict=strict))
    except csv.Error:
        return []


def _read(
    lines: Iterable[str], delimiter: str, longest: int, *, strict: bool = False
) -> Iterator[list[str]]:
    import csv

    limit = csv.field_size_limit()
    csv.field_size_limit(max(longest, limit))
    try:
        yield from csv.reader(lines, delimiter=delimiter, strict=strict)
    finally:
        csv.field_size_limit(limit)


def _tables_within(text: str) -> Read | None:
    """The rows of the tables of Markdown, which may stand among other text."""
    lines = [line.strip() for line in _lines(text)]
    found: Rows = []
    odd = 0
    table: list[str] = []
    for line in [*lines, ""]:
        if line.startswith("|"):
            table.append(line)
            continue
        if len(table) > 2 and set(table[1]) <= set("|-: "):
            rows, more = _headed([_row(each) for each in (table[0], *table[2:])]) or ([], 0)
            found += rows
            odd += more
        table = []
    return (found, odd) if found else None


def _row(line: str) -> list[str]:
    from re import split

    cells = split(r"(?<!\\)\|", line.removeprefix("|").removesuffix("|"))
    return [cell.strip().replace("\\|", "|") for cell in cells]


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
        if len(sure) > 1 and sure[0] > most:
            # Of four lines of prose or code, three often have one comma each.
            is_small = sure[0] > 2 and _is_form(counts.count(sure[0]), len(counts))
            if is_small or sure.count(sure[0]) >= _MOST * len(sure):
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
    """Return what makes numbers of cells, None where one is none, or would be another text."""
    from re import compile

    filled = [cell for cell in cells if cell]
    if not filled or max(map(len, filled)) > _MOST_DIGITS:
        return None
    if not all(map(compile(_NUMBER).fullmatch, filled)):
        return None
    if all(map(compile(_INTEGER).fullmatch, filled)):
        return int
    decimals = [cell.partition(".")[2] for cell in filled if "e" not in cell.lower()]
    # Of 3.9 and 3.10 the second is a version; of 2.50 and 3.00, both are amounts.
    is_of_versions = len(set(map(len, decimals))) > 1 and any(
        each.endswith("0") for each in decimals
    )
    is_too_long = any(sum(map(str.isdigit, cell)) > _FLOAT_DIGITS for cell in filled)
    return None if is_of_versions or is_too_long else float


def _is_number(text: str) -> bool:
    return _kind([text.strip()]) is not None
