"""What a document comes apart into, and the bounds of that."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from rlm_rag.errors import DocumentError
from rlm_rag.loaders.files import format_bytes
from rlm_rag.loaders.text import DecodedText, decode_text

MAX_PARTS = 8_000
"""The longest manuals that people read have 5,000 to 6,000 pages."""
MAX_TEXT_BYTES = 64 * 1024 * 1024
MAX_WARNINGS = 50
MAX_LABEL_CHARS = 80

# One `kind=name`, or several for what lies in an attachment.
PART_NAME = re.compile(r"(?:#?[a-z]+=[^\s`\"'<>()\[\]{},;:#|/\\\x00-\x20\x7f]{1,100})+")

_NOT_IN_LABEL = re.compile(r"[\s`\"'<>()\[\]{},;:#|/\\\x00-\x20\x7f]+")
_CONTROLS = {code: None for code in (*range(32), 127, 0xFEFF) if chr(code) not in "\t\n"}
_SURROGATES = re.compile("[\ud800-\udfff]")
_BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Part:
    """A page, sheet, cell or the like; `name` is `page=3`, `""` where it is the whole document.

    `encoding` is what it was decoded from, where the document is itself a text.
    """

    name: str
    content: str
    encoding: str | None = None


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document's parts in its order, names of parts left out with the reason, and warnings."""

    parts: tuple[Part, ...]
    skipped: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()


class Parts:
    """Collects the parts of a document; names are made unique, texts get LF and no controls."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._names: set[str] = set()
        self._skipped: list[tuple[str, str]] = []
        self._warnings: list[str] = []
        self._bytes = 0

    def add(self, name: str, text: str, *, encoding: str | None = None) -> None:
        """Append a part.

        Raises:
            DocumentError: there are more than MAX_PARTS, or MAX_TEXT_BYTES of text.
        """
        content = text if encoding is not None else clean(text)
        self._bytes += len(content.encode("utf-8", "surrogatepass"))
        if self._bytes > MAX_TEXT_BYTES:
            raise DocumentError(f"its text is larger than {format_bytes(MAX_TEXT_BYTES)}")
        check_count(len(self._parts) + 1)
        self._parts.append(Part(self._unique(name), content, encoding))

    def absorb(self, prefix: str, parsed: ParsedDocument) -> None:
        """Append the parts of a document that lies in this one."""
        for part in parsed.parts:
            self.add(join(prefix, part.name), part.content, encoding=part.encoding)
        for name, reason in parsed.skipped:
            self.skip(join(prefix, name), reason)
        for warning in parsed.warnings:
            self.warn(f"{prefix}: {warning}")

    def skip(self, name: str, reason: str) -> None:
        check_count(len(self._skipped) + 1)
        self._skipped.append((name, reason))

    def warn(self, text: str) -> None:
        if len(self._warnings) < MAX_WARNINGS:
            self._warnings.append(text)

    def done(self) -> ParsedDocument:
        """Return what was collected."""
        return ParsedDocument(tuple(self._parts), tuple(self._skipped), tuple(self._warnings))

    def _unique(self, name: str) -> str:
        unique, number = name, 2
        while unique in self._names:
            unique = f"{name}~{number}" if name else f"part={number}"
            number += 1
        self._names.add(unique)
        return unique


Parser = Callable[[bytes], ParsedDocument]


def check_count(count: int, *, what: str = "parts") -> None:
    """Refuse a document of too many parts, before they are read where the count is known.

    Raises:
        DocumentError: `count` is more than MAX_PARTS.
    """
    if count > MAX_PARTS:
        raise DocumentError(f"more than {MAX_PARTS:,} {what}")


def single(text: str) -> ParsedDocument:
    """Return a document that is one text."""
    parts = Parts()
    parts.add("", text)
    return parts.done()


def plain_text(data: bytes, *, warning: str | None = None) -> ParsedDocument:
    """Return what turned out to be no document as the text that it is.

    Raises:
        DocumentError: its bytes are no text.
    """
    return as_written(decoded_text(data), warning=warning)


def decoded_text(data: bytes) -> DecodedText:
    """Decode the bytes of a document that is a text.

    Raises:
        DocumentError: they are no text.
    """
    decoded = decode_text(data)
    if decoded is None:
        raise DocumentError("binary")
    return decoded


def as_written(decoded: DecodedText, *, warning: str | None = None) -> ParsedDocument:
    """Return a text as the document that it is."""
    warnings = tuple(one for one in (warning, decoded.warning) if one is not None)
    return ParsedDocument((Part("", decoded.content, decoded.encoding),), (), warnings)


def label(kind: str, name: str) -> str:
    """Name a part after a sheet, attachment or the like, so that the name survives in prose.

    Runs of blanks, brackets, quotes and other marks that end a path become `_`.
    """
    shown = _NOT_IN_LABEL.sub("_", name).strip("_")[:MAX_LABEL_CHARS]
    return f"{kind}={_SURROGATES.sub('_', shown) or 'unnamed'}"


def join(outer: str, inner: str) -> str:
    """Name a part of a part: `attachment=a.pdf#page=3`."""
    return f"{outer}#{inner}" if outer and inner else outer or inner


def clean(text: str) -> str:
    """Return extracted text with LF, without controls, trailing blanks or runs of blank lines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x0b", "\n")
    text = _SURROGATES.sub("\ufffd", text.translate(_CONTROLS))
    text = "\n".join(line.rstrip(" \t\u00a0") for line in text.split("\n"))
    text = _BLANK_LINES.sub("\n\n", text).strip("\n")
    return f"{text}\n" if text.strip() else ""
