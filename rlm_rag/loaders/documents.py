"""Documents by suffix: which files a parser takes apart, and what they come apart into.

Parsers run in processes of their own (`loaders.parsing.pool`), bounded in time and memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

from rlm_rag.corpus import Skipped
from rlm_rag.errors import DocumentError, MissingExtraError
from rlm_rag.loaders.parsing.parts import ParsedDocument
from rlm_rag.loaders.parsing.pool import parser_pool

PARSERS_VERSION = 1
"""Raised whenever a parser makes another text of the same bytes; kept texts are of no use then."""

EXTRA_HINT = "pip install 'rlm-rag[docs]'"

_PARSING = "rlm_rag.loaders.parsing"


@dataclass(frozen=True, slots=True)
class Format:
    """A family of documents: its parser's module, and the packages which that imports.

    `refusal` is why such a file is never parsed.
    """

    name: str
    suffixes: tuple[str, ...]
    module: str = ""
    packages: tuple[str, ...] = ()
    refusal: str | None = None


FORMATS = (Format("PDF", (".pdf",), "pdf", ("pypdfium2",)),)

_OLD = "the binary format of Office before 2007; save it as"
_REFUSED = (
    Format("Word 97", (".doc", ".dot"), refusal=f"{_OLD} .docx"),
    Format("Excel 97", (".xls", ".xlt"), refusal=f"{_OLD} .xlsx"),
    Format("PowerPoint 97", (".ppt", ".pps", ".pot"), refusal=f"{_OLD} .pptx"),
)


def is_document(path: str) -> bool:
    """Tell by its suffix whether a file's bytes, whole, are for `parse_document`."""
    return format_of(path) is not None


def format_of(path: str) -> Format | None:
    """Return the format that a path's suffix names, or None."""
    name = path.rpartition("/")[2].lower()
    stem, dot, suffix = name.rpartition(".")
    return _by_suffix().get(dot + suffix) if stem else None


def parse_document(path: str, data: bytes) -> ParsedDocument | Skipped:
    """Take the bytes of the file at `path` apart; `is_document(path)` must hold.

    A part `name` belongs under `path#name`, one without a name under `path` itself; likewise
    what `skipped` names. Safe to call from threads, which is how several cores are used; blocks
    until the parser is done or was killed.
    """
    known = format_of(path)
    if known is None:
        raise ValueError(f"no document by its name: {path}")
    if known.refusal is not None:
        return Skipped(path, known.refusal)
    if _missing(known):
        return Skipped(path, f"{known.name} needs {EXTRA_HINT}")
    try:
        return parser_pool().parse(f"{_PARSING}.{known.module}", data)
    except DocumentError as error:
        return Skipped(path, error.message)


def require_parser(path: str) -> None:
    """Check that a document which was asked for by name can be parsed.

    Raises:
        MissingExtraError: its parser's packages are not installed.
    """
    known = format_of(path)
    if known is not None and _missing(known):
        raise MissingExtraError(
            f"{known.name} needs the extra `docs`: {', '.join(known.packages)} not installed.",
            hint=EXTRA_HINT,
        )


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


@cache
def _by_suffix() -> dict[str, Format]:
    return {suffix: known for known in (*FORMATS, *_REFUSED) for suffix in known.suffixes}


def _missing(known: Format) -> bool:
    return any(find_spec(package) is None for package in known.packages)
