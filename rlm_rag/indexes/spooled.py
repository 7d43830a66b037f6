"""A segment in a file, of which as much is read as is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.encoded import EncodedSegment
from rlm_rag.indexes.segment import SEQUENCE, Segment

Numbers = NDArray[np.uint32]


class SpooledSegment:
    """A segment in a file of its own, of which as much is read as is asked for.

    The file is open only while it is read: there may be more of them than a process may open.
    """

    def __init__(self, path: Path, data: EncodedSegment, stamp: bytes) -> None:
        """Write it; OSError where it cannot be written."""
        with path.open("wb") as file:
            data.write_to(file)
        segment = Segment.open(path, stamp)
        self._spans = segment.spans()
        self._word_bytes = segment.sequence().itemsize
        self._path = path

    def count(self, name: str) -> int:
        """Return how many 32-bit numbers a section has."""
        return self._spans[name][1] // 4

    def data(self, name: str, first: int = 0, end: int | None = None) -> bytes:
        """Return the bytes of a section, or those from one place in it to before another."""
        start, size = self._spans[name]
        with self._path.open("rb") as file:
            file.seek(start + first)
            return file.read((size if end is None else end) - first)

    def numbers(self, name: str, first: int = 0, end: int | None = None) -> Numbers:
        """Return the 32-bit numbers of a section, or some that follow one another."""
        data = self.data(name, first * 4, None if end is None else end * 4)
        return np.frombuffer(data, np.uint32)

    def sequence(self, *, most: int) -> Iterator[NDArray[np.unsignedinteger]]:
        """Yield the words of its text in their order, so many at a time."""
        _, size = self._spans[SEQUENCE]
        for at in range(0, size, most * self._word_bytes):
            piece = self.data(SEQUENCE, at, min(at + most * self._word_bytes, size))
            yield np.frombuffer(piece, f"u{self._word_bytes}")
