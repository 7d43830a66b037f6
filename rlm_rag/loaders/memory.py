"""The files of one load, each read once, or recalled where it is known and has not changed."""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, Protocol

from rlm_rag.corpus import Skipped
from rlm_rag.loaders.documents import NOT_PARSED
from rlm_rag.loaders.files import FOLDER_REASON, GONE_REASON, LINK_REASON
from rlm_rag.loaders.options import Entry, LoadReport
from rlm_rag.loaders.packed_names import PACKED_REASON, UNREAD_REASON
from rlm_rag.loaders.reading import BINARY_REASON
from rlm_rag.loaders.secrets import SECRET_REASON
from rlm_rag.packing import StoredText

# What a file's content and status alone decide; any other may be otherwise the next time.
LASTING_REASONS = (
    *(BINARY_REASON, SECRET_REASON, PACKED_REASON, UNREAD_REASON),
    *(LINK_REASON, FOLDER_REASON),
)

# A change within one tick of a file system's clock leaves no trace: FAT's is the longest.
_SETTLED_NS = 2_000_000_000
_IS_POSIX = os.name == "posix"


STATUS_NUMBERS = 4
_INODE_MASK = (1 << 63) - 1


class FileStatus(NamedTuple):
    """What tells that a file was changed; times in nanoseconds since 1970, of its inode 63 bits.

    So each is a signed number of 64 bits, `STATUS_NUMBERS` of them.
    """

    size_bytes: int
    modified_ns: int
    changed_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileStatus:
        """Take what counts from what the system says."""
        inode = status.st_ino & _INODE_MASK
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, inode)


UNSETTLED = FileStatus(-1, -1, -1, -1)
"""What nothing has: of that which may change without a trace, and is looked at the next time."""


def status_numbers(statuses: Iterable[FileStatus]) -> array[int]:
    """Return statuses as they are kept, one after the other."""
    return array("q", chain.from_iterable(statuses))


def differing(
    paths: Sequence[str],
    numbers: array[int],
    *,
    most: int = 0,
    look: Callable[[str], os.stat_result] = os.lstat,
) -> list[int]:
    """Return which paths have another status than was kept of them, by `status_numbers`.

    The first `most` and one more: then there are more than these.
    """
    columns = (numbers[column::STATUS_NUMBERS] for column in range(STATUS_NUMBERS))
    found: list[int] = []
    for row, (path, size_bytes, modified_ns, changed_ns, inode) in enumerate(
        zip(paths, *columns, strict=True)
    ):
        try:
            now = look(path)
            if (
                now.st_ctime_ns == changed_ns
                and now.st_size == size_bytes
                and now.st_mtime_ns == modified_ns
                and now.st_ino & _INODE_MASK == inode
            ):
                continue
        except OSError:
            # Gone, which is another status.
            pass
        found.append(row)
        if len(found) > most:
            break
    return found


class ReadFile(NamedTuple):
    """A file that was read as `path`, and what was told of it.

    `status` is None where it cannot tell later that the file is the same. `parts` are what
    follows `path` in the paths of its documents.
    """

    location: str
    path: str
    status: FileStatus | None
    parts: tuple[str, ...] = ("",)
    skipped: tuple[Skipped, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def lasts(self) -> bool:
        """Whether it would come to the same as long as nothing of it changes."""
        return bool(self.parts) or all(_lasts(one.reason) for one in self.skipped)

    @property
    def can_be_recalled(self) -> bool:
        """Whether it lasts, and its status tells later that nothing has changed."""
        return self.lasts and self.status is not None

    @property
    def is_gone(self) -> bool:
        """Whether nothing was there to be read."""
        return [one.reason for one in self.skipped] == [GONE_REASON]


Fresh = Callable[[str, str, os.stat_result | None], list[Entry]]
"""Reads a file as a path, from a location, with what `lstat` says of it, if it is there."""


class Known(Protocol):
    def recall(
        self, location: str, path: str, status: FileStatus
    ) -> tuple[ReadFile, list[StoredText]] | None:
        """Return what was read at `location` as `path` when it had that status, and its texts."""
        ...


@dataclass(slots=True)
class FileMemory:
    """Remembers what the files of one load came to; `known` is what an earlier load remembers.

    `empty` are the files that came to no document, `gone` the locations where none was; `recalled`
    counts the files recalled, `learned` those read that can be recalled the next time, `passing`
    those that cannot.
    """

    known: Known | None = None
    empty: list[ReadFile] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    recalled: int = 0
    learned: int = 0
    passing: int = 0
    settled_before_ns: int = field(default_factory=lambda: time.time_ns() - _SETTLED_NS)

    def remembers(self, path: str, location: str) -> bool:
        """Tell whether `read` would recall the file at `location`."""
        if self.known is None:
            return False
        status = self._settled(_status(location))
        return status is not None and self.known.recall(location, path, status) is not None

    def read(self, path: str, location: str, report: LoadReport, fresh: Fresh) -> list[Entry]:
        """Return the documents of the file at `location`: recalled, or else what `fresh` reads.

        What `fresh` tells the report is told again where the file is recalled.
        """
        now = _status(location)
        status = self._settled(now)
        if self.known is not None and status is not None:
            recalled = self.known.recall(location, path, status)
            if recalled is not None:
                return self._recalled(path, report, *recalled)
        skips, warnings = len(report.skipped), len(report.warnings)
        entries = fresh(path, location, now)
        is_plain = len(entries) == 1 and entries[0].path == path
        # Most files by far: one document, of which nothing is told.
        if is_plain and len(report.warnings) == warnings and len(report.skipped) == skips:
            self.learned += status is not None
            self.passing += status is None
            _, content, encoding, _ = entries[0]
            return [Entry(path, content, encoding, ReadFile(location, path, status))]
        file = ReadFile(
            location,
            path,
            status,
            tuple(entry.path.removeprefix(path) for entry in entries),
            tuple(report.skipped[skips:]),
            tuple(report.warnings[warnings:]),
        )
        if now is None and file.is_gone:
            self.gone.append(location)
            return []
        self.learned += file.can_be_recalled
        self.passing += not file.can_be_recalled
        if not entries:
            self.empty.append(file)
        return [entry._replace(file=file) for entry in entries]

    def _recalled(
        self, path: str, report: LoadReport, file: ReadFile, texts: list[StoredText]
    ) -> list[Entry]:
        report.skipped += file.skipped
        report.warnings += file.warnings
        self.recalled += 1
        if not texts:
            self.empty.append(file)
        pairs = zip(file.parts, texts, strict=True)
        return [Entry(path + part, text, None, file) for part, text in pairs]

    def _settled(self, status: os.stat_result | None) -> FileStatus | None:
        """Return what tells of changes, None where one that comes now could leave it as it is."""
        if status is None:
            return None
        # Elsewhere than on POSIX the one is when it was made, and says nothing.
        if (status.st_ctime_ns if _IS_POSIX else status.st_mtime_ns) > self.settled_before_ns:
            return None
        return FileStatus.of(status)


def _lasts(reason: str) -> bool:
    # A document that took its parser too long is not tried again either.
    return reason in LASTING_REASONS or reason.startswith(NOT_PARSED)


def _status(location: str) -> os.stat_result | None:
    try:
        return os.lstat(location)
    except OSError:
        # Reading it will say why.
        return None
