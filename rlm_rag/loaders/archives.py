"""Archives read without unpacking them to disk: zip and tar, and what is one of them.

What a member is called is never a place on this machine, and what an archive claims is not
believed: members, bytes and the ratio to its own size are bounded.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, NamedTuple

from rlm_rag.errors import SourceError
from rlm_rag.loaders.bounded import BoundedFile, ForwardFile, Readable, TooLarge
from rlm_rag.loaders.files import too_large_reason
from rlm_rag.loaders.git import printable_path
from rlm_rag.loaders.intake import Intake
from rlm_rag.loaders.listing import JUNK, TOOLS_REASON, VERSION_CONTROL, VERSION_CONTROL_REASON
from rlm_rag.loaders.options import Entry
from rlm_rag.loaders.packed_names import ZIP_SUFFIXES, reason_by_packing, unpacked_name
from rlm_rag.loaders.spool import Spool, Spooled
from rlm_rag.loaders.zstandard import ZstandardFile

MAX_MEMBERS = 500_000
"""Five times the largest source archives there are (Linux: 90,000 files)."""

_DAMAGED = (
    *(zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError),
    # An unknown compression, a password, and a name or number that is none; bz2 has no error
    # of its own.
    *(EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError, OSError),
)


class _Member(NamedTuple):
    name: str
    size_bytes: int
    reason: str | None
    read: Callable[[int], bytes]
    passed: Callable[[], object]


def read_archive(name: str, file: IO[bytes], intake: Intake) -> Iterator[Entry]:
    """Yield the documents of the archive `name`, in byte order, and close `file` at the end.

    Of members with one name the last counts, as it would be what lies on disk.

    Raises:
        SourceError: nothing can be read of it, and it is read as a whole.
    """
    taken: dict[str, list[Spooled]] = {}
    with file, Spool() as spool:
        try:
            for entry_path, entries in _entries(name, file, intake):
                if entry_path in taken:
                    intake.report.skip(entry_path, "a later member has the same name")
                taken[entry_path] = [spool.put(entry) for entry in entries]
        except TooLarge as error:
            intake.report.warn(name, f"{error}; the rest of it was left out")
        except _DAMAGED as error:
            if isinstance(error, OSError) and error.errno is not None:
                # Not the archive: a disk that is full or fails.
                raise
            if not taken and intake.is_whole:
                raise SourceError(
                    f"Cannot read the archive {name}: {_said(error)}.",
                    hint="Check that it is whole; pack it again.",
                ) from error
            intake.report.warn(name, f"damaged ({_said(error)}); the rest of it was left out")
        for path in sorted(taken, key=lambda path: path.encode("utf-8", "surrogatepass")):
            yield from (spool.get(entry) for entry in taken[path])


def read_compressed(name: str, file: IO[bytes], intake: Intake) -> Iterator[Entry]:
    """Yield the documents of a file that is compressed by itself, and close `file` at the end.

    Raises:
        SourceError: it is damaged, too large, or no text.
    """
    path = unpacked_name(name)
    with file:
        if not intake.wants(path):
            return
        try:
            data = _decompressed(name, file).read(intake.options.max_file_bytes + 1)
        except _DAMAGED as error:
            raise SourceError(
                f"Cannot read {name}: {_said(error)}.", hint="Check that it is whole."
            ) from error
    entries = intake.take(path, data)
    if not entries:
        raise SourceError(
            f"Cannot load {name}: {intake.report.skipped[-1].reason}.",
            hint="Unpack it first, and look at what it holds.",
        )
    yield from entries


def _entries(name: str, file: IO[bytes], intake: Intake) -> Iterator[tuple[str, list[Entry]]]:
    folders: set[str] = set()
    is_zip = name.lower().endswith(ZIP_SUFFIXES)
    members = _zip_members(file, intake) if is_zip else _tar_members(name, file, intake)
    for number, member in enumerate(members):
        if number >= MAX_MEMBERS:
            raise TooLarge(f"more than {MAX_MEMBERS:,} members")
        path = _safe_path(member.name, intake)
        if not path or _lies_in_junk(path, folders, intake):
            continue
        entries = _read(path, member, intake)
        if entries:
            yield path, entries


def _read(path: str, member: _Member, intake: Intake) -> list[Entry]:
    limit = intake.options.max_file_bytes
    reason = _unread_reason(path, member, limit)
    if not intake.owns(path):
        if reason is None and intake.chooses(path):
            member.passed()
        return []
    if not intake.wants(path):
        return []
    if reason is None:
        try:
            return intake.take(path, member.read(limit + 1))
        except TooLarge:
            raise
        except _DAMAGED as error:
            reason = f"not readable: {_said(error)}"
    intake.report.miss(path, reason)
    return []


def _unread_reason(path: str, member: _Member, limit: int) -> str | None:
    if member.reason is None and reason_by_packing(path) is not None:
        return "an archive within an archive"
    if member.reason is None and member.size_bytes > limit:
        return too_large_reason(limit)
    return member.reason


def _zip_members(file: IO[bytes], intake: Intake) -> Iterator[_Member]:
    bounded = BoundedFile(file, most_bytes=max(intake.options.max_file_bytes, 1 << 26) + 1)
    with zipfile.ZipFile(bounded) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            reason = None
            if info.flag_bits & 1:
                reason = "encrypted"
            elif stat.S_ISLNK(info.external_attr >> 16):
                reason = "symbolic link"

            def read(most_bytes: int, info: zipfile.ZipInfo = info) -> bytes:
                with archive.open(info) as member:
                    data = member.read(most_bytes)
                bounded.count(len(data))
                return data

            # What is read for another part of the source counts for the whole, too.
            passed = partial(bounded.count, info.file_size)
            yield _Member(info.filename, info.file_size, reason, read, passed)


def _tar_members(name: str, file: IO[bytes], intake: Intake) -> Iterator[_Member]:
    stream = ForwardFile(
        _decompressed(name, file), file, most_bytes=max(intake.options.max_file_bytes, 1 << 26) + 1
    )
    with tarfile.TarFile(fileobj=stream, encoding="utf-8") as archive:
        while (info := archive.next()) is not None:
            # It keeps every member, for a caller who would ask for them by name.
            archive.members.clear()  # type: ignore[attr-defined]
            if info.isdir():
                continue
            reason = None
            if info.issym() or info.islnk():
                reason = "a link within the archive"
            elif not info.isreg():
                reason = "not a regular file"

            def read(most_bytes: int, info: tarfile.TarInfo = info) -> bytes:
                member = archive.extractfile(info)
                return b"" if member is None else member.read(most_bytes)

            # A stream counts what it is read past.
            yield _Member(printable_path(info.name), info.size, reason, read, lambda: None)


def _decompressed(name: str, file: IO[bytes]) -> Readable:
    lowered = name.lower()
    if lowered.endswith((".gz", ".tgz", ".crate")):
        return gzip.open(file)
    if lowered.endswith((".bz2", ".tbz", ".tbz2")):
        return bz2.BZ2File(file)
    if lowered.endswith((".xz", ".txz")):
        return lzma.LZMAFile(file)
    if lowered.endswith((".zst", ".tzst")):
        return ZstandardFile(name, file)
    return file


def _safe_path(name: str, intake: Intake) -> str:
    """Return a member's path without what would lead out of a folder."""
    parts = name.replace("\\", "/").split("/")
    path = "/".join(part for part in parts if part not in ("", ".", ".."))
    if ".." in parts or name.startswith(("/", "\\")):
        intake.report.warn(path, f"called {name!r} in the archive, which leads out of it")
    return path


def _lies_in_junk(path: str, folders: set[str], intake: Intake) -> bool:
    parts = path.split("/")
    for place, part in enumerate(parts):
        reason = VERSION_CONTROL_REASON if part in VERSION_CONTROL else None
        if intake.options.ignore and part in JUNK:
            reason = TOOLS_REASON
        if reason is None:
            continue
        folder = "/".join(parts[: place + 1])
        if folder not in folders:
            folders.add(folder)
            intake.report.skip(folder, reason)
        return True
    return False


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__
