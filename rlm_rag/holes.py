"""The texts of a packed corpus with holes: filled in as they come, the oldest taken away again."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

from rlm_rag.errors import PackedCorpusError
from rlm_rag.packed import MAGIC, PackedCorpus, document_digest, encode
from rlm_rag.packing import Described, PackedWriter

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

MOST_HELD_BYTES = 4 << 30
"""Of texts that lie elsewhere and are kept here beside each other, however large the corpus."""

_KEEP_SIZE_AND_PUNCH = 0x01 | 0x02
_CHUNK_BYTES = 8 << 20
_MARKED = re.compile(rb"[^\0]")


def write_holes(corpus: PackedCorpus, path: Path) -> None:
    """Write a packed file of the documents of `corpus` with holes for all texts.

    Raises:
        PackedCorpusError: it cannot be written.
    """
    with PackedWriter(path, shape=corpus.shape, holes=True) as writer:
        for number in range(len(corpus)):
            writer.leave(Described.of(corpus, number))


def pieces_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield what a copy of a packed file is made of, each piece with its offset in the file.

    Where it has holes they are holes in the copy, whatever texts are in them here.

    Raises:
        PackedCorpusError, OSError: it cannot be read.
    """
    with PackedCorpus.open(path) as corpus:
        start = 0
        if corpus.has_holes:
            yield 0, MAGIC
            start = len(MAGIC) + corpus.total_bytes
            yield start, bytes(len(corpus))
            start += len(corpus)
    with path.open("rb") as file:
        file.seek(start)
        while data := file.read(_CHUNK_BYTES):
            yield start, data
            start += len(data)


class Holes:
    """Fills in the texts of one packed file with holes; safe for threads, and beside others.

    Of what one of them found there or filled in the oldest is taken away, where the system can do
    that, once it is more than `most_bytes`. Each reader sees a text whole or not at all.

    Raises:
        PackedCorpusError: the file is none, or cannot be written.
    """

    def __init__(self, path: Path, *, most_bytes: int = MOST_HELD_BYTES) -> None:
        self.corpus = PackedCorpus.open(path)
        self._most_bytes = most_bytes
        there = [match.start() for match in _MARKED.finditer(self.corpus.marks())]
        self._held = OrderedDict((number, self.corpus.size(number)) for number in there)
        self._held_bytes = sum(self._held.values())
        self._turn = threading.Lock()
        # Never 0, and another one each time: who read while it changed reads again.
        self._marks = cycle(range(1, 256))
        try:
            self._fd = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        except OSError as error:
            self.corpus.close()
            raise PackedCorpusError(f"Cannot write to {path}: {error.strerror}.") from error

    def fill(self, number: int, data: bytes) -> None:
        """Put a document's text into the file.

        Raises:
            PackedCorpusError: it is another text than that of the document; the disk is full.
        """
        corpus = self.corpus
        if document_digest(encode(corpus.path(number)), data) != corpus.digest(number):
            raise PackedCorpusError(f"Another text came for {corpus.path(number)} than was loaded.")
        with self._alone():
            try:
                self._write(corpus.place(number), data)
                self._mark(number, next(self._marks))
                self._held_bytes += len(data) - self._held.pop(number, 0)
                self._held[number] = len(data)
                self._make_room()
            except OSError as error:
                raise PackedCorpusError(
                    f"Cannot hold the text of {corpus.path(number)}: {error.strerror}.",
                    hint="Free space there, or set TMPDIR to a folder with more room.",
                ) from error

    def close(self) -> None:
        """Close the file; idempotent."""
        descriptor, self._fd = self._fd, -1
        if descriptor >= 0:
            os.close(descriptor)
            self.corpus.close()

    def _make_room(self) -> None:
        while self._held_bytes > self._most_bytes and len(self._held) > 1:
            number, size = next(iter(self._held.items()))
            self._mark(number, 0)
            if not _punch(self._fd, self.corpus.place(number), size):
                # Nothing is won by taking it away.
                self._mark(number, next(self._marks))
                return
            del self._held[number]
            self._held_bytes -= size

    def _mark(self, number: int, mark: int) -> None:
        self._write(self.corpus.mark_place(number), bytes((mark,)))

    def _write(self, place: int, data: bytes) -> None:
        view = memoryview(data)
        os.lseek(self._fd, place, os.SEEK_SET)
        while view:
            view = view[os.write(self._fd, view) :]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep others from writing, in this process and in those that have the file open too."""
        with self._turn:
            if fcntl is not None:
                fcntl.flock(self._fd, fcntl.LOCK_EX)
            try:
                yield
            finally:
                if fcntl is not None:
                    fcntl.flock(self._fd, fcntl.LOCK_UN)


def _punch(fd: int, place: int, size: int) -> bool:
    """Give the room of bytes back to the file system; False where it has no way to."""
    if sys.platform != "linux":
        return False
    import ctypes

    fallocate: Any = ctypes.CDLL(None).fallocate64
    arguments = (fd, _KEEP_SIZE_AND_PUNCH, ctypes.c_longlong(place), ctypes.c_longlong(size))
    return bool(fallocate(*arguments) == 0)
