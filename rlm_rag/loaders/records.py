"""Documents from JSON Lines, one object with `path` and `content` a line, as `pack` writes them."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from rlm_rag.errors import SourceError
from rlm_rag.loaders.files import format_bytes, unreadable
from rlm_rag.loaders.options import Entry

# JSON may write one byte of a text as six: \u0000.
_JSON_BYTES_PER_BYTE = 6
_FIELD_BYTES = 1 << 16
_ENCODING = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,40}", re.ASCII)


def holds_documents(location: Path, *, max_file_bytes: int) -> bool:
    """Tell whether the first line of a `.jsonl` file is a document.

    Raises:
        SourceError: the file cannot be read.
    """
    if location.suffix.lower() != ".jsonl":
        return False
    with closing(read_lines(location, max_file_bytes)) as lines:
        return any(_entry(line) is not None for _, line in islice(lines, 1))


def read_documents(location: Path, *, max_file_bytes: int) -> Iterator[Entry]:
    """Yield the documents of a JSON Lines file, one line in memory at a time.

    Raises:
        SourceError: the file cannot be read, a line is no document, or is longer than a
            document of `max_file_bytes` can be.
    """
    for number, line in read_lines(location, max_file_bytes):
        entry = _entry(line)
        if entry is None:
            raise SourceError(
                f"Line {number} of {location} is no document.",
                hint='Each line is an object such as {"path": "a.txt", "content": "..."}.',
            )
        yield entry


def read_lines(location: Path, max_file_bytes: int) -> Generator[tuple[int, bytes], None, None]:
    """Yield the lines of a JSON Lines file that are not blank, with their numbers.

    Raises:
        SourceError: the file cannot be read, or a line is longer than a document of
            `max_file_bytes` can be.
    """
    limit = max_file_bytes * _JSON_BYTES_PER_BYTE + _FIELD_BYTES
    try:
        with location.open("rb") as file:
            number = 0
            while line := file.readline(limit + 1):
                number += 1
                if len(line) > limit:
                    raise SourceError(
                        f"Line {number} of {location} is longer than {format_bytes(limit)}.",
                        hint="Raise max_file_bytes if it really is one document.",
                    )
                if number == 1:
                    line = line.removeprefix(BOM_UTF8)
                if line.strip():
                    yield number, line
    except OSError as error:
        raise unreadable(location, error) from error


def _entry(line: bytes) -> Entry | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    path, content = _text(record.get("path")), _text(record.get("content"))
    if not path or content is None:
        return None
    encoding = record.get("encoding")
    named = isinstance(encoding, str) and _ENCODING.fullmatch(encoding)
    return Entry(path, content, encoding if named else None)


def _text(value: object) -> str | None:
    """Read a text; `pack` writes a list of pieces where one JSON string cannot hold it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(piece, str) for piece in value):
        return "".join(value)
    return None
