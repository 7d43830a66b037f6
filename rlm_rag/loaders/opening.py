"""What one source is: found, told apart from the others, and ready to be read."""

from __future__ import annotations

import difflib
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rlm_rag.corpus import Skipped
from rlm_rag.errors import EmptyCorpusError, SourceError
from rlm_rag.loaders.files import BINARY_REASON, format_bytes, read_file
from rlm_rag.loaders.git import printable_path
from rlm_rag.loaders.options import NOT_SELECTED, Entry, LoadOptions, LoadReport
from rlm_rag.loaders.records import holds_documents, read_documents
from rlm_rag.loaders.secrets import SECRET_REASON
from rlm_rag.loaders.text import decode_text
from rlm_rag.loaders.tree import read_tree
from rlm_rag.loaders.values import read_text, read_values

STDIN = "-"
_LONGEST_PATH_CHARS = 4096
_TEXT_HINT = f"A text itself: pipe it in and give {STDIN} as the source, or in Python use text=."
_SPECIAL_FILES = (stat.S_ISFIFO, stat.S_ISSOCK, stat.S_ISCHR, stat.S_ISBLK)


@dataclass(frozen=True, slots=True)
class OpenedSource:
    """A source whose documents are read as `entries` is consumed.

    `name` is its last component, `label` what messages call it; `is_document` says that the
    source itself is the one document, `location` where it lies if it is a folder or a file.
    """

    shape: str
    entries: Iterator[Entry]
    name: str
    label: str
    is_document: bool = False
    location: Path | None = None


def open_source(source: object, options: LoadOptions, report: LoadReport) -> OpenedSource:
    """Find out what `source` is; its documents that the globs leave out are not among `entries`.

    Raises:
        SourceError: it is missing, unreadable, or of no known kind.
        EmptyCorpusError: it is standard input, and empty.
    """
    if isinstance(source, str) and source == STDIN:
        return _open_stdin(options, report)
    if isinstance(source, (str, os.PathLike)):
        return _open_named(source, options, report)
    shape, entries = read_values(source)
    kind = type(source).__name__
    return OpenedSource(shape, _selected(entries, options, report), kind, f"the {kind}")


def open_text(text: str) -> OpenedSource:
    """Take `text` as the source itself."""
    shape, entries = read_text(text)
    return OpenedSource(shape, entries, "text", "the text", is_document=True)


def _selected(
    entries: Iterator[Entry], options: LoadOptions, report: LoadReport
) -> Iterator[Entry]:
    selects = options.selector()
    for entry in entries:
        if selects(entry.path):
            yield entry
        else:
            report.skip(entry.path, NOT_SELECTED)


def _open_named(
    source: str | os.PathLike[str], options: LoadOptions, report: LoadReport
) -> OpenedSource:
    named = os.fspath(source)
    if not isinstance(named, str):
        raise SourceError("A path of bytes cannot be loaded.", hint="Use os.fsdecode on it.")
    if not named:
        raise SourceError("The source is an empty string.", hint="Give a path; `.` is this folder.")
    location = _expand(named)
    try:
        mode = location.stat().st_mode
    except (OSError, ValueError) as error:
        if isinstance(source, str) and ("\n" in source or len(source) > _LONGEST_PATH_CHARS):
            return open_text(source)
        raise _missing(named, location, error) from error
    name = printable_path(
        location.name if location.name not in ("", "..") else _real_name(location)
    )
    if stat.S_ISDIR(mode):
        entries = read_tree(str(location), options, report)
        label = f"the folder {location}"
        return OpenedSource("documents", entries, name, label, location=location)
    if any(is_kind(mode) for is_kind in _SPECIAL_FILES):
        raise SourceError(
            f"Not a regular file: {location}.", hint=f"Pipe it in and give {STDIN} as the source."
        )
    label = f"the file {location}"
    if holds_documents(location, max_file_bytes=options.max_file_bytes):
        entries = read_documents(location, max_file_bytes=options.max_file_bytes)
        entries = _selected(entries, options, report)
        return OpenedSource("documents", entries, name, label, location=location)
    entries = _read_single(location, name, options, report)
    return OpenedSource("documents", entries, name, label, is_document=True, location=location)


def _read_single(
    location: Path, name: str, options: LoadOptions, report: LoadReport
) -> Iterator[Entry]:
    target = os.path.realpath(location)
    found = read_file(target, name, max_file_bytes=options.max_file_bytes)
    if isinstance(found, Skipped):
        raise SourceError(f"Cannot load {location}: {found.reason}.", hint=_hint(found.reason))
    if found.warning is not None:
        report.warn(name, found.warning)
    yield Entry(name, found.content, found.encoding)


def _hint(reason: str) -> str:
    if reason == BINARY_REASON:
        return "Only text can be loaded; convert it first."
    if reason == SECRET_REASON:
        return "Copy it to another name if a model may see its text."
    if "max_file_bytes" in reason:
        return "Raise the limit (--max-file-bytes, max_file_bytes=), or split the file."
    return "Check the file and its permissions."


def _open_stdin(options: LoadOptions, report: LoadReport) -> OpenedSource:
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise SourceError("There is no standard input to read.", hint="Give a path instead.")
    try:
        data = stream.read(options.max_file_bytes + 1)
    except OSError as error:
        raise SourceError(f"Cannot read standard input: {error.strerror}.") from error
    if len(data) > options.max_file_bytes:
        raise SourceError(
            f"Standard input is larger than {format_bytes(options.max_file_bytes)}.",
            hint="Raise the limit: --max-file-bytes, or max_file_bytes=.",
        )
    if not data:
        raise EmptyCorpusError("Standard input is empty.", hint="Pipe a text into it.")
    decoded = decode_text(data)
    if decoded is None:
        raise SourceError("Standard input is binary.", hint=_hint(BINARY_REASON))
    if decoded.warning is not None:
        report.warn("standard input", decoded.warning)
    shape, entries = read_text(decoded.content, decoded.encoding)
    return OpenedSource(shape, entries, "stdin", "standard input", is_document=True)


def _missing(named: str, location: Path, error: OSError | ValueError) -> SourceError:
    shown = repr(named if len(named) <= 200 else named[:200] + "...")
    if "://" in named:
        return SourceError(
            f"Cannot load {shown}: addresses are not read yet.",
            hint="Clone or download it, and give the folder or file.",
        )
    absent = isinstance(error, (FileNotFoundError, NotADirectoryError, ValueError))
    if not absent and isinstance(error, OSError):
        return SourceError(
            f"Cannot open {shown}: {error.strerror}.", hint="Check the path and its permissions."
        )
    close: list[str] = []
    # Where the folder cannot be listed there is nothing to suggest.
    with suppress(OSError, ValueError):
        siblings = [sibling.name for sibling in location.parent.iterdir()]
        close = difflib.get_close_matches(location.name, siblings, n=3)
    hint = f"Did you mean {' or '.join(close)}?" if close else _TEXT_HINT
    return SourceError(f"No such file or folder: {shown}.", hint=hint)


def _expand(named: str) -> Path:
    # A user that is not known leaves the path as it is, and it is then missing.
    with suppress(RuntimeError):
        return Path(named).expanduser()
    return Path(named)


def _real_name(location: Path) -> str:
    return location.resolve().name or "root"
