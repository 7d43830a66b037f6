"""Reads a benchmark's files as they were published, and says where they are not."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from rlm_rag.errors import BenchmarkDataError, MissingExtraError, UsageError
from rlm_rag.evals.base import Sample, TaskOptions
from rlm_rag.loaders.source import Source

# Of a value that is quoted in an error.
_MAX_QUOTED_CHARS = 80


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file, which says in errors where it stands; `form` is what is expected."""

    values: Mapping[str, Any]
    where: str
    form: str

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text; numbers are written out, since ids are often given as such."""
        value = self.values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            self.refuse(f"{name!r} is {_quoted(value)}, not a text")
        return str(value)

    def integer(self, name: str) -> int:
        """Return a whole number."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            self.refuse(f"{name!r} is {_quoted(value)}, not a whole number")
        return value

    def texts(self, name: str) -> list[str]:
        """Return texts; one text is a list of it. There is one at least."""
        value = self.values.get(name)
        found = [value] if isinstance(value, (str, int)) else value
        if not isinstance(found, list) or not found or not all(_is_text(one) for one in found):
            self.refuse(f"{name!r} is {_quoted(value)}, not a text or a list of texts")
        return [str(one) for one in found]

    def rows(self, name: str) -> list[Row]:
        """Return a list of objects as rows."""
        value = self.values.get(name)
        if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
            self.refuse(f"{name!r} is {_quoted(value)}, not a list of objects")
        return [Row(one, f"{self.where}, {name}[{at}]", self.form) for at, one in enumerate(value)]

    def refuse(self, message: str) -> NoReturn:
        """Raise the error that the row is not in the published format."""
        raise BenchmarkDataError(f"{self.where}: {message}", hint=self.form)


def _is_text(value: object) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _quoted(value: object) -> str:
    if value is None:
        return "missing"
    text = json.dumps(value, default=str)
    return text if len(text) <= _MAX_QUOTED_CHARS else f"{text[:_MAX_QUOTED_CHARS]}..."


def required_data(options: TaskOptions, form: str) -> Path:
    """Return the path that the user gave.

    Raises:
        UsageError: none was given; nothing is downloaded.
        BenchmarkDataError: there is nothing at it.
    """
    if options.data is None:
        raise UsageError("the task needs its data: --data PATH", hint=f"{form} Download it first.")
    if not options.data.exists():
        raise BenchmarkDataError(f"there is no {options.data}", hint=form)
    return options.data


def asked_for(samples: Iterable[Sample], options: TaskOptions) -> Iterator[Sample]:
    """Return the first `count` samples that are no longer than the longest of the lengths."""
    longest = max(options.lengths, default=None)
    short = (s for s in samples if longest is None or (s.length_tokens or 0) <= longest)
    return islice(short, options.count)


def one_of(folder: Path, names: tuple[str, ...], form: str) -> Path:
    """Return the first of the files that a folder has; a file given in its place is it.

    Raises:
        BenchmarkDataError: the folder has none of them.
    """
    return all_of(folder, names, form)[0]


def all_of(folder: Path, names: tuple[str, ...], form: str) -> list[Path]:
    """Return the files of the first name (a glob) that a folder has, in order: often shards.

    A file given in the folder's place is the only one.

    Raises:
        BenchmarkDataError: the folder has none of them.
    """
    if folder.is_file():
        return [folder]
    for name in names:
        if found := sorted(path for path in folder.glob(name) if path.is_file()):
            return found
    raise BenchmarkDataError(f"there is none of {', '.join(names)} in {folder}", hint=form)


def held(path: str, text: str) -> Callable[[], Source]:
    """Return the source of a haystack of one document, its text compressed until it is asked for.

    All samples of a run are known before the first is asked, and LongBench v2's texts are 0.5 GB.
    Four novels that take 4.8 MB of memory are held in 1.1 MB, at 77 MB/s (level 1).
    """
    data = zlib.compress(text.encode("utf-8", "surrogatepass"), 1)
    return lambda: [(path, zlib.decompress(data).decode("utf-8", "surrogatepass"))]


def read_all(folder: Path, names: tuple[str, ...], form: str) -> Iterator[Row]:
    """Yield the rows of the files that `all_of` returns, one file after the other.

    Raises:
        BenchmarkDataError, MissingExtraError: as `all_of` and `read_rows`.
    """
    for path in all_of(folder, names, form):
        yield from read_rows(path, form)


def read_rows(path: Path, form: str) -> Iterator[Row]:
    """Yield the objects of a JSON list, of JSON lines (both may be gzipped), or of Parquet.

    Raises:
        BenchmarkDataError: it cannot be read, or something in it is no object.
        MissingExtraError: it is Parquet, and its reader is not installed.
    """
    found: Iterable[Any]
    try:
        if path.suffix == ".parquet":
            found = _parquet(path)
        elif path.name.removesuffix(".gz").endswith(".json"):
            found = _listed(read_json(path, form))
        else:
            found = _lines(path)
        for number, value in enumerate(found, 1):
            where = f"{path}, row {number}"
            if not isinstance(value, Mapping):
                raise BenchmarkDataError(f"{where}: {_quoted(value)} is no object", hint=form)
            yield Row(value, where, form)
    except (OSError, EOFError, ValueError, RecursionError) as error:
        raise BenchmarkDataError(f"{path} cannot be read: {error}", hint=form) from error


def read_json(path: Path, form: str) -> Any:
    """Return the value of a JSON file, which may be gzipped.

    Raises:
        BenchmarkDataError: it cannot be read, or is no JSON.
    """
    try:
        return json.loads(read_text(path, form))
    except (ValueError, RecursionError) as error:
        raise BenchmarkDataError(f"{path} cannot be read: {error}", hint=form) from error


def read_text(path: Path, form: str) -> str:
    """Return the text of a file, which may be gzipped.

    Raises:
        BenchmarkDataError: it cannot be read, or is no UTF-8.
    """
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    except (OSError, EOFError, ValueError) as error:
        raise BenchmarkDataError(f"{path} cannot be read: {error}", hint=form) from error


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"it holds {_quoted(value)}, not a list")
    return value


def _lines(path: Path) -> Iterator[Any]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig") as lines:
        for row, line in enumerate(filter(str.strip, lines), 1):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"row {row} is no JSON: {error}") from error
            yield value


def _parquet(path: Path) -> Iterator[Any]:
    if find_spec("pyarrow") is None:
        raise MissingExtraError(
            f"{path} is Parquet, whose reader is not installed",
            hint="pip install 'rlm-rag[parquet]'",
        )
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        for batch in file.iter_batches():
            yield from batch.to_pylist()
