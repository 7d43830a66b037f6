"""A file of JSON lines with an answer for each document, which a later run goes on with."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rlm_rag.engine.mapping import FileAnswer
from rlm_rag.errors import AnswerFileError
from rlm_rag.shown import json_text
from rlm_rag.trace.locks import lock
from rlm_rag.trace.syncing import BackgroundSync

SCHEMA_VERSION = 1
MAX_FILE_BYTES = 4 << 30
"""A larger file is not read: no map writes one."""

ROOM_BYTES = 64 << 10
"""With less room on its disk a map is not begun: every answer is paid for."""

_FILE_MODE = 0o600


@dataclass(slots=True)
class _Kept:
    """The lines that stay, in order, and the digests of documents whose answer is ok."""

    lines: list[bytes] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    is_whole: bool = True


class AnswerFile:
    """Answers to one prompt by one model, `asked` being the digest of both.

    What it holds is read when it is made: `knows` tells which documents have an answer that is
    ok, so that they are not asked about again. With `with` it can be written: a torn last line,
    answers that are not ok and those of `outdated` texts go, and no other process writes to it.
    Answers of documents that are not asked about stay.

    Beside it, in `replies`, a map that has not come to its end may keep the replies about parts
    of documents; those of an earlier file that was removed go.

    Raises:
        AnswerFileError: it cannot be read or made, or holds something else, or answers to
            something else.
    """

    def __init__(self, path: Path, *, asked: str) -> None:
        self._path = path
        self._asked = asked
        self._size = 0
        self._is_new = False
        self._kept = self._read()
        self._outdated: set[str] = set()
        self._file: FileIO | None = None
        self._sync: BackgroundSync | None = None
        if self._is_new:
            self._check_place()

    @property
    def is_whole(self) -> bool:
        """Whether all of it stays: no last line that is torn, and no answer that is not ok."""
        return self._kept.is_whole

    @property
    def replies(self) -> Path:
        """Where the cache of replies of this file lies."""
        return self._path.with_name(f".{self._path.name}.replies")

    @property
    def files(self) -> Sequence[Path]:
        """All files that a map writes here: this one, and the cache of replies."""
        return (self._path, *self._replies_files())

    def drop_replies(self) -> None:
        """Remove the cache of replies, once all is answered."""
        for file in self._replies_files():
            # One that stays is a file too many, and no reason to lose what was paid for.
            with suppress(OSError):
                file.unlink(missing_ok=True)

    def _replies_files(self) -> Sequence[Path]:
        name = self.replies.name
        return [self.replies.with_name(name + ending) for ending in ("", "-wal", "-shm")]

    def knows(self, path: str, digest: str) -> bool:
        """Whether there is an answer about that text of a document; another text's is dropped."""
        known = self._kept.digests.get(path)
        if known is not None and known != digest:
            self._outdated.add(path)
        return known == digest

    def append(self, answer: FileAnswer) -> None:
        """Write one answer, all of it or nothing; it outlives this process at once.

        It outlives a power cut soon.

        Raises:
            AnswerFileError: the disk is full, most of the time.
        """
        assert self._file is not None and self._sync is not None
        line = line_of(answer, self._asked)
        try:
            left = memoryview(line)
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            # Another, shorter one may still fit: it must not follow half a line.
            self._file.truncate(self._size)
            raise self._unwritable(error) from error
        self._size += len(line)
        self._sync.request()

    def __enter__(self) -> Self:
        self._check_room()
        file = self._opened()
        if not self._kept.is_whole or self._outdated:
            try:
                self._write_again()
            finally:
                file.close()
            file = self._opened()
        self._file = file
        self._sync = BackgroundSync(file.fileno())
        if self._is_new:
            self.drop_replies()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._file is not None and self._sync is not None
        self._sync.finish()
        self._file.close()
        if self._sync.failure is not None and error is None:
            raise self._unwritable(self._sync.failure)

    def _read(self) -> _Kept:
        kept = _Kept()
        try:
            if not self._path.exists():
                self._is_new = True
                return kept
            if not self._path.is_file() or self._path.stat().st_size > MAX_FILE_BYTES:
                raise AnswerFileError(f"{self._path} holds no answers of a map")
            data = self._path.read_bytes()
            self._size = len(data)
        except OSError as error:
            raise AnswerFileError(
                f"{self._path} cannot be read: {error.strerror or error}"
            ) from error
        *lines, rest = data.split(b"\n")
        if rest:
            kept.is_whole = False
            if not _is_torn(rest):
                lines.append(rest)
        for number, line in enumerate(lines, start=1):
            row = self._row(line, number)
            if not row["ok"] or row["path"] in kept.digests:
                kept.is_whole = False
                continue
            kept.digests[row["path"]] = row["digest"]
            kept.lines.append(line + b"\n")
        return kept

    def _row(self, line: bytes, number: int) -> Mapping[str, Any]:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        fields = {"path": str, "ok": bool, "digest": str, "asked": str}
        if not isinstance(row, dict) or not all(
            isinstance(row.get(name), kind) for name, kind in fields.items()
        ):
            raise AnswerFileError(
                f"{self._path} holds something else than answers of a map (line {number})",
                hint="choose another file",
            )
        if row["asked"] != self._asked:
            raise AnswerFileError(
                f"{self._path} holds answers to another prompt, or of another model",
                hint="choose another file, or remove this one; its answers were paid for",
            )
        return row

    def _opened(self) -> FileIO:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        try:
            file = FileIO(os.open(self._path, flags, _FILE_MODE), "ab")
        except OSError as error:
            raise self._unwritable(error) from error
        if not lock(file.fileno()):
            file.close()
            raise AnswerFileError(
                f"another process writes to {self._path}", hint="wait for it, or end it"
            )
        if os.fstat(file.fileno()).st_size != self._size:
            file.close()
            raise AnswerFileError(
                f"another process has written to {self._path} meanwhile", hint="start again"
            )
        return file

    def _check_place(self) -> None:
        """Raise where no file can be made, before anything is read of what to ask about.

        Raises:
            AnswerFileError: no file can be made there.
        """
        part = self._part()
        try:
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE))
            part.unlink()
        except OSError as error:
            raise self._unwritable(error) from error

    def _check_room(self) -> None:
        """Raise, before anything is sent, where answers could not be kept.

        Raises:
            AnswerFileError: there is no room on the disk.
        """
        part = self._part()
        try:
            fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE)
        except OSError:
            # A file may be written in a folder that is not; whether it may, is told by opening it.
            return
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(bytes(ROOM_BYTES))
        except OSError as error:
            raise self._unwritable(error) from error
        finally:
            part.unlink(missing_ok=True)

    def _part(self) -> Path:
        return self._path.with_name(f".{self._path.name}.{secrets.token_hex(4)}.part")

    def _write_again(self) -> None:
        part = self._part()
        try:
            fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE)
            with os.fdopen(fd, "wb") as file:
                file.writelines(self._staying())
                file.flush()
                os.fsync(file.fileno())
                self._size = file.tell()
            part.replace(self._path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise self._unwritable(error) from error

    def _staying(self) -> Iterator[bytes]:
        paths = zip(self._kept.digests, self._kept.lines, strict=True)
        yield from (line for path, line in paths if path not in self._outdated)

    def _unwritable(self, error: OSError) -> AnswerFileError:
        hint = "check its folder and the room on its disk"
        if self._size:
            hint += "; what was written stays"
        return AnswerFileError(
            f"{self._path} cannot be written: {error.strerror or error}", hint=hint
        )


def line_of(answer: FileAnswer, asked: str) -> bytes:
    """Return an answer as a line of ASCII JSON."""
    row = {"schema_version": SCHEMA_VERSION, **answer.to_dict(), "asked": asked}
    return json_text(row).encode("ascii") + b"\n"


def _is_torn(rest: bytes) -> bool:
    """Whether what has no line end is an answer whose process was killed in the middle of it."""
    begin = f'{{"schema_version":{SCHEMA_VERSION},"path":"'.encode("ascii")
    if not rest.startswith(begin[: len(rest)]):
        return False
    try:
        json.loads(rest)
    except (ValueError, RecursionError):
        return True
    return False
