"""One file to text: only regular files, never more than the limit, never through a link."""

from __future__ import annotations

import errno
import os
import stat

from rlm_rag.corpus import Skipped
from rlm_rag.loaders.secrets import SECRET_REASON, holds_private_key, may_hold_secrets
from rlm_rag.loaders.text import SNIFF_BYTES, DecodedText, decode_text, is_binary

BINARY_REASON = "binary"
FOLDER_REASON = "a folder, not a file"
# Why text that somebody may miss was left out; for the rest a look at the list is enough.
TELLING_REASONS = ("not readable", "larger than")

_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
)
_KINDS = {
    stat.S_IFLNK: "symbolic link",
    stat.S_IFIFO: "named pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
    stat.S_IFDIR: FOLDER_REASON,
}


def read_file(location: str, path: str, *, max_file_bytes: int) -> DecodedText | Skipped:
    """Read and decode the file at `location`; what is no readable text is skipped as `path`.

    At most `max_file_bytes` are read, also from a file that grows meanwhile.
    """
    if may_hold_secrets(path):
        return Skipped(path, SECRET_REASON)
    try:
        data = read_regular(location, max_file_bytes)
    except OSError as error:
        return Skipped(path, failure_reason(error))
    if isinstance(data, str):
        return Skipped(path, data)
    if holds_private_key(path, data[:SNIFF_BYTES]):
        return Skipped(path, SECRET_REASON)
    decoded = decode_text(data)
    return Skipped(path, BINARY_REASON) if decoded is None else decoded


def read_regular(location: str, limit: int) -> bytes | str:
    """Return a regular file's bytes, or the reason why it is not read.

    Of a file that starts as a binary one, only the start is returned.

    Raises:
        OSError: the file is missing or cannot be read.
    """
    # Looked at before it is opened, since opening a device or a pipe can have effects.
    status = os.lstat(location)
    if not stat.S_ISREG(status.st_mode):
        return _KINDS.get(stat.S_IFMT(status.st_mode), "not a regular file")
    too_large = f"larger than {format_bytes(limit)} (max_file_bytes)"
    if status.st_size > limit:
        return too_large
    descriptor = os.open(location, _FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return _KINDS.get(stat.S_IFMT(status.st_mode), "not a regular file")
        data = _read_at_most(descriptor, limit + 1, expected=status.st_size)
    finally:
        os.close(descriptor)
    return too_large if len(data) > limit else data


def failure_reason(error: OSError) -> str:
    """Say in a few words why a file or folder could not be read."""
    if error.errno == errno.ENOENT:
        return "no longer there"
    if error.errno == errno.ELOOP:
        return _KINDS[stat.S_IFLNK]
    return f"not readable: {error.strerror or type(error).__name__}"


def format_bytes(count: int) -> str:
    """Write a number of bytes the way people read it: `64 MiB`, `1.5 GiB`, `7 bytes`."""
    if count < 1024:
        return f"{count} byte{'s' * (count != 1)}"
    power = min((count.bit_length() - 1) // 10, 4)
    value = f"{count / 1024**power:.1f}".removesuffix(".0")
    return f"{value} {('KiB', 'MiB', 'GiB', 'TiB')[power - 1]}"


def _read_at_most(descriptor: int, limit: int, *, expected: int) -> bytes:
    pieces: list[bytes] = []
    left = limit
    wanted = expected + 1
    while left > 0:
        piece = os.read(descriptor, min(wanted, left))
        if not piece:
            break
        pieces.append(piece)
        left -= len(piece)
        if len(pieces) == 1 and is_binary(piece[:SNIFF_BYTES]):
            break
        wanted = 1 << 20
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
