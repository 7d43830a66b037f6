"""A segment that was made in memory, its sections where they were made."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator
from typing import BinaryIO

from rlm_rag.indexes.segment import (
    ALIGNED_BYTES,
    PAGE_BYTES,
    PAGED,
    PAGES,
    SECTIONS,
    encode_head,
)
from rlm_rag.indexes.tables import BytesLike


class EncodedSegment:
    """A segment that can be written as often as is wanted, without lying in memory in one."""

    __slots__ = ("_parts", "size_bytes")

    def __init__(self, stamp: bytes, sections: dict[str, BytesLike]) -> None:
        """Take all sections but `pages`."""
        sums: array[int] = array("I")
        for name in PAGED:
            with memoryview(sections[name]) as values:
                sums.extend(map(zlib.crc32, _pages(values)))
        sections = {**sections, PAGES: sums.tobytes()}
        told = {
            name: (len(data), 0 if name in PAGED else zlib.crc32(data))
            for name, data in sections.items()
        }
        self._parts: list[BytesLike] = [encode_head(stamp, told)]
        self.size_bytes = len(self._parts[0])
        for name in SECTIONS:
            self._parts += bytes(-self.size_bytes % ALIGNED_BYTES), sections[name]
            self.size_bytes += len(self._parts[-2]) + len(self._parts[-1])

    @classmethod
    def received(cls, segment: bytearray) -> EncodedSegment:
        """Take a segment that another process has made."""
        made = cls.__new__(cls)
        made._parts, made.size_bytes = [segment], len(segment)
        return made

    def write_to(self, file: BinaryIO) -> None:
        """Write it; OSError where it cannot be written."""
        for part in self._parts:
            file.write(part)

    def joined(self) -> bytearray:
        """Return it as one."""
        return bytearray().join(self._parts)


def _pages(values: memoryview) -> Iterator[memoryview]:
    return (values[at : at + PAGE_BYTES] for at in range(0, len(values), PAGE_BYTES))
