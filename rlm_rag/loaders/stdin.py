"""Standard input: a text, or the names of files, each ended by NUL."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from rlm_rag.errors import EmptyCorpusError, SourceError
from rlm_rag.loaders.files import format_bytes
from rlm_rag.loaders.git import printable_path, split_names
from rlm_rag.loaders.intake import Intake
from rlm_rag.loaders.options import Entry
from rlm_rag.loaders.text import decode_text
from rlm_rag.loaders.values import read_text

STDIN = "-"


def read_stdin(intake: Intake) -> tuple[str, Iterator[Entry]]:
    """Return the shape and the one document of standard input, read to its end.

    Raises:
        SourceError: it is closed, cannot be read, is larger than a file may be, or binary.
        EmptyCorpusError: it is empty.
    """
    decoded = decode_text(_read(intake.options.max_file_bytes))
    if decoded is None:
        raise SourceError(
            "Standard input is binary.", hint="Only text can be loaded; convert it first."
        )
    if decoded.warning is not None:
        intake.report.warn("standard input", decoded.warning)
    return read_text(decoded.content, decoded.encoding)


def read_named_files(intake: Intake) -> Iterator[Entry]:
    """Yield the files that standard input names, in byte order, as `git ls-files -z` writes them.

    Paths within the working folder are relative to it, others are as they are from the root on.

    Raises:
        SourceError, EmptyCorpusError: as `read_stdin`.
    """
    here = os.path.realpath(".")
    named: dict[str, str] = {}
    for name in split_names(_read(intake.options.max_file_bytes)):
        location = os.path.normpath(Path(here) / name)
        inside = location.startswith(f"{here.rstrip('/')}/")
        shown = os.path.relpath(location, here) if inside else location.lstrip("/")
        named.setdefault(printable_path(shown.replace(os.sep, "/")), location)
    for path in sorted(named, key=lambda path: path.encode("utf-8", "surrogatepass")):
        if not intake.wants(path):
            continue
        if os.path.lexists(named[path]):
            yield from intake.read(path, named[path])
        else:
            # A folder's file may have gone since it was listed; this one was asked for by name.
            intake.report.miss(path, "not readable: there is no such file")


def _read(limit: int) -> bytes:
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise SourceError("There is no standard input to read.", hint="Give a path instead.")
    try:
        data: bytes = stream.read(limit + 1)
    except OSError as error:
        raise SourceError(f"Cannot read standard input: {error.strerror}.") from error
    if len(data) > limit:
        raise SourceError(
            f"Standard input is larger than {format_bytes(limit)}.",
            hint="Raise the limit: --max-file-bytes, or max_file_bytes=.",
        )
    if not data:
        raise EmptyCorpusError("Standard input is empty.", hint="Pipe a text into it.")
    return data
