"""Standard output and error: what may be written to them, on a terminal and off it."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rlm_rag.cli import terminal
from rlm_rag.errors import UsageError

SCHEMA_VERSION = 1
_begun = False
_is_closed = False


class OutputError(Exception):
    """Standard output cannot be written: a full disk, most of the time."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"cannot write to standard output: {error.strerror}")


class ReaderLeft(Exception):
    """Whoever read standard output has closed it (`| head`)."""


def prepare() -> None:
    """Make both streams safe to write any text to, whatever the locale; closed ones swallow."""
    global _is_closed
    _is_closed = sys.stdout is None
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, _nowhere())
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace", newline="\n")


def flush() -> None:
    """Write out what standard output has buffered.

    Raises:
        ReaderLeft: nobody reads it any more.
        OutputError: it cannot be written.
    """
    with _named_failures():
        sys.stdout.flush()


def reader_left() -> bool:
    """Whether nobody reads standard output any more, as far as what is buffered can tell."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return True
    except (OSError, ValueError):
        return False
    return False


def flush_or_discard() -> None:
    """Write out what is buffered, or give it up, so that the interpreter's end does not try."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        sys.stdout = _nowhere()


def is_closed() -> bool:
    """Whether the command was started without a standard output (`>&-`)."""
    return _is_closed


def check_is_open(*, hint: str) -> None:
    """Refuse to begin what would have nowhere to print its results.

    Raises:
        UsageError: there is no standard output.
    """
    if is_closed():
        raise UsageError("standard output is closed", hint=hint)


def has_begun() -> bool:
    """Whether this process has written, or tried to write, any result."""
    return _begun


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8", errors="replace")  # noqa: PTH123 lives as long as we do


def result(text: str) -> None:
    """Write a line of result: as it is to a pipe or file, without control codes to a terminal.

    Only lines of the corpus go to a pipe as they are: paths, and what a model wrote, are made
    printable before they come here.
    """
    _write((_safe(text) if terminal.is_terminal(sys.stdout) else text) + "\n")


def result_styled(text: str) -> None:
    """Write lines of result that hold codes of our own, and nothing else that could be one."""
    _write(text + "\n")


def one_line(text: str) -> str:
    """A path, or a sentence that holds one, as it is shown to a terminal and to a pipe.

    What would end the line, or hide a part of it, is escaped.
    """
    from rlm_rag.shown import printable_line, with_bytes

    return printable_line(with_bytes(text))


def result_json(value: Any) -> None:
    """Write a value as Unicode JSON in ASCII; an object at the top gets `schema_version`."""
    if isinstance(value, dict):
        value = {"schema_version": SCHEMA_VERSION} | value
    from rlm_rag.shown import json_text

    _write(json_text(value, indent=2) + "\n")


def note(text: str, *, end: str = "\n") -> None:
    """Write a line of diagnostics to standard error, without control codes."""
    from rlm_rag.shown import with_bytes

    to_stderr(_safe(with_bytes(text)) + end)


def to_stderr(text: str) -> None:
    """Write to standard error as it is; once that fails, nothing more is tried."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        sys.stderr = _nowhere()


@contextmanager
def writing() -> Iterator[None]:
    """Tell a reader that left from a disk that is full, for whatever writes to standard output.

    Raises:
        ReaderLeft: nobody reads it any more.
        OutputError: it cannot be written.
    """
    global _begun
    _begun = True
    with _named_failures():
        yield


@contextmanager
def _named_failures() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise ReaderLeft from None
    except OSError as error:
        raise OutputError(error) from error


def _write(text: str) -> None:
    with writing():
        sys.stdout.write(text)


def shows_progress() -> bool:
    """Whether standard error is a terminal that can rewrite a line."""
    return terminal.obeys_codes(sys.stderr)


def heading(text: str, rest: str = "") -> None:
    """Write a line of result whose `text` is bold where there are colours."""
    if terminal.has_colours(sys.stdout):
        result_styled(terminal.coloured(_safe(text), "bold") + _safe(rest))
    else:
        result(text + rest)


def _safe(text: str) -> str:
    from rlm_rag.shown import printable

    return printable(text)
