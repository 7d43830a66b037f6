"""A segment: the postings of some documents, written once, in a file or in memory.

Documents are known by the digest of their path and content, so that a segment never goes out
of date: a document that changed is another one, and the old one is merely not asked for. What
is read is checked first, the postings by pages, so that opening costs no more than its tables.

Layout, in the machine's own byte order: magic | stamp | sections (offset, bytes, CRC-32 each) |
CRC-32 of all that | sections, each at a multiple of 8.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path

from rlm_rag.indexes.tables import BytesLike, Table
from rlm_rag.packed import DIGEST_BYTES

STAMP_BYTES = 16
WORDS, TERMS, DEFINED = "words", "terms", "defined"
# A posting is `window << 8 | count`, in 32 bits.
MAX_COUNT = 255
MAX_WINDOWS = 1 << 24
_TABLES = (WORDS, TERMS, DEFINED)
_SECTIONS = (
    "digests",
    "window_counts",
    "window_lengths",
    "document_lengths",
    *(f"{table}.{part}" for table in _TABLES for part in ("keys", "key_ends", "value_ends")),
    "pages",
    *(f"{table}.values" for table in _TABLES),
)
_MAGIC = b"RLMSEG\x00\x01"
_ROW = struct.Struct("=QQI")
_CRC = struct.Struct("=I")
_HEAD_BYTES = len(_MAGIC) + STAMP_BYTES + len(_SECTIONS) * _ROW.size + _CRC.size
# Small enough to be read for one term, large enough that their sums cost nothing.
_PAGE_BYTES = 1 << 16
PAGE_VALUES = _PAGE_BYTES // 4


class SegmentError(Exception):
    """A segment is damaged, or of another version; it never leaves `indexes`."""


def encode_segment(stamp: bytes, sections: Mapping[str, BytesLike]) -> bytearray:
    """Write a segment; `sections` are all but `pages`."""
    sums: array[int] = array("I")
    for table in _TABLES:
        with memoryview(sections[f"{table}.values"]) as values:
            sums.extend(zlib.crc32(page) for page in _pages(values))
    written: dict[str, BytesLike] = {**sections, "pages": sums.tobytes()}
    head = bytearray(_MAGIC + stamp)
    segment = bytearray(_HEAD_BYTES)
    for name in _SECTIONS:
        segment += bytes(-len(segment) % 8)
        data = written[name]
        checked = 0 if name.endswith(".values") else zlib.crc32(data)
        head += _ROW.pack(len(segment), len(data), checked)
        segment += data
    head += _CRC.pack(zlib.crc32(head))
    segment[:_HEAD_BYTES] = head
    return segment


def _pages(values: memoryview) -> Iterator[memoryview]:
    return (values[at : at + _PAGE_BYTES] for at in range(0, len(values), _PAGE_BYTES))


class Segment:
    """A segment that can be read: its documents in their own order, and its three tables.

    `words` are raw words with their postings (`window << 8 | count`, windows counted within
    the segment), `terms` give the numbers of the raw words that stand for them, `defined` the
    windows in which a name is defined.

    Raises:
        SegmentError: it is damaged, or its stamp is not `stamp`; from `values` and `check` too.
    """

    __slots__ = ("_data", "_page_firsts", "_sections", "_sums", "_tables", "_unchecked", "path")

    def __init__(self, data: bytes | bytearray | mmap.mmap, stamp: bytes) -> None:
        self.path: Path | None = None
        self._data = memoryview(data)
        self._sections = self._read_head(stamp)
        self._tables = {
            name: Table(
                self._section(f"{name}.keys"),
                self._section(f"{name}.key_ends"),
                self._section(f"{name}.value_ends"),
            )
            for name in _TABLES
        }
        self._sums = self._section("pages").cast("I")
        self._page_firsts: dict[str, int] = {}
        pages = 0
        for name in _TABLES:
            self._page_firsts[name] = pages
            pages += -(-self._sections[f"{name}.values"][1] // _PAGE_BYTES)
        if pages != len(self._sums):
            raise SegmentError("its pages are not those of its tables")
        self._unchecked = bytearray(b"\x01") * pages

    @classmethod
    def open(cls, path: Path, stamp: bytes) -> Segment:
        """Map a file.

        Raises:
            OSError: it cannot be read.
            SegmentError: it is damaged, or not of this stamp.
        """
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            size = os.fstat(descriptor).st_size
            if size < _HEAD_BYTES:
                raise SegmentError("it is too short")
            segment = cls(mmap.mmap(descriptor, size, access=mmap.ACCESS_READ), stamp)
        finally:
            os.close(descriptor)
        segment.path = path
        return segment

    @property
    def size_bytes(self) -> int:
        """How many bytes the whole of it takes."""
        return len(self._data)

    def digests(self) -> list[bytes]:
        """Return the digests of its documents."""
        data = bytes(self._section("digests"))
        return [data[at : at + DIGEST_BYTES] for at in range(0, len(data), DIGEST_BYTES)]

    def numbers(self, name: str) -> memoryview:
        """Return `window_counts` or `document_lengths` (by document), or `window_lengths`."""
        return self._section(name).cast("I")

    def table(self, name: str) -> Table:
        """Return the table `words`, `terms` or `defined`."""
        return self._tables[name]

    def values(self, name: str, number: int) -> memoryview:
        """Return the values of a table's numbered key, their pages checked."""
        first, last = self._tables[name].span(number)
        values = self.all_values(name)
        if not first <= last <= len(values):
            raise SegmentError("a table points outside of its values")
        base = self._page_firsts[name]
        for page in range(first // PAGE_VALUES, -(-last // PAGE_VALUES)):
            if self._unchecked[base + page]:
                self._check_page(name, page)
        return values[first:last]

    def all_values(self, name: str) -> memoryview:
        """Return the values of all keys of a table, as they are: see `unchecked`."""
        return self._section(f"{name}.values").cast("I")

    def unchecked(self, name: str) -> memoryview:
        """Return, for each page of `PAGE_VALUES` of a table's values, 0 if it was checked."""
        first = self._page_firsts[name]
        pages = -(-self._sections[f"{name}.values"][1] // _PAGE_BYTES)
        return memoryview(self._unchecked)[first : first + pages]

    def check(self) -> None:
        """Read all of it, and compare every sum."""
        for name in _TABLES:
            size = self._sections[f"{name}.values"][1]
            for page in range(-(-size // _PAGE_BYTES)):
                self._check_page(name, page)

    def _check_page(self, name: str, page: int) -> None:
        start, size, _ = self._sections[f"{name}.values"]
        at = start + page * _PAGE_BYTES
        number = self._page_firsts[name] + page
        found = self._data[at : min(at + _PAGE_BYTES, start + size)]
        if zlib.crc32(found) != self._sums[number]:
            raise SegmentError("a page of its postings is damaged")
        self._unchecked[number] = 0

    def _section(self, name: str) -> memoryview:
        start, size, _ = self._sections[name]
        return self._data[start : start + size]

    def _read_head(self, stamp: bytes) -> dict[str, tuple[int, int, int]]:
        head = bytes(self._data[:_HEAD_BYTES])
        if not head.startswith(_MAGIC):
            raise SegmentError("it is no segment of this version")
        if head[len(_MAGIC) : len(_MAGIC) + STAMP_BYTES] != stamp:
            raise SegmentError("it was made by another version of the analysis")
        if _CRC.unpack(head[-_CRC.size :])[0] != zlib.crc32(head[: -_CRC.size]):
            raise SegmentError("its head is damaged")
        rows = _ROW.iter_unpack(head[len(_MAGIC) + STAMP_BYTES : -_CRC.size])
        sections = dict(zip(_SECTIONS, rows, strict=True))
        for name, (start, size, checked) in sections.items():
            data = self._data[start : start + size]
            if len(data) != size:
                raise SegmentError("its end is missing")
            if not name.endswith(".values") and zlib.crc32(data) != checked:
                raise SegmentError(f"its {name} are damaged")
        return sections
