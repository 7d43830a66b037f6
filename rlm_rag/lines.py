"""The lines of a document: counted in one way, for every index, outline, hit and citation.

A line ends at LF or CRLF; at CR only in a document that has no LF; at nothing else (not U+2028,
NEL, VT, FF). An empty document has none, and a final terminator adds none. Standard library
alone: sandboxed workers import it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate, count
from operator import add

# `typing` would be a sixth of the time that a sandboxed worker takes to start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterator, Sequence
    from typing import AnyStr

    BytesLike = bytes | bytearray | memoryview | mmap.mmap

_CHUNK = 1 << 20


def count_lines(data: str | BytesLike) -> int:
    """Count the lines of a document's text or UTF-8 bytes."""
    if len(data) == 0:
        return 0
    terminators = _count(data, "\n", b"\n")
    lf = terminators > 0
    if not lf:
        terminators = _count(data, "\r", b"\r")
    last = data[len(data) - 1]
    ended = last in (("\n", 10) if lf else ("\r", 13))
    return terminators if ended else terminators + 1


def line_starts(data: str | BytesLike) -> array[int]:
    """Return the offset at which each line starts: bytes for bytes, characters for a str.

    There are as many as `count_lines` counts.
    """
    starts: array[int] = array("Q")
    if len(data) == 0:
        return starts
    starts.append(0)
    lf = _count(data, "\n", b"\n") > 0
    for base, piece in _pieces(data):
        lengths: Iterator[int]
        if isinstance(piece, str):
            lengths = map(len, piece.split("\n" if lf else "\r")[:-1])
        else:
            lengths = map(len, piece.split(b"\n" if lf else b"\r")[:-1])
        starts.extend(map(add, accumulate(lengths), count(base + 1)))
    if starts[-1] == len(data):
        starts.pop()
    return starts


def line_at(starts: Sequence[int], offset: int) -> int:
    """Return the 1-based line that holds `offset`, given `line_starts`; 0 if there are no lines."""
    return bisect_right(starts, offset)


def split_lines(text: str) -> list[str]:
    """Split a document's text into its lines, without their terminators."""
    return _split(text, "\n", "\r")


def split_lines_bytes(data: BytesLike) -> list[bytes]:
    """Split a document's UTF-8 bytes into its lines, without their terminators."""
    return _split(bytes(data), b"\n", b"\r")


def _split(data: AnyStr, lf: AnyStr, cr: AnyStr) -> list[AnyStr]:
    if not data:
        return []
    terminator = lf if lf in data else cr
    lines = data.split(terminator)
    last = lines.pop()
    if terminator == lf and cr in data:
        lines = [line[:-1] if line.endswith(cr) else line for line in lines]
    if last:
        lines.append(last)
    return lines


def _pieces(data: str | BytesLike) -> Iterator[tuple[int, str | bytes | bytearray]]:
    for base in range(0, len(data), _CHUNK):
        piece = data[base : base + _CHUNK]
        yield base, bytes(piece) if isinstance(piece, memoryview) else piece


def _count(data: str | BytesLike, text: str, byte: bytes) -> int:
    if isinstance(data, str):
        return data.count(text)
    if isinstance(data, (bytes, bytearray)):
        return data.count(byte)
    return sum(
        bytes(data[base : base + _CHUNK]).count(byte) for base in range(0, len(data), _CHUNK)
    )
