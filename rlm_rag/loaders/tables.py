"""Records of a table, each a document: CSV, JSON Lines and Parquet, of which columns are chosen."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import Any

from rlm_rag.counts import counted
from rlm_rag.errors import MissingExtraError, SourceError, UsageError
from rlm_rag.loaders.files import unreadable
from rlm_rag.loaders.intake import Intake
from rlm_rag.loaders.options import Entry
from rlm_rag.loaders.paths import numbered_path
from rlm_rag.loaders.records import read_lines
from rlm_rag.loaders.text import SNIFF_BYTES, decode_text

Record = Mapping[str, Any]

PARQUET_HINT = "pip install 'rlm-rag[parquet]'"
_DELIMITERS = ",;\t|"
_CSV_SUFFIXES = (".csv", ".tsv")
_JSON_SUFFIXES = (".jsonl", ".ndjson")
_PARQUET_SUFFIXES = (".parquet", ".pq")
_BATCH_ROWS = 1000


def is_table(name: str, intake: Intake) -> bool:
    """Tell whether a file's records are its documents: always of Parquet, else where asked for."""
    suffix = Path(name).suffix.lower()
    if suffix in _PARQUET_SUFFIXES:
        return True
    return intake.options.chooses_columns and suffix in (*_CSV_SUFFIXES, *_JSON_SUFFIXES)


def read_table(location: Path, name: str, intake: Intake) -> Iterator[Entry]:
    """Yield one document a record, in the table's order, one record in memory at a time.

    Its text is that of the one column chosen, or `column: value` lines of several (of all,
    where none is chosen); its path is the value of the path column, else `name#row=1` and so on.

    Raises:
        MissingExtraError: it is Parquet, and its reader is not installed.
        UsageError: a column is none of the table's.
        SourceError: it cannot be read, or a line is no record.
    """
    taken: dict[str, int] = {}
    options = intake.options
    for number, record in enumerate(_records(location, intake), start=1):
        if number == 1:
            _check_columns(record, intake)
        text = _text(record, options.columns)
        path = f"{name}#row={number}"
        if options.path_column is not None:
            path = _unique(_value(record.get(options.path_column)).strip() or path, taken)
        if intake.is_full:
            intake.report.miss(path, "beyond the limit, like all the records after it")
            return
        yield from intake.keep(Entry(path, text))


def _records(location: Path, intake: Intake) -> Iterator[Record]:
    suffix = location.suffix.lower()
    try:
        if suffix in _PARQUET_SUFFIXES:
            yield from _parquet_records(location)
        elif suffix in _CSV_SUFFIXES:
            yield from _csv_records(location, suffix, intake)
        else:
            yield from _json_records(location, intake)
    except OSError as error:
        raise unreadable(location, error) from error


def _csv_records(location: Path, suffix: str, intake: Intake) -> Iterator[Record]:
    with location.open("rb") as file:
        head = file.read(SNIFF_BYTES)
    # A character may be cut at the end of what is sniffed.
    decoded = decode_text(head[: head.rfind(b"\n") + 1] or head)
    if decoded is None:
        raise SourceError(f"Cannot load {location}: binary.", hint="Give a table in text.")
    header = decoded.content.partition("\n")[0]
    delimiter = "\t" if suffix == ".tsv" else max(_DELIMITERS, key=header.count)
    before = csv.field_size_limit(intake.options.max_file_bytes)
    try:
        with location.open(encoding=decoded.encoding, errors="replace", newline="") as lines:
            yield from _csv_rows(lines, delimiter, location.name, intake)
    except csv.Error as error:
        raise SourceError(f"Cannot load {location}: {error}.") from error
    finally:
        csv.field_size_limit(before)


def _csv_rows(lines: Iterable[str], delimiter: str, name: str, intake: Intake) -> Iterator[Record]:
    """Yield the rows of CSV, and warn where they do not have what was meant."""
    held: list[str] = []

    def read() -> Iterator[str]:
        for line in lines:
            held.append(line)
            yield line

    reader = csv.DictReader(read(), delimiter=delimiter)
    names = Counter(reader.fieldnames or ())
    if twice := [column for column, times in names.items() if times > 1]:
        intake.report.warn(name, f"several columns are called {twice[0]!r}: the last one counts")
    ragged = first = 0
    last: list[str] = []
    held.clear()
    for row in reader:
        first, last = reader.line_num - len(held) + 1, held.copy()
        held.clear()
        more = row.pop(None, None)
        if more is not None or None in row.values():
            ragged += 1
            row = {column: "" if cell is None else cell for column, cell in row.items()}
        if more is not None:
            row[""] = more
        yield row
    # Empty lines before a row are none of its own.
    first += sum(1 for _ in takewhile(lambda line: not line.strip("\r\n"), last))
    if _is_torn(last, delimiter):
        intake.report.warn(name, f"a quote in line {first} is not closed: the rest is one cell")
    if ragged:
        said = counted(ragged, "row has", "rows have")
        intake.report.warn(name, f"{said} more or fewer cells than the header")


def _is_torn(lines: Sequence[str], delimiter: str) -> bool:
    """Whether a row ends within quotes, which is read as if they were closed."""
    try:
        list(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error as error:
        return "unexpected end of data" in str(error)
    return False


def _json_records(location: Path, intake: Intake) -> Iterator[Record]:
    for number, line in read_lines(location, intake.options.max_file_bytes):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise SourceError(
                f"Line {number} of {location} is no record.", hint="Each line is a JSON object."
            )
        yield record


def _parquet_records(location: Path) -> Iterator[Record]:
    if find_spec("pyarrow") is None:
        raise MissingExtraError("Parquet needs the package pyarrow.", hint=PARQUET_HINT)
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(os.fspath(location)) as file:
            for batch in file.iter_batches(batch_size=_BATCH_ROWS):
                yield from batch.to_pylist()
    except pyarrow.ArrowException as error:
        raise SourceError(
            f"Cannot load {location}: {error}.", hint="Check that it is whole."
        ) from error


def _check_columns(record: Record, intake: Intake) -> None:
    wanted = [*intake.options.columns, intake.options.path_column or ""]
    missing = [name for name in wanted if name and name not in record]
    if missing:
        raise UsageError(
            f"There is no column {missing[0]!r}.",
            hint=f"The columns are: {', '.join(str(name) for name in record)}.",
        )


def _text(record: Record, columns: Sequence[str]) -> str:
    if len(columns) == 1:
        return _value(record.get(columns[0]))
    names = columns or [str(name) for name in record]
    return "".join(f"{name}: {_value(record.get(name))}\n" for name in names)


def _value(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        decoded = decode_text(value)
        return f"({len(value)} bytes)" if decoded is None else decoded.content
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _unique(wanted: str, taken: dict[str, int]) -> str:
    """Number a path that came before; `taken` has of each the number to try next."""
    path, number = wanted, taken.get(wanted, 2)
    while path in taken:
        path = numbered_path(wanted, number)
        number += 1
    # Counted on, since thousands of records may have one value.
    taken[wanted] = number
    taken.setdefault(path, 2)
    return path
