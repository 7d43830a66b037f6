"""Writing a packed corpus: document by document, or copied from another where it is unchanged."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from io import RawIOBase
from itertools import chain, islice
from types import TracebackType
from typing import Any, NamedTuple

from rlm_rag.errors import PackedCorpusError
from rlm_rag.lines import count_lines
from rlm_rag.packed import MAGIC, SHAPES, PackedCorpus, document_digest, encode
from rlm_rag.packed_tables import PackedTables

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

    __slots__ = ("_block", "_buffer", "_fd", "_marks", "_partial", "_path", "_shape", "_tables")

    def __init__(
        self, path: str | os.PathLike[str], *, shape: str = "documents", holes: bool = False
    ) -> None:
        if shape not in SHAPES:
            raise ValueError(f"shape must be one of {', '.join(SHAPES)}, not {shape!r}")
        self._shape = shape
        self._path = os.fspath(path)
        self._partial = f"{self._path}.{os.getpid()}.partial"
        self._tables = PackedTables()
        self._marks: bytearray | None = bytearray() if holes else None
        self._buffer = bytearray()
        self._block: bytearray | None = None
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
        if not _is_codec_name(encoding):
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

    def copy_all(
        self, corpus: PackedCorpus, numbers: range, *, file: RawIOBase | None = None
    ) -> None:
        """Append documents of another packed corpus that follow one another, as they are.

        What is long is read from `file`, if that is given and its file: half of what it takes to
        map the file and write from there.

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
        contents = corpus.contents(numbers)
        self._tables.add_all(corpus, numbers)
        if file is None or len(contents) < _WRITE_BUFFER_BYTES:
            self._write(contents)
            return
        try:
            self._flush()
            self._write_from(file, corpus.place(numbers[0]), len(contents))
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
        self._tables.add(name, size, told.encoding, told.line_count, told.digest)
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
        tables = self._tables
        return SoFar(self._partial, tables.end, self._encoded_tables(), len(tables))

    def close(self) -> None:
        """Finish the file and move it to its path; idempotent.

        Raises:
            PackedCorpusError: the file could not be written.
        """
        if self._fd is None:
            return
        try:
            self._write(self._encoded_tables())
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
        self._tables.add(name, len(body), encoding, lines, digest)
        self._write(body)
        if self._marks is not None:
            self._marks.append(1)

    def _write(self, data: bytes | bytearray | memoryview) -> None:
        is_large = len(data) > _WRITE_THROUGH_BYTES
        if not is_large:
            self._buffer += data
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

    def _write_from(self, file: RawIOBase, start: int, size: int) -> None:
        """Write a stretch of another file, by way of a block that stays near the processor."""
        file.seek(start)
        self._block = self._block or bytearray(_WRITE_BUFFER_BYTES)
        with memoryview(self._block) as block:
            while size:
                count = file.readinto(block[:size])
                if not count:
                    raise PackedCorpusError("The packed corpus is damaged: its end is missing.")
                self._write_through(block[:count])
                size -= count

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

    def _encoded_tables(self) -> bytearray:
        return self._tables.encoded(self._shape, self._marks or b"")

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
