"""Files that archives are read through: they refuse to be read larger than archives may be."""

from __future__ import annotations

import io
import os
from typing import IO, Protocol

from rlm_rag.loaders.files import format_bytes

MAX_UNPACKED_BYTES = 8 << 30
MAX_RATIO = 200
"""The most that real text gains is about 50 (logs, generated code); a bomb gains a thousand."""

_LEAST_RATED_BYTES = 256 << 20
_CHUNK_BYTES = 1 << 20


class Readable(Protocol):
    """What bytes are read from, one after the other."""

    def read(self, size: int, /) -> bytes: ...


class TooLarge(Exception):
    """An archive unpacks to more than it may; the text says of what there is too much."""


class BoundedFile(io.RawIOBase):
    """A file of which no single read is larger than `most_bytes`.

    Archives name the size of their own tables, which readers take into memory at once.
    """

    def __init__(self, file: IO[bytes], *, most_bytes: int) -> None:
        super().__init__()
        self._file = file
        self._most_bytes = most_bytes
        self._unpacked = Unpacked(file)

    def count(self, size_bytes: int) -> None:
        """Add to what came out of the archive.

        Raises:
            TooLarge: it is too much by now.
        """
        self._unpacked.count(size_bytes)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        return _read_bounded(self._file, size, self._most_bytes)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


class ForwardFile(io.RawIOBase):
    """A decompressed stream that is only read onwards, with the bounds of `BoundedFile`.

    `packed` is the file that it comes from.
    """

    def __init__(self, stream: Readable, packed: IO[bytes], *, most_bytes: int) -> None:
        super().__init__()
        self._stream = stream
        self._most_bytes = most_bytes
        self._unpacked = Unpacked(packed)
        self._place = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        data = _read_bounded(self._stream, size, self._most_bytes)
        self._place += len(data)
        self._unpacked.count(len(data))
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if whence != os.SEEK_SET or offset < self._place:
            raise io.UnsupportedOperation("only onwards")
        while self._place < offset and self.read(min(_CHUNK_BYTES, offset - self._place)):
            pass
        return self._place

    def tell(self) -> int:
        return self._place


class Unpacked:
    """Counts what came out of a packed file."""

    def __init__(self, packed: IO[bytes]) -> None:
        place = packed.tell()
        self._packed_bytes = packed.seek(0, os.SEEK_END)
        packed.seek(place)
        self._bytes = 0

    def count(self, size_bytes: int) -> None:
        """Add to what came out.

        Raises:
            TooLarge: it is too much, or too much for the size of the packed file.
        """
        self._bytes += size_bytes
        if self._bytes > MAX_UNPACKED_BYTES:
            raise TooLarge(f"it unpacks to more than {format_bytes(MAX_UNPACKED_BYTES)}")
        if self._bytes > max(_LEAST_RATED_BYTES, MAX_RATIO * self._packed_bytes):
            raise TooLarge(f"it unpacks to more than {MAX_RATIO} times its size")


def _read_bounded(file: Readable, size: int, most_bytes: int) -> bytes:
    data = file.read(most_bytes + 1 if size < 0 else size) if size <= most_bytes else None
    if data is None or len(data) > most_bytes:
        raise TooLarge(f"a table of more than {format_bytes(most_bytes)}")
    return data
