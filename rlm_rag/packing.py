"""Writing a packed corpus: document by document, or copied from another where it is unchanged."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import chain, islice
from types import TracebackType
from typing import Any, NamedTuple

from rlm_rag.errors import PackedCorpusError, SourceError
from rlm_rag.lines import count_lines
from rlm_rag.packed import (
    MAGIC,
    ORDER,
    ROW,
    SHAPES,
    TRAILER,
    PackedCorpus,
    document_digest,
    encode,
)

_WRITE_BUFFER_BYTES = 1 << 20
# In pieces, so that an interrupt is heard between them.
_WRITE_THROUGH_BYTES = 1 << 24
_OUT_OF_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Described(NamedTuple):
    """What is told of a document besides its text; the digest is that of a packed corpus."""

    path: str
    size_bytes: int
    line_count: int
    digest: bytes
    encoding: str | None = None

    @classmethod
    def of(cls, corpus: PackedCorpus, number: int) -> Described:
        """Return what a packed corpus tells of a document."""
        return cls(
            corpus.path(number),
            corpus.size(number),
            corpus.line_count(number),
            corpus.digest(number),
            corpus.encoding(number),
        )


class Utf8Text(NamedTuple):
    """The content of a document as the bytes that its text is in UTF-8, known to be that."""

    data: bytes


class StoredText(NamedTuple):
    """The content of a document as another packed corpus holds it."""

    corpus: PackedCorpus
    number: int


def pack(
    documents: Iterable[tuple[Any, ...]],
    path: str | os.PathLike[str],
    *,
    shape: str = "documents",
    like: PackedCorpus | None = None,
    watch: Callable[[PackedWriter], object] | None = None,
) -> bool:
    """Write documents, each `(path, content[, encoding, ...])`, to a packed corpus file.

    A content may be a `StoredText`, whose encoding is the one it was stored with. False, and no
    file, where the documents are all those of `like`, in its order, none read again. `watch` is
    shown the writer after each document that is not.

    Raises:
        SourceError: two documents have the same path.
        PackedCorpusError: the file cannot be written.
    """
    runs = _runs(documents, like)
    begun = [*islice(runs, 1)]
    if like is not None and shape == like.shape:
        whole = [range(len(like))] if len(like) else []
        if begun == whole:
            begun += islice(runs, 1)
            if begun == whole:
                return False
    with PackedWriter(path, shape=shape) as writer:
        for run in chain(begun, runs):
            if not isinstance(run, range):
                _add(writer, run)
            elif like is not None:
                writer.copy_all(like, run)
            if watch is not None:
                watch(writer)
    return True


def _runs(
    documents: Iterable[tuple[Any, ...]], like: PackedCorpus | None
) -> Iterator[range | tuple[Any, ...]]:
    """Yield documents; of those that follow one another in `like` as they do here, the numbers."""
    paths = [] if like is None else [*like.paths()]
    start = end = 0
    for document in documents:
        path, text = document[:2]
        if like is not None and isinstance(text, StoredText) and text.corpus is like:
            number = text.number
            if path == paths[number]:
                if number != end or start == end:
                    if start < end:
                        yield range(start, end)
                    start = number
                end = number + 1
                continue
        if start < end:
            yield range(start, end)
            start = end
        yield document
    if start < end:
        yield range(start, end)


def _add(writer: PackedWriter, document: tuple[Any, ...]) -> None:
    path, text = document[:2]
    if not isinstance(text, StoredText):
        writer.add(path, text, encoding=document[2] if len(document) > 2 else None)
    elif path == text.corpus.path(text.number):
        writer.copy(text.corpus, text.number)
    else:
        encoding = text.corpus.encoding(text.number)
        writer.add(path, text.corpus.content(text.number), encoding=encoding)


class SoFar(NamedTuple):
    """How far a packed corpus is written: with `tables` after `content_end` bytes it is whole."""

    path: str
    content_end: int
    tables: bytearray
    documents: int


class PackedWriter:
    """Streams documents into a packed corpus file, which appears at `path` only when closed.

    Memory grows with the number of documents, not with their size. As a context manager it
    closes on success and aborts on an exception; an aborted write leaves nothing behind. A file
    written with `holes` is sparse, and its texts can be filled in later (`holes.Holes`).

    Raises:
        PackedCorpusError: the file could not be written (full disk, no permission).
        ValueError: `shape` is not one of `SHAPES`.
    """

    __slots__ = (
        "_buffer",
        "_digest",
        "_encodings",
        "_fd",
        "_line_total",
        "_marks",
        "_offset",
        "_partial",
        "_path",
        "_path_bytes",
        "_paths",
        "_rows",
        "_shape",
    )

    def __init__(
        self, path: str | os.PathLike[str], *, shape: str = "documents", holes: bool = False
    ) -> None:
        if shape not in SHAPES:
            raise ValueError(f"shape must be one of {', '.join(SHAPES)}, not {shape!r}")
        self._shape = shape
        self._path = os.fspath(path)
        self._partial = f"{self._path}.{os.getpid()}.partial"
        self._digest = sha256()
        self._encodings: dict[str | None, int] = {None: 0}
        self._paths: dict[bytes, int] = {}
        self._rows = bytearray()
        self._marks: bytearray | None = bytearray() if holes else None
        self._path_bytes = 0
        self._line_total = 0
        self._offset = 0
        self._buffer = bytearray()
        self._fd: int | None = None
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            self._fd = os.open(self._partial, flags, 0o600)
        except OSError as error:
            raise self._failure(error) from error
        self._write(MAGIC)

    def add(self, path: str, content: str | Utf8Text, *, encoding: str | None = None) -> None:
        """Append one document; `encoding` is what its bytes were decoded from, if it had any.

        Raises:
            SourceError: a document of that path was added before.
            PackedCorpusError: the file could not be written.
            ValueError: `encoding` is no codec's name, or the writer was closed.
        """
        if self._fd is None:
            raise ValueError("this packed corpus is closed")
        if encoding not in self._encodings and not _is_codec_name(encoding):
            raise ValueError(f"not the name of an encoding: {encoding!r}")
        name = encode(path)
        body = content.data if isinstance(content, Utf8Text) else encode(content)
        self._append(name, body, encoding, count_lines(body), document_digest(name, body))

    def copy(self, corpus: PackedCorpus, number: int) -> None:
        """Append a document of another packed corpus, as it is.

        Raises:
            SourceError: a document of that path was added before.
            PackedCorpusError: the file could not be written, or the other is damaged.
            ValueError: the writer was closed.
        """
        if self._fd is None:
            raise ValueError("this packed corpus is closed")
        self._append(
            encode(corpus.path(number)),
            corpus.content_bytes(number),
            corpus.encoding(number),
            corpus.line_count(number),
            corpus.digest(number),
        )

    def copy_all(self, corpus: PackedCorpus, numbers: range) -> None:
        """Append documents of another packed corpus that follow one another, as they are.

        Raises:
            SourceError: a document of one's path was added before.
            PackedCorpusError: the file could not be written, or the other is damaged.
            ValueError: the writer was closed.
        """
        if self._marks is not None or corpus.has_holes:
            for number in numbers:
                self.copy(corpus, number)
            return
        if self._fd is None:
            raise ValueError("this packed corpus is closed")
        contents, before = corpus.contents(numbers), self._offset
        for name, size, encoding, lines, digest in corpus.rows(numbers):
            self._append_row(bytes(name), size, encoding, lines, digest)
            self._offset += size
        if self._offset - before != len(contents):
            raise PackedCorpusError("The packed corpus is damaged: its contents have gaps.")
        try:
            self._flush()
            self._write_through(contents)
        except OSError as error:
            self._discard()
            raise self._failure(error) from error

    def leave(self, told: Described) -> None:
        """Append a document without its text, to a file with holes.

        Raises:
            SourceError: a document of that path was added before.
            PackedCorpusError: the file could not be written.
            ValueError: the writer was closed, or its file has no holes.
        """
        if self._fd is None or self._marks is None:
            raise ValueError("this packed corpus is closed, or has no holes")
        try:
            self._flush()
            os.lseek(self._fd, told.size_bytes, os.SEEK_CUR)
        except OSError as error:
            self._discard()
            raise self._failure(error) from error
        name, size = encode(told.path), told.size_bytes
        self._append_row(name, size, told.encoding, told.line_count, told.digest)
        self._offset += size
        self._marks.append(0)

    def so_far(self) -> SoFar:
        """Say what lies in which file by now.

        Raises:
            OSError: it could not be written.
            ValueError: the writer was closed.
        """
        if self._fd is None:
            raise ValueError("this packed corpus is closed")
        self._flush()
        return SoFar(self._partial, self._offset, self._tables(), len(self._paths))

    def close(self) -> None:
        """Finish the file and move it to its path; idempotent.

        Raises:
            PackedCorpusError: the file could not be written.
        """
        if self._fd is None:
            return
        try:
            self._write(self._tables())
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

    def _append(
        self, name: bytes, body: bytes | memoryview, encoding: str | None, lines: int, digest: bytes
    ) -> None:
        self._append_row(name, len(body), encoding, lines, digest)
        self._write(body)
        if self._marks is not None:
            self._marks.append(1)

    def _append_row(
        self, name: bytes, size: int, encoding: str | None, lines: int, digest: bytes
    ) -> None:
        if name in self._paths:
            path = name.decode("utf-8", "surrogatepass")
            raise SourceError(
                f"Two documents have the path {path!r}.", hint="Give each document its own path."
            )
        self._digest.update(digest)
        number = self._encodings.setdefault(encoding, len(self._encodings))
        self._paths[name] = len(self._paths)
        # Counted from the first path, whose own place is known at the end.
        place = self._path_bytes
        self._rows += ROW.pack(place, len(name), number, self._offset, size, lines, digest)
        self._path_bytes += len(name)
        self._line_total += lines

    def _write(self, data: bytes | bytearray | memoryview) -> None:
        is_large = len(data) > _WRITE_THROUGH_BYTES
        if not is_large:
            self._buffer += data
        self._offset += len(data)
        if is_large or len(self._buffer) >= _WRITE_BUFFER_BYTES:
            try:
                self._flush()
                if is_large:
                    self._write_through(memoryview(data))
            except OSError as error:
                self._discard()
                raise self._failure(error) from error

    def _write_through(self, data: memoryview) -> None:
        assert self._fd is not None
        done = 0
        while done < len(data):
            done += os.write(self._fd, data[done : done + _WRITE_THROUGH_BYTES])

    def _flush(self) -> None:
        assert self._fd is not None
        done = 0
        try:
            with memoryview(self._buffer) as pending:
                while done < len(pending):
                    done += os.write(self._fd, pending[done:])
        finally:
            # Whoever asked for `so_far` may go on after an error, and write what is left later.
            del self._buffer[:done]

    def _tables(self) -> bytearray:
        """Return all that follows the contents, where these end here."""
        content_end = self._offset
        tables = bytearray(self._marks or b"")
        paths_offset = content_end + len(tables)
        tables += b"".join(self._paths)
        rows_offset = content_end + len(tables)
        for place, *rest in ROW.iter_unpack(self._rows):
            tables += ROW.pack(paths_offset + place, *rest)
        order_offset = content_end + len(tables)
        for name in sorted(self._paths):
            tables += ORDER.pack(self._paths[name])
        encodings_offset = content_end + len(tables)
        tables += "\n".join(name or "" for name in self._encodings).encode()
        offsets = (paths_offset, rows_offset, order_offset, encodings_offset)
        totals = (len(self._paths), content_end - len(MAGIC), self._line_total)
        shape, digest = self._shape.encode("ascii"), self._digest.digest()
        tables += TRAILER.pack(*totals, *offsets, shape, digest, MAGIC)
        return tables

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


def _is_codec_name(encoding: str | None) -> bool:
    return encoding is None or encoding.replace("-", "_").isidentifier()
