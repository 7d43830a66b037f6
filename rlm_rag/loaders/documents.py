"""Documents: files that are taken apart rather than read, in processes of their own.

The formats are the rows of `loaders.parsing.formats`; the processes, which are bounded in time
and memory, are those of `loaders.parsing.pool`.
"""

from __future__ import annotations

from functools import cache

from rlm_rag.corpus import Skipped
from rlm_rag.errors import DocumentError, MissingExtraError
from rlm_rag.loaders.parsing.formats import (
    EXTRA_HINT,
    FORMATS,
    format_of,
    is_missing,
    refusal_of,
)
from rlm_rag.loaders.parsing.parts import ParsedDocument
from rlm_rag.loaders.parsing.pool import parser_pool

PARSERS_VERSION = 1
"""Raised whenever a parser makes another text of the same bytes; kept texts are of no use then."""

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
    try:
        return parser_pool().parse(known.module, data)
    except DocumentError as error:
        return Skipped(path, NOT_PARSED + error.message)


def require_parser(path: str) -> None:
    """Check that a document which was asked for by name can be parsed.

    Raises:
        MissingExtraError: its parser's packages are not installed.
    """
    known = format_of(path)
    if known is not None and is_missing(known):
        raise MissingExtraError(f"{known.name} needs the extra `docs`.", hint=EXTRA_HINT)


@cache
def parsers_key() -> str:
    """Return what a kept text of a document depends on besides its bytes."""
    from importlib.metadata import PackageNotFoundError, version

    words = [str(PARSERS_VERSION)]
    for name in sorted({package for known in FORMATS for package in known.packages}):
        try:
            words.append(f"{name}={version(name)}")
        except PackageNotFoundError:
            words.append(f"{name}=none")
    return " ".join(words)
