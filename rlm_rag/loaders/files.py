"""One file's bytes: only regular files, never more than the limit, never through a link."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from rlm_rag.errors import SourceError
from rlm_rag.loaders.text import SNIFF_BYTES, is_binary

FOLDER_REASON = "a folder, not a file"
LINK_REASON = "symbolic link"
GONE_REASON = "no longer there"
CHECK_FILE_HINT = "Check the file and its permissions."

_START_BYTES = 1 << 18
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
)
_KINDS = {
    stat.S_IFLNK: LINK_REASON,
    stat.S_IFIFO: "named pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
    stat.S_IFDIR: FOLDER_REASON,
}


def read_regular(
    location: str, limit: int, *, whole: bool = False, status: os.stat_result | None = None
) -> bytes | str:
    """Return a regular file's bytes, or the reason why it is not read.

    Of a file that starts as a binary one, only the start is returned, unless `whole` asks for
    the rest. At most `limit` bytes are read, also from a file that grows meanwhile. `status` is
    what `lstat` says of it, where the caller has just asked.

    Raises:
        OSError: the file is missing or cannot be read.
    """
    # Looked at before it is opened, since opening a device or a pipe can have effects.
    status = os.lstat(location) if status is None else status
    if not stat.S_ISREG(status.st_mode):
        return kind_reason(status.st_mode)
    if status.st_size > limit:
        return too_large_reason(limit)
    # What has taken its place since is no link and does not block; a device ends at the limit.
    descriptor = os.open(location, _FLAGS)
    try:
        data = _read_at_most(descriptor, limit + 1, expected=status.st_size, whole=whole)
    finally:
        os.close(descriptor)
    return too_large_reason(limit) if len(data) > limit else data


def kind_reason(mode: int) -> str:
    """Say what something that is no regular file is."""
    return _KINDS.get(stat.S_IFMT(mode), "not a regular file")


def too_large_reason(limit: int) -> str:
    """Say that a file has more bytes than a document may."""
    return f"larger than {format_bytes(limit)} (max_file_bytes)"


def failure_reason(error: OSError) -> str:
    """Say in a few words why a file or folder could not be read."""
    if error.errno == errno.ENOENT:
        return GONE_REASON
    if error.errno == errno.ELOOP:
        return LINK_REASON
    return f"not readable: {error.strerror or type(error).__name__}"


def unreadable(location: Path, error: OSError) -> SourceError:
    """Return the error of a file that was asked for by name and cannot be read."""
    return SourceError(f"Cannot load {location}: {failure_reason(error)}.", hint=CHECK_FILE_HINT)


def format_bytes(count: int) -> str:
    """Write a number of bytes the way people read it: `64 MiB`, `1.5 GiB`, `7 bytes`."""
    if count < 1024:
        return f"{count} byte{'s' * (count != 1)}"
    power = min((count.bit_length() - 1) // 10, 4)
    value = f"{count / 1024**power:.1f}".removesuffix(".0")
    return f"{value} {('KiB', 'MiB', 'GiB', 'TiB')[power - 1]}"


def _read_at_most(descriptor: int, limit: int, *, expected: int, whole: bool) -> bytes:
    # Of a large file the start alone first: it may be binary, and the rest of no use.
    wanted = expected + 1 if whole or expected < _START_BYTES else _START_BYTES
    piece = os.read(descriptor, min(wanted, limit))
    # Most files by far.
    if len(piece) == expected < wanted:
        return piece
    if not whole and is_binary(piece[:SNIFF_BYTES]):
        return piece
    pieces = [piece]
    size_bytes = len(piece)
    # A file of /proc has more than the nothing that it says it has.
    while piece and size_bytes < limit and not (size_bytes == expected and len(piece) < wanted):
        wanted = max(1 << 20, expected + 1 - size_bytes)
        piece = os.read(descriptor, min(wanted, limit - size_bytes))
        pieces.append(piece)
        size_bytes += len(piece)
    return b"".join(pieces)
