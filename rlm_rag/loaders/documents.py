"""Documents: files that are taken apart rather than read, in processes of their own.

The formats are the rows of `loaders.parsing.formats`; the processes, which are bounded in time
and memory, are those of `loaders.parsing.pool`.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from hashlib import sha256

from rlm_rag.corpus import Skipped
from rlm_rag.errors import DocumentError, MissingExtraError
from rlm_rag.loaders.parsing.formats import (
    EXTRA_HINT,
    FORMATS,
    Format,
    format_of,
    is_missing,
    refusal_of,
)
from rlm_rag.loaders.parsing.parts import ParsedDocument
from rlm_rag.loaders.parsing.pool import parser_pool

Expected = tuple[str, bytes]

NOT_PARSED = "not parsed: "
"""What the reason begins with where a document was left out for what it is."""


def is_document(path: str) -> bool:
    """Tell by its suffix whether a file's bytes, whole, are for `parse_document`."""
    return format_of(path) is not None


def parse_document(path: str, data: bytes) -> ParsedDocument | Skipped:
    """Take the bytes of the file at `path` apart; `is_document(path)` must hold.

    A part `name` belongs under `path#name`, one without a name under `path` itself; likewise
    what `skipped` names. Safe to call from threads, which is how several cores are used; blocks
    until the parser is done or was killed.
    """
    known = format_of(path)
    if known is None:
        raise ValueError(f"no document by its name: {path}")
    refusal = refusal_of(known)
    if refusal is not None:
        return Skipped(path, NOT_PARSED + refusal)
    expected = _EXPECTED.pop(_key(known, data), None) if _EXPECTED else None
    try:
        if expected is not None:
            return expected.result()
        return parser_pool().parse(known.module, data)
    except DocumentError as error:
        return Skipped(path, NOT_PARSED + error.message)


def expect_document(path: str, data: bytes) -> Expected | None:
    """Begin to parse a document that `parse_document` is going to be called for."""
    known = format_of(path)
    if known is None or refusal_of(known) is not None:
        return None
    key = _key(known, data)
    if key not in _EXPECTED:
        expected: Future[ParsedDocument] = Future()
        _EXPECTED[key] = expected
        arguments = (known.module, data, expected)
        threading.Thread(target=_parse_into, args=arguments, daemon=True).start()
    return key


def forget_document(expected: Expected) -> None:
    """Drop what `expect_document` began, where nobody called for it; idempotent."""
    _EXPECTED.pop(expected, None)


def require_parser(path: str) -> None:
    """Check that a document which was asked for by name can be parsed.

    Raises:
        MissingExtraError: its parser's packages are not installed.
    """
    known = format_of(path)
    if known is not None and is_missing(known):
        raise MissingExtraError(f"{known.name} needs the extra `docs`.", hint=EXTRA_HINT)


# By format and content, so that no document can get another's text.
_EXPECTED: dict[Expected, Future[ParsedDocument]] = {}

if hasattr(os, "register_at_fork"):
    # The threads that would bring these are the parent's.
    os.register_at_fork(after_in_child=_EXPECTED.clear)


def _key(known: Format, data: bytes) -> Expected:
    return known.module, sha256(data).digest()


def _parse_into(module: str, data: bytes, expected: Future[ParsedDocument]) -> None:
    try:
        expected.set_result(parser_pool().parse(module, data))
    except BaseException as error:  # noqa: BLE001 - whoever waits for it is told
        expected.set_exception(error)


def parser_packages() -> list[str]:
    """Return the packages that parsers import, by name."""
    return sorted({package for known in FORMATS for package in known.packages})
