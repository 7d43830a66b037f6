"""A segment: the postings of some documents, written once, in a file or in memory.

Documents are known by the digest of their path and content, so that a segment never goes out
of date: a document that changed is another one, and the old one is merely not asked for. What
is read is checked first, the postings by pages, so that opening costs no more than its tables.

The words of each document are kept in their order too, by number, so that the lines which hold a
term are found without the text.

Layout, in the machine's own byte order: magic | stamp | sections (offset, bytes, CRC-32 each) |
CRC-32 of all that | sections, each at a multiple of 8.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from rlm_rag.indexes.tables import Table
from rlm_rag.packed import DIGEST_BYTES

STAMP_BYTES = 16
WORDS, TERMS, DEFINED, COMMON = "words", "terms", "defined", "common"
# Of each common term, how many windows and how many documents hold it.
COMMON_WINDOWS, COMMON_DOCUMENTS = f"{COMMON}.windows", f"{COMMON}.documents"
# A posting is `window << 8 | count`, in 32 bits.
MAX_COUNT = 255
MAX_WINDOWS = 1 << 24
# What stands for an offset that 32 bits do not hold.
FAR = (1 << 32) - 1
SEQUENCE, PAGES = "sequence", "pages"
_TABLES = (WORDS, TERMS, DEFINED, COMMON)
PAGED = (*(f"{table}.values" for table in _TABLES), SEQUENCE)
"""Sections that are large, and so checked page by page."""
SECTIONS = (
    "digests",
    "kinds",
    "window_counts",
    "window_lengths",
    "stretch_offsets",
    "document_lengths",
    "sequence_firsts",
    *(f"{table}.{part}" for table in _TABLES for part in ("keys", "key_ends", "value_ends")),
    COMMON_WINDOWS,
    COMMON_DOCUMENTS,
    PAGES,
    *PAGED,
)
# Sections lie at multiples of it.
ALIGNED_BYTES = 8
_MAGIC = b"RLMSEG\x00\x05"
_ROW = struct.Struct("=QQI")
_CRC = struct.Struct("=I")
_HEAD_BYTES = len(_MAGIC) + STAMP_BYTES + len(SECTIONS) * _ROW.size + _CRC.size
SIZE_BYTES = 8
"""The bytes that tell the size of a segment which is sent behind them, the lowest first."""
# Small, since most of what a term has is: of pages of 64 KB it reads ten times what it needs.
PAGE_BYTES = 1 << 12
PAGE_VALUES = PAGE_BYTES // 4
# Numbers of words take two bytes where they can.
_MOST_SHORT_NUMBERS = 1 << 16


def number_bytes(words: int) -> int:
    """Return how many bytes a word takes in a sequence, where there are so many words."""
    return 2 if words < _MOST_SHORT_NUMBERS else 4


class SegmentError(Exception):
    """A segment is damaged, or of another version; it never leaves `indexes`."""


def encode_head(stamp: bytes, told: Mapping[str, tuple[int, int]]) -> bytes:
    """Return the head of a segment, whose sections follow it, each after what aligns it.

    `told` are their bytes and their CRC-32, which is 0 of those that are checked by pages.
    """
    head = bytearray(_MAGIC + stamp)
    place = _HEAD_BYTES
    for name in SECTIONS:
        size, checked = told[name]
        place += -place % ALIGNED_BYTES
        head += _ROW.pack(place, size, checked)
        place += size
    head += _CRC.pack(zlib.crc32(head))
    return bytes(head)


def _values_of(name: str) -> str:
    return name if name == SEQUENCE else f"{name}.values"


class Segment:
    """A segment that can be read: its documents in their own order, and its four tables.

    `words` are raw words with their postings (`window << 8 | count`, windows counted within
    the segment), `terms` give the numbers of the raw words that stand for them, `defined` the
    windows in which a name is defined, `common` the postings of terms that have many. Beside
    them lies the sequence of the words of the texts.

    Raises:
        SegmentError: it is damaged, or its stamp is not `stamp`; from what reads its pages too.
    """

    __slots__ = (
        "_data",
        "_page_firsts",
        "_sections",
        "_sums",
        "_tables",
        "_unchecked",
        "_values",
        "path",
    )

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
        self._values = {name: self._section(f"{name}.values").cast("I") for name in _TABLES}
        self._sums = self._section(PAGES).cast("I")
        self._page_firsts: dict[str, int] = {}
        pages = 0
        for name in PAGED:
            self._page_firsts[name] = pages
            pages += self._page_count(name)
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

    def spans(self) -> dict[str, tuple[int, int]]:
        """Return where in it each section begins, and how many bytes it has."""
        return {name: (start, size) for name, (start, size, _) in self._sections.items()}

    def digests(self) -> list[bytes]:
        """Return the digests of its documents."""
        data = bytes(self._section("digests"))
        return [data[at : at + DIGEST_BYTES] for at in range(0, len(data), DIGEST_BYTES)]

    def kinds(self) -> memoryview:
        """Return the number of each document's kind, in one byte."""
        return self._section("kinds")

    def numbers(self, name: str) -> memoryview:
        """Return `window_counts` or `document_lengths`, by document, or what is by window or term.

        `common.windows` and `common.documents`, how many hold each of the keys of that table,
        `window_lengths`, or what is by the first two stretches of each (`window_borders`):
        `stretch_offsets`, where in its document's text each begins, in bytes, or `FAR`, and
        `sequence_firsts`, where in the sequence, and at last where that ends.
        """
        return self._section(name).cast("I")

    def table(self, name: str) -> Table:
        """Return the table `words`, `terms`, `defined` or `common`."""
        return self._tables[name]

    def values(self, name: str, number: int) -> memoryview:
        """Return the values of a table's numbered key, their pages checked."""
        first, last = self._tables[name].span(number)
        values = self._values[name]
        if not first <= last <= len(values):
            raise SegmentError("a table points outside of its values")
        pages = range(first // PAGE_VALUES, -(-last // PAGE_VALUES))
        base = self._page_firsts[_values_of(name)]
        if self._unchecked.find(1, base + pages.start, base + pages.stop) >= 0:
            self.check_pages(name, pages)
        return values[first:last]

    def sequence(self) -> memoryview:
        """Return the words of all texts in their order, as they are: see `unchecked`.

        Each is its number among `words` and 1 more, in 16 or 32 bits; a 0 ends a line.
        """
        size = number_bytes(self._tables[WORDS].count)
        return self._section(SEQUENCE).cast("H" if size == 2 else "I")

    def check_pages(self, name: str, pages: Iterable[int]) -> None:
        """Check pages of a table's values or of the sequence, by their numbers there."""
        name = _values_of(name)
        start, size, _ = self._sections[name]
        data, first = self._data[start : start + size], self._page_firsts[name]
        sums, unchecked, crc32 = self._sums, self._unchecked, zlib.crc32
        for page in pages:
            if unchecked[first + page]:
                at = page * PAGE_BYTES
                if crc32(data[at : at + PAGE_BYTES]) != sums[first + page]:
                    raise SegmentError("a page of its words is damaged")
                unchecked[first + page] = 0

    def all_values(self, name: str) -> memoryview:
        """Return the values of all keys of a table, as they are: see `unchecked`."""
        return self._values[name]

    def unchecked(self, name: str) -> memoryview:
        """Return, for each page of a table's values or of the sequence, 0 if it was checked.

        A page has `PAGE_VALUES` of a table's values.
        """
        name = _values_of(name)
        first = self._page_firsts[name]
        return memoryview(self._unchecked)[first : first + self._page_count(name)]

    def check(self) -> None:
        """Read all of it, and compare every sum."""
        self._unchecked[:] = b"\x01" * len(self._unchecked)
        for name in (*_TABLES, SEQUENCE):
            self.check_pages(name, range(self._page_count(_values_of(name))))

    def _page_count(self, name: str) -> int:
        return -(-self._sections[name][1] // PAGE_BYTES)

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
        sections = dict(zip(SECTIONS, rows, strict=True))
        for name, (start, size, checked) in sections.items():
            data = self._data[start : start + size]
            if len(data) != size:
                raise SegmentError("its end is missing")
            if name not in PAGED and zlib.crc32(data) != checked:
                raise SegmentError(f"its {name} are damaged")
        return sections
