"""The packed corpus: one file that the host writes once and every process maps read-only.

Opening costs the same whatever the number of documents or bytes: the fixed trailer is read,
the rest is touched only when asked for. Lines are counted here, once, and every index,
outline, hit and citation uses this count. Standard library alone: sandboxed workers import it.

Layout, little-endian: magic | contents | paths | rows | path order | encodings | trailer.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
from contextlib import suppress

from rlm_rag.errors import PackedCorpusError, SourceError
from rlm_rag.lines import count_lines

# `typing` would be a sixth of the time that a sandboxed worker takes to start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any

    BytesLike = bytes | bytearray | memoryview | mmap.mmap

SHAPES = ("documents", "text", "texts", "mapping")

_MAGIC = b"RLMPACK\x02"
# path offset, path bytes, encoding number, content offset, content bytes, lines, digest
_ROW = struct.Struct("<QIIQQQ16s")
DIGEST_BYTES = 16
_ORDER = struct.Struct("<Q")
# documents, content bytes, lines, offset of: paths, rows, order, encodings; shape; sha256; magic
_TRAILER = struct.Struct("<QQQQQQQ16s32s8s")
_WRITE_BUFFER_BYTES = 1 << 20
_OUT_OF_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class PackedWriter:
    """Streams documents into a packed corpus file, which appears at `path` only when closed.

    Memory grows with the number of documents, not with their size. As a context manager it
    closes on success and aborts on an exception; an aborted write leaves nothing behind.

    Raises:
        PackedCorpusError: the file could not be written (full disk, no permission).
        ValueError: `shape` is not one of `SHAPES`.
    """

    __slots__ = (
        "_buffer",
        "_digest",
        "_encodings",
        "_fd",
        "_offset",
        "_partial",
        "_path",
        "_paths",
        "_rows",
        "_shape",
    )

    def __init__(self, path: str | os.PathLike[str], *, shape: str = "documents") -> None:
        from hashlib import sha256

        if shape not in SHAPES:
            raise ValueError(f"shape must be one of {', '.join(SHAPES)}, not {shape!r}")
        self._shape = shape
        self._path = os.fspath(path)
        self._partial = f"{self._path}.{os.getpid()}.partial"
        self._digest = sha256()
        self._encodings: dict[str | None, int] = {None: 0}
        self._paths: dict[bytes, int] = {}
        self._rows = bytearray()
        self._offset = 0
        self._buffer = bytearray()
        self._fd: int | None = None
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            self._fd = os.open(self._partial, flags, 0o600)
        except OSError as error:
            raise self._failure(error) from error
        self._write(_MAGIC)

    def add(self, path: str, content: str, *, encoding: str | None = None) -> None:
        """Append one document; `encoding` is what its bytes were decoded from, if it had any.

        Raises:
            SourceError: a document of that path was added before.
            PackedCorpusError: the file could not be written.
            ValueError: `encoding` is no codec's name, or the writer was closed.
        """
        from hashlib import sha256

        if self._fd is None:
            raise ValueError("this packed corpus is closed")
        if encoding is not None and not encoding.replace("-", "_").isidentifier():
            raise ValueError(f"not the name of an encoding: {encoding!r}")
        name, body = _encode(path), _encode(content)
        if name in self._paths:
            raise SourceError(
                f"Two documents have the path {path!r}.", hint="Give each document its own path."
            )
        digest = sha256(len(name).to_bytes(8, "little"))
        digest.update(name)
        digest.update(body)
        self._digest.update(digest.digest())
        start = self._offset
        self._write(body)
        number = self._encodings.setdefault(encoding, len(self._encodings))
        self._paths[name] = len(self._paths)
        self._rows += _ROW.pack(
            0,
            len(name),
            number,
            start,
            len(body),
            count_lines(body),
            digest.digest()[:DIGEST_BYTES],
        )

    def close(self) -> None:
        """Finish the file and move it to its path; idempotent.

        Raises:
            PackedCorpusError: the file could not be written.
        """
        if self._fd is None:
            return
        try:
            self._write_tables()
            self._flush()
            descriptor, self._fd = self._fd, None
            os.close(descriptor)
            os.replace(self._partial, self._path)  # noqa: PTH105 - pathlib is slow to import
        except OSError as error:
            self._discard()
            raise self._failure(error) from error
        except BaseException:
            self._discard()
            raise

    def abort(self) -> None:
        """Drop what was written; idempotent, and nothing after `close`."""
        if self._fd is not None:
            self._discard()

    def __enter__(self) -> PackedWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __del__(self) -> None:
        if getattr(self, "_fd", None) is not None:
            self._discard()

    def _write(self, data: bytes | bytearray) -> None:
        self._buffer += data
        self._offset += len(data)
        if len(self._buffer) >= _WRITE_BUFFER_BYTES:
            try:
                self._flush()
            except OSError as error:
                self._discard()
                raise self._failure(error) from error

    def _flush(self) -> None:
        assert self._fd is not None
        with memoryview(self._buffer) as pending:
            done = 0
            while done < len(pending):
                done += os.write(self._fd, pending[done:])
        self._buffer.clear()

    def _write_tables(self) -> None:
        content_bytes = self._offset - len(_MAGIC)
        paths_offset = self._offset
        line_total = 0
        for number, name in enumerate(self._paths):
            row = list(_ROW.unpack_from(self._rows, number * _ROW.size))
            row[0] = self._offset
            line_total += row[5]
            _ROW.pack_into(self._rows, number * _ROW.size, *row)
            self._write(name)
        rows_offset = self._offset
        self._write(self._rows)
        order_offset = self._offset
        for name in sorted(self._paths):
            self._write(_ORDER.pack(self._paths[name]))
        encodings_offset = self._offset
        self._write("\n".join(name or "" for name in self._encodings).encode())
        offsets = (paths_offset, rows_offset, order_offset, encodings_offset)
        totals = (len(self._paths), content_bytes, line_total)
        shape, digest = self._shape.encode("ascii"), self._digest.digest()
        self._write(_TRAILER.pack(*totals, *offsets, shape, digest, _MAGIC))

    def _discard(self) -> None:
        descriptor, self._fd = self._fd, None
        self._buffer.clear()
        if descriptor is not None:
            os.close(descriptor)
        with suppress(FileNotFoundError):
            os.unlink(self._partial)  # noqa: PTH108 - pathlib is slow to import

    def _failure(self, error: OSError) -> PackedCorpusError:
        folder = os.path.dirname(self._path) or os.curdir  # noqa: PTH120 - as above
        hint = "Set TMPDIR to a folder that can be written."
        if error.errno in _OUT_OF_SPACE:
            hint = "Free space there, or set TMPDIR to a folder with more room."
        reason = error.strerror or type(error).__name__
        return PackedCorpusError(
            f"Cannot write the packed corpus in {folder}: {reason}.", hint=hint
        )


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
        "_order_at",
        "_rows_at",
        "_shape",
        "_view",
    )

    def __init__(self, mapped: mmap.mmap) -> None:
        self._map: mmap.mmap | None = mapped
        self._view = memoryview(mapped)
        self._count: int
        self._content_end: int
        self._line_total: int
        self._shape: str
        self._fingerprint: str
        self._encodings: tuple[str | None, ...] | None = None
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
            if size < len(_MAGIC) + _TRAILER.size:
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
        """SHA-256, in hex, over the SHA-256 of each document's path and content, in order."""
        return self._fingerprint

    @property
    def total_bytes(self) -> int:
        """UTF-8 bytes of all contents."""
        return self._content_end - len(_MAGIC)

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
        return map(self.path, range(self._count))

    def content(self, number: int) -> str:
        """Return a document's text."""
        return _decode(self.content_bytes(number))

    def content_bytes(self, number: int) -> memoryview:
        """Return a document's text as UTF-8 (lone surrogates passed), without a copy."""
        row = self._row(number)
        return self._slice(row[3], row[4], self._content_end)

    def line_count(self, number: int) -> int:
        """Return how many lines a document has."""
        lines: int = self._row(number)[5]
        return lines

    def digest(self, number: int) -> bytes:
        """Return 16 bytes that stand for a document's path and content together."""
        digest: bytes = self._row(number)[6]
        return digest

    def encoding(self, number: int) -> str | None:
        """Return what a document's bytes were decoded from; None where it came as text."""
        if self._encodings is None:
            end = len(self._view) - _TRAILER.size
            names = _decode(self._view[self._encodings_at : end]).split("\n")
            self._encodings = tuple(name or None for name in names)
        place: int = self._row(number)[2]
        if place >= len(self._encodings):
            raise _damaged("a document's encoding has no name")
        return self._encodings[place]

    def index_of(self, path: str) -> int | None:
        """Return the number of the document of that path, or None; in logarithmic time."""
        wanted = _encode(path)
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            number: int = _ORDER.unpack_from(self._view, self._order_at + middle * _ORDER.size)[0]
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
        with suppress(BufferError):
            mapped.close()

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
        head = bytes(self._view[: len(_MAGIC)])
        if head[:7] != _MAGIC[:7]:
            raise _damaged("it does not start as one")
        if head != _MAGIC:
            raise _damaged(f"it is of version {head[7]}, and this program reads {_MAGIC[7]}")
        trailer = _TRAILER.unpack_from(self._view, size - _TRAILER.size)
        if trailer[9] != _MAGIC:
            raise _damaged("its end is missing")
        self._count, content_bytes, self._line_total = trailer[:3]
        self._content_end = len(_MAGIC) + content_bytes
        paths_at, self._rows_at, self._order_at, self._encodings_at = trailer[3:7]
        spans = (
            (self._content_end, paths_at, 0),
            (paths_at, self._rows_at, 0),
            (self._rows_at, self._order_at, _ROW.size),
            (self._order_at, self._encodings_at, _ORDER.size),
            (self._encodings_at, size - _TRAILER.size, 0),
        )
        for start, end, width in spans:
            if start > end or (width and end - start != width * self._count):
                raise _damaged("its tables do not fit together")
        self._shape = bytes(trailer[7]).rstrip(b"\0").decode("ascii", "replace")
        if self._shape not in SHAPES:
            raise _damaged("its shape is unknown")
        self._fingerprint = trailer[8].hex()

    def _row(self, number: int) -> tuple[Any, ...]:
        if not 0 <= number < self._count:
            raise IndexError(f"document {number} of {self._count}")
        if self._map is None:
            raise ValueError("this packed corpus is closed")
        return _ROW.unpack_from(self._view, self._rows_at + number * _ROW.size)

    def _path_bytes(self, number: int) -> memoryview:
        row = self._row(number)
        return self._slice(row[0], row[1], self._rows_at)

    def _slice(self, start: int, length: int, limit: int) -> memoryview:
        if start < len(_MAGIC) or start + length > limit:
            raise _damaged("a document lies outside of it")
        return self._view[start : start + length]


def _decode(data: memoryview) -> str:
    try:
        return str(data, "utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise _damaged("a text in it is not UTF-8") from error


def _damaged(reason: str) -> PackedCorpusError:
    return PackedCorpusError(
        f"Not a packed corpus that can be read: {reason}.", hint="Load the source again."
    )
