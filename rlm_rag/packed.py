"""The packed corpus: one file that is written once and that every process maps read-only.

Opening costs the same whatever the number of documents or bytes: the fixed trailer is read,
the rest is touched only when asked for. Lines were counted when it was written, once, and every
index, outline, hit and citation uses this count. Standard library alone: sandboxed workers
import it.

Layout, little-endian: magic | contents | paths | rows | path order | encodings | trailer.

A file with holes has none of the contents when it is written, and a byte for each document, its
mark, between contents and paths: 0 while the document's text is not there. Whoever fills a text
in changes the mark afterwards, and whoever takes one away sets it to 0 before.
"""

from __future__ import annotations

import mmap
import os
import struct

from rlm_rag.errors import NotHeldError, PackedCorpusError

# `typing` would be a sixth of the time that a sandboxed worker takes to start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType
    from typing import Any

    BytesLike = bytes | bytearray | memoryview | mmap.mmap

SHAPES = ("documents", "text", "texts", "mapping")

MAGIC = b"RLMPACK\x03"
# path offset, path bytes, encoding number, content offset, content bytes, lines, digest
ROW = struct.Struct("<QIIQQQ16s")
DIGEST_BYTES = 16
# A text may be taken away between its coming and its being read; then it is asked for itself.
_TRIES = 4
ORDER = struct.Struct("<Q")
# documents, content bytes, lines, offset of: paths, rows, order, encodings; shape; sha256; magic
TRAILER = struct.Struct("<QQQQQQQ16s32s8s")


def encode(text: str) -> bytes:
    """Return a path or a content as the file holds it."""
    return text.encode("utf-8", "surrogatepass")


def document_digest(path: bytes, content: bytes | memoryview) -> bytes:
    """Return the bytes that stand for a document's path and content together."""
    from hashlib import sha256

    digest = sha256(len(path).to_bytes(8, "little") + path)
    digest.update(content)
    return digest.digest()[:DIGEST_BYTES]


class PackedCorpus:
    """A packed corpus file, mapped read-only; documents are numbered from 0 in their order.

    Safe to use from several threads. Every method raises `PackedCorpusError` where the file
    turns out to be damaged, `IndexError` for a number out of range.
    """

    __slots__ = (
        "_content_end",
        "_count",
        "_encodings",
        "_encodings_at",
        "_fingerprint",
        "_line_total",
        "_map",
        "_marks_at",
        "_order_at",
        "_rows_at",
        "_shape",
        "_view",
        "source",
    )

    def __init__(self, mapped: mmap.mmap) -> None:
        self._map: mmap.mmap | None = mapped
        self._view = memoryview(mapped)
        self._count: int
        self._content_end: int
        self._line_total: int
        self._shape: str
        self._fingerprint: str
        self._marks_at: int | None = None
        self._encodings: tuple[str | None, ...] | None = None
        self.source: Callable[[int, bool], bytes | None] | None = None
        """Asked for a document in a hole: to fill it in, or, of a file it cannot, for its text."""
        self._read_trailer()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> PackedCorpus:
        """Map the file at `path`.

        Raises:
            PackedCorpusError: it is missing, unreadable, no packed corpus, damaged or truncated.
        """
        try:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise PackedCorpusError(
                f"Cannot open the packed corpus {os.fspath(path)}: {reason}."
            ) from error
        try:
            return cls.from_fd(descriptor)
        finally:
            os.close(descriptor)

    @classmethod
    def from_fd(cls, fd: int) -> PackedCorpus:
        """Map the file that an open descriptor stands for; the descriptor stays the caller's.

        Raises:
            PackedCorpusError: it is no packed corpus, damaged or truncated.
        """
        try:
            size = os.fstat(fd).st_size
            if size < len(MAGIC) + TRAILER.size:
                raise _damaged("it is too short")
            mapped = mmap.mmap(fd, size, access=mmap.ACCESS_READ)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise PackedCorpusError(f"Cannot map the packed corpus: {reason}.") from error
        return cls(mapped)

    @property
    def shape(self) -> str:
        """What the caller gave: one of `SHAPES`."""
        return self._shape

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hex, over the digests of all documents, in order."""
        return self._fingerprint

    @property
    def total_bytes(self) -> int:
        """UTF-8 bytes of all contents."""
        return self._content_end - len(MAGIC)

    @property
    def total_lines(self) -> int:
        """Lines of all documents."""
        return self._line_total

    def __len__(self) -> int:
        return self._count

    def path(self, number: int) -> str:
        """Return a document's path."""
        return _decode(self._path_bytes(number))

    def paths(self) -> Iterator[str]:
        """Yield every path, in the documents' order."""
        rows = ROW.iter_unpack(self.rows(range(self._count)))
        return (_decode(self._slice(row[0], row[1], self._rows_at)) for row in rows)

    def rows(self, numbers: range) -> memoryview:
        """Return the rows of documents that follow one another, as the file holds them."""
        if not numbers:
            return self._view[:0]
        self._row(numbers[0])
        self._row(numbers[-1])
        start = self._rows_at + numbers.start * ROW.size
        return self._view[start : start + len(numbers) * ROW.size]

    def names(self, start: int, size: int) -> memoryview:
        """Return the paths that lie one after the other in a stretch, as the file holds them."""
        return self._slice(start, size, self._rows_at)

    def contents(self, numbers: range) -> memoryview:
        """Return the contents of documents that follow one another, as one; none has holes."""
        if not numbers:
            return self._view[:0]
        first, last = self._row(numbers[0]), self._row(numbers[-1])
        return self._slice(first[3], last[3] + last[4] - first[3], self._content_end)

    def content(self, number: int) -> str:
        """Return a document's text."""
        return _decode(self.content_bytes(number))

    def content_bytes(self, number: int) -> memoryview:
        """Return a document's text as UTF-8 (lone surrogates passed), without a copy.

        Of a file with holes it is one, fetched by `source` where it is not there.

        Raises:
            NotHeldError: it is not there, and nobody fetches it.
        """
        row = self._row(number)
        content = self._slice(row[3], row[4], self._content_end)
        if self._marks_at is None or not row[4]:
            return content
        return memoryview(self._held(number, content))

    def size(self, number: int) -> int:
        """Return the length of a document's text in UTF-8 bytes."""
        size: int = self._row(number)[4]
        return size

    @property
    def has_holes(self) -> bool:
        """Whether texts may not be here before they are asked for."""
        return self._marks_at is not None

    def holds(self, number: int) -> bool:
        """Tell whether a document's text is here now."""
        size = self.size(number)
        return self._marks_at is None or not size or self._view[self._marks_at + number] != 0

    def place(self, number: int) -> int:
        """Return where in the file a document's text begins."""
        place: int = self._row(number)[3]
        return place

    def give_back(self, numbers: Sequence[int]) -> None:
        """Let go of the memory that holds the texts of documents, from the first to the last.

        They are read from the file when they are asked for again.
        """
        if not numbers or not hasattr(mmap, "MADV_DONTNEED") or self._map is None:
            return
        begin = self.place(numbers[0]) // mmap.PAGESIZE * mmap.PAGESIZE
        end = self.place(numbers[-1]) + self.size(numbers[-1])
        if begin < end:
            self._map.madvise(mmap.MADV_DONTNEED, begin, end - begin)

    def mark_place(self, number: int) -> int:
        """Return where in a file with holes a document's mark is."""
        assert self._marks_at is not None
        return self._marks_at + number

    def marks(self) -> bytes:
        """Return the marks of all documents of a file with holes, as they are now."""
        assert self._marks_at is not None
        return bytes(self._view[self._marks_at : self._marks_at + self._count])

    def line_count(self, number: int) -> int:
        """Return how many lines a document has."""
        lines: int = self._row(number)[5]
        return lines

    def digest(self, number: int) -> bytes:
        """Return 16 bytes that stand for a document's path and content together."""
        digest: bytes = self._row(number)[6]
        return digest

    def sizes(self, numbers: range | None = None) -> list[int]:
        """Return documents' lengths in UTF-8 bytes, of all or of some that follow one another."""
        return self._column(4, numbers)

    def line_counts(self) -> list[int]:
        """Return every document's number of lines, in the documents' order."""
        return self._column(5)

    def digests(self) -> list[bytes]:
        """Return every document's digest, in the documents' order."""
        return self._column(6)

    def tables_sum(self) -> int:
        """Return a checksum of all that is not content."""
        from zlib import crc32

        return crc32(self._view[self._content_end :])

    def is_whole(self, number: int) -> bool:
        """Tell whether a document's path and content are what its digest stands for."""
        path, content = self._path_bytes(number), self.content_bytes(number)
        return document_digest(bytes(path), content) == self.digest(number)

    def encoding(self, number: int) -> str | None:
        """Return what a document's bytes were decoded from; None where it came as text."""
        return self.encoding_name(self._row(number)[2])

    def encoding_name(self, place: int) -> str | None:
        """Return what the number of an encoding in a row stands for."""
        if self._encodings is None:
            end = len(self._view) - TRAILER.size
            names = _decode(self._view[self._encodings_at : end]).split("\n")
            self._encodings = tuple(name or None for name in names)
        if place >= len(self._encodings):
            raise _damaged("a document's encoding has no name")
        return self._encodings[place]

    def index_of(self, path: str) -> int | None:
        """Return the number of the document of that path, or None; in logarithmic time."""
        wanted = encode(path)
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            number: int = ORDER.unpack_from(self._view, self._order_at + middle * ORDER.size)[0]
            if number >= self._count:
                raise _damaged("its path order points outside")
            found = bytes(self._path_bytes(number))
            if found == wanted:
                return number
            if found < wanted:
                low = middle + 1
            else:
                high = middle
        return None

    def close(self) -> None:
        """Unmap the file; idempotent. Views handed out before stay valid until released."""
        mapped, self._map = self._map, None
        if mapped is None:
            return
        self._view.release()
        # Where views of contents are still held, the mapping goes with the last of them.
        try:  # noqa: SIM105 - contextlib would be a tenth of a worker's start
            mapped.close()
        except BufferError:
            pass

    def __enter__(self) -> PackedCorpus:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _read_trailer(self) -> None:
        size = len(self._view)
        head = bytes(self._view[: len(MAGIC)])
        if head[:7] != MAGIC[:7]:
            raise _damaged("it does not start as one")
        if head != MAGIC:
            raise _damaged(f"it is of version {head[7]}, and this program reads {MAGIC[7]}")
        trailer = TRAILER.unpack_from(self._view, size - TRAILER.size)
        if trailer[9] != MAGIC:
            raise _damaged("its end is missing")
        self._count, content_bytes, self._line_total = trailer[:3]
        self._content_end = len(MAGIC) + content_bytes
        paths_at, self._rows_at, self._order_at, self._encodings_at = trailer[3:7]
        if self._count and paths_at == self._content_end + self._count:
            self._marks_at = self._content_end
        elif paths_at != self._content_end:
            raise _damaged("its tables do not fit together")
        spans = (
            (self._content_end, paths_at, 0),
            (paths_at, self._rows_at, 0),
            (self._rows_at, self._order_at, ROW.size),
            (self._order_at, self._encodings_at, ORDER.size),
            (self._encodings_at, size - TRAILER.size, 0),
        )
        for start, end, width in spans:
            if start > end or (width and end - start != width * self._count):
                raise _damaged("its tables do not fit together")
        self._shape = bytes(trailer[7]).rstrip(b"\0").decode("ascii", "replace")
        if self._shape not in SHAPES:
            raise _damaged("its shape is unknown")
        self._fingerprint = trailer[8].hex()

    def _column(self, place: int, numbers: range | None = None) -> list[Any]:
        if self._map is None:
            raise ValueError("this packed corpus is closed")
        first, end = (0, self._count) if numbers is None else (numbers.start, numbers.stop)
        rows = self._view[self._rows_at + first * ROW.size : self._rows_at + end * ROW.size]
        return [row[place] for row in ROW.iter_unpack(rows)]

    def _row(self, number: int) -> tuple[Any, ...]:
        if not 0 <= number < self._count:
            raise IndexError(f"document {number} of {self._count}")
        if self._map is None:
            raise ValueError("this packed corpus is closed")
        return ROW.unpack_from(self._view, self._rows_at + number * ROW.size)

    def _held(self, number: int, content: memoryview) -> bytes:
        """Return a text that may be filled in, and taken away again, at any moment."""
        assert self._marks_at is not None
        place = self._marks_at + number
        for attempt in range(_TRIES):
            mark = self._view[place]
            if mark:
                data = bytes(content)
                if self._view[place] == mark:
                    return data
                continue
            if self.source is None:
                break
            given = self.source(number, attempt > 0)
            if given is not None:
                return given
        raise NotHeldError(f"The text of {self.path(number)} is not on this machine.")

    def _path_bytes(self, number: int) -> memoryview:
        row = self._row(number)
        return self._slice(row[0], row[1], self._rows_at)

    def _slice(self, start: int, length: int, limit: int) -> memoryview:
        if start < len(MAGIC) or start + length > limit:
            raise _damaged("a document lies outside of it")
        return self._view[start : start + length]


def _decode(data: memoryview) -> str:
    try:
        return str(data, "utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise _damaged("a text in it is not UTF-8") from error


def _damaged(reason: str) -> PackedCorpusError:
    return PackedCorpusError(
        f"Not a packed corpus that can be read: {reason}.",
        hint="Load the source again, with verify=True (rlm-rag index SOURCE --verify) if kept.",
    )
