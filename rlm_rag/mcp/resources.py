"""The documents of the corpus as resources, each with an address of its own."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import islice
from urllib.parse import parse_qsl, quote, unquote

from rlm_rag.corpus import Corpus, Document
from rlm_rag.errors import RetrievalError
from rlm_rag.lines import line_starts
from rlm_rag.mcp.replies import MAX_REPLY_CHARS
from rlm_rag.shown import printable, printable_line

PAGE_SIZE = 200
MAX_COMPLETIONS = 100
TEMPLATE = "corpus:///{+path}{?start,end}"

_PREFIX = "corpus:///"
_HINT = "addresses are as resources/list gives them, lines as ?start=1&end=40"
_NUMBER = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, slots=True)
class Listed:
    """A document as a list names it; the size is in bytes of UTF-8."""

    uri: str
    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines of a document, or what is said of those left out, under the address to read them."""

    uri: str
    text: str


def uri_of(path: str, start: int | None = None, end: int | None = None) -> str:
    """Return the address of a document, or of lines of it."""
    lines = [f"{name}={line}" for name, line in (("start", start), ("end", end)) if line]
    query = f"?{'&'.join(lines)}" if lines else ""
    return f"{_PREFIX}{_quoted(path)}{query}"


def listed(corpus: Corpus, cursor: str | None) -> tuple[list[Listed], str | None]:
    """Return a page of the documents, and the cursor of the next one where there is one.

    Raises:
        RetrievalError: the cursor is none that was given.
    """
    if cursor is not None and not _NUMBER.fullmatch(cursor):
        raise RetrievalError(f"no list has the cursor {cursor[:40]!r}", hint="list from the start")
    first = int(cursor or 0)
    each = zip(corpus.paths(), corpus.byte_counts(), strict=True)
    page = [
        Listed(uri_of(path), printable_line(path), size)
        for path, size in islice(each, first, first + PAGE_SIZE)
    ]
    after = first + len(page)
    return page, str(after) if after < len(corpus) else None


def read(corpus: Corpus, uri: str) -> list[Piece]:
    """Return the text of a document, or of its lines `start` to `end`, as the source has it.

    At most `MAX_REPLY_CHARS` characters, in whole lines where one fits; a second piece then says
    what was left out, and its address is that of the rest.

    Raises:
        RetrievalError: the address is none, or there is no such document or line.
    """
    document, start, end = _meant(corpus, uri)
    text, count = document.content, document.line_count
    if not text and start == 1:
        return [Piece(uri, "")]
    if start > count or (end is not None and end < start):
        raise RetrievalError(
            f"{printable_line(document.path)} has {count:,} lines, none from {start} to "
            f"{end or 'its end'}",
            hint=_HINT,
        )
    starts = [*line_starts(text), len(text)]
    last = count if end is None else min(end, count)
    begins = starts[start - 1]
    # The last line that still fits, and at least one.
    fits = max(start, bisect_right(starts, begins + MAX_REPLY_CHARS) - 1)
    kept = text[begins : starts[min(last, fits)]]
    pieces = [Piece(uri, printable(kept[:MAX_REPLY_CHARS]))]
    if len(kept) > MAX_REPLY_CHARS:
        said = f"line {start} has {len(kept):,} characters, of which the first {MAX_REPLY_CHARS:,}"
        pieces.append(Piece(uri, f"{said} are given; grep shows what is around a match in it"))
    if fits < last:
        rest = uri_of(document.path, fits + 1, end)
        pieces.append(Piece(rest, f"lines {fits + 1} to {last} are left out: read {rest}"))
    return pieces


def completed(corpus: Corpus, begun: str) -> tuple[list[str], int]:
    """Return the paths that begin so as the template takes them, and how many there are.

    At most `MAX_COMPLETIONS`.
    """
    quoted = ((path, _quoted(path)) for path in corpus.paths())
    found = [value for path, value in quoted if path.startswith(begun) or value.startswith(begun)]
    return found[:MAX_COMPLETIONS], len(found)


def _quoted(path: str) -> str:
    return quote(path, safe="/", errors="surrogatepass")


def _meant(corpus: Corpus, uri: str) -> tuple[Document, int, int | None]:
    if not uri.startswith(_PREFIX):
        raise RetrievalError(f"{printable_line(uri[:200])} is no address of a document", hint=_HINT)
    named = uri.removeprefix(_PREFIX)
    # A name may hold a question mark that nobody encoded.
    path, _, query = (named, "", "") if _document(corpus, named) else named.rpartition("?")
    document = _document(corpus, path or query)
    if document is None:
        raise RetrievalError(f"there is no document {printable_line(uri[:200])}", hint=_HINT)
    lines = dict(parse_qsl(query)) if path else {}
    return document, _line(lines, "start") or 1, _line(lines, "end")


def _document(corpus: Corpus, quoted: str) -> Document | None:
    try:
        return corpus.get(unquote(quoted, errors="surrogatepass"))
    except UnicodeDecodeError:
        return None


def _line(lines: dict[str, str], name: str) -> int | None:
    value = lines.get(name)
    if value is None:
        return None
    if not _NUMBER.fullmatch(value) or int(value) < 1:
        raise RetrievalError(f"{name}={value[:40]!r} is no line: lines count from 1", hint=_HINT)
    return int(value)
