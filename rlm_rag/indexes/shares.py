"""Shares of a document that is too large to be indexed at once, cut where no word is cut."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rlm_rag.indexes.terms import separated
from rlm_rag.packed import PackedCorpus

# A share is a part in 32 of its document within these: what counts it takes some fifteen times its
# bytes where most words are new, as numbers of requests in a log are.
_LEAST_BYTES = 2 << 20
_MOST_BYTES = 16 << 20
_SHARES = 32
_LOOK_BYTES = 1 << 20
_SPACES = re.compile(rb" +")


class Scope(NamedTuple):
    """A definition that encloses what follows it with a greater indent, in columns."""

    indent: int
    name: bytes


@dataclass(frozen=True, slots=True)
class Share:
    """The bytes from `begin` to before `end` of a document of `total_lines` lines.

    `first_line` lines, of which the last may go on in it (`begins_within`), begin before it, and
    `lines` in it, of which the last may go on after it (`ends_within`). `scopes` are what encloses
    its beginning.
    """

    document: int
    begin: int
    end: int
    first_line: int
    lines: int
    total_lines: int
    line_end: bytes
    begins_within: bool = False
    ends_within: bool = False
    scopes: tuple[Scope, ...] = ()

    def to_record(self) -> dict[str, Any]:
        """Return it as JSON has it, with a character for each byte."""
        scopes = [(one.indent, one.name.decode("latin-1")) for one in self.scopes]
        told: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        return told | {"line_end": self.line_end.decode("latin-1"), "scopes": scopes}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Share:
        """Return the share that a record was made of."""
        scopes = tuple(Scope(indent, name.encode("latin-1")) for indent, name in record["scopes"])
        line_end = record["line_end"].encode("latin-1")
        return cls(**{**record, "line_end": line_end, "scopes": scopes})


Piece = Sequence[int] | Share
"""Documents by their numbers, or a share of one."""


def share_bytes(size_bytes: int) -> int:
    """Return how much of a document of that size one share holds."""
    return min(max(-(-size_bytes // _SHARES), _LEAST_BYTES), _MOST_BYTES)


def shares_of(corpus: PackedCorpus, number: int, *, most_bytes: int) -> Iterator[Share]:
    """Cut a document into shares of that many bytes at most, but where one word has more."""
    content = corpus.content_bytes(number)
    line_end = _line_end(content)
    begin = first_line = 0
    within = False
    while begin < len(content):
        end = _border(content, begin, most_bytes, line_end)
        piece = bytes(content[begin:end])
        ended = piece.endswith(line_end)
        lines = piece.count(line_end) + (not ended) - within
        ends_within = not ended and end < len(content)
        yield Share(
            number,
            begin,
            end,
            first_line,
            lines,
            corpus.line_count(number),
            line_end,
            begins_within=within,
            ends_within=ends_within,
        )
        begin, first_line, within = end, first_line + lines, ends_within


def _line_end(content: memoryview) -> bytes:
    for at in range(0, len(content), _LOOK_BYTES):
        if b"\n" in bytes(content[at : at + _LOOK_BYTES]):
            return b"\n"
    return b"\r"


def _border(content: memoryview, begin: int, most_bytes: int, line_end: bytes) -> int:
    """Return where the share that begins there ends: after a line, or else between words."""
    end = begin + most_bytes
    if end >= len(content):
        return len(content)
    piece = bytes(content[begin:end])
    found = piece.rfind(line_end)
    if found < 0:
        found = separated(piece).rfind(b" ")
    if found >= 0:
        return begin + found + 1
    while end < len(content):
        following = _SPACES.search(separated(bytes(content[end : end + most_bytes])))
        if following is not None:
            return end + following.end()
        end += most_bytes
    return len(content)
