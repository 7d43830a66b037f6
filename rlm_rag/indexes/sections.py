"""The sections of a segment that is being made, in files rather than in memory."""

from __future__ import annotations

import mmap
import zlib
from array import array
from contextlib import suppress
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import BinaryIO

from rlm_rag.indexes.segment import (
    ALIGNED_BYTES,
    PAGE_BYTES,
    PAGED,
    PAGES,
    SECTIONS,
    Segment,
    encode_head,
)
from rlm_rag.indexes.tables import BytesLike

_COPY_BYTES = 1 << 20


class SpooledSection:
    """A section that is written piece by piece, with the sums that tell whether it is damaged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("wb")
        self.size_bytes = 0
        self.crc = 0
        self.page_crcs: array[int] = array("I")
        self._page_crc = 0

    def write(self, data: BytesLike) -> None:
        """Append; OSError where it cannot be written."""
        self._file.write(data)
        with memoryview(data) as view:
            self.crc = zlib.crc32(view, self.crc)
            at = 0
            while at < len(view):
                end = min(len(view), at + PAGE_BYTES - self.size_bytes % PAGE_BYTES)
                self._page_crc = zlib.crc32(view[at:end], self._page_crc)
                self.size_bytes += end - at
                at = end
                if self.size_bytes % PAGE_BYTES == 0:
                    self.page_crcs.append(self._page_crc)
                    self._page_crc = 0

    def finish(self) -> Path:
        """Write out what is left, and return where all of it lies."""
        if not self._file.closed:
            self._file.close()
            if self.size_bytes % PAGE_BYTES:
                self.page_crcs.append(self._page_crc)
        return self._path

    def close(self) -> None:
        """Let go of its file, finished or not."""
        # Where the disk is full, what is left cannot be written out, and nobody reads it.
        with suppress(OSError):
            self._file.close()


class SpooledSections:
    """The sections of a segment that is being made, in files of a folder."""

    def __init__(self, folder: Path, stamp: bytes) -> None:
        self._stamp = stamp
        self.folder = folder
        self._sections: dict[str, SpooledSection] = {}

    def __getitem__(self, name: str) -> SpooledSection:
        found = self._sections.get(name)
        if found is None:
            found = self._sections[name] = SpooledSection(self.folder / name)
        return found

    def write_to(self, file: BinaryIO) -> None:
        """Write the segment; OSError where it cannot be written."""
        paths = {name: self[name].finish() for name in SECTIONS if name != PAGES}
        pages = b"".join(self[name].page_crcs.tobytes() for name in PAGED)
        told = {
            name: (one.size_bytes, 0 if name in PAGED else one.crc)
            for name, one in self._sections.items()
        }
        told[PAGES] = len(pages), zlib.crc32(pages)
        written = file.write(encode_head(self._stamp, told))
        for name in SECTIONS:
            written += file.write(bytes(-written % ALIGNED_BYTES))
            if name == PAGES:
                file.write(pages)
            else:
                with paths[name].open("rb") as section:
                    copyfileobj(section, file, _COPY_BYTES)
            written += told[name][0]

    def opened(self) -> Segment:
        """Open the segment, written to a file that has no name; OSError where it cannot be."""
        with TemporaryFile(dir=self.folder) as file:
            self.write_to(file)
            file.flush()
            return Segment(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), self._stamp)

    def close(self) -> None:
        """Let go of their files; nothing can be written any more."""
        for section in self._sections.values():
            section.close()

    def mapped(self, name: str) -> memoryview:
        """Return a section that is written to the end, without holding it in memory."""
        path = self[name].finish()
        if not path.stat().st_size:
            return memoryview(b"")
        with path.open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
