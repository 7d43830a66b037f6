"""The files that `scripted:` and `replay:` models reply from: regular ones, of a bounded size."""

from __future__ import annotations

import stat
from pathlib import Path

MAX_FILE_BYTES = 64 << 20


def check_model_file(path: Path) -> None:
    """Refuse what would block or never end when it is read: a FIFO, a device, a huge file.

    Raises:
        OSError: there is no such file.
        ValueError: not a regular file, or one larger than MAX_FILE_BYTES.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is not a regular file")
    if status.st_size > MAX_FILE_BYTES:
        raise _too_large()


def read_model_file(path: Path) -> str:
    """The whole text of such a file, which is UTF-8.

    Raises:
        OSError: it cannot be read.
        ValueError: as for `check_model_file`, or not UTF-8.
    """
    check_model_file(path)
    with path.open("rb") as file:
        # Files that the kernel makes up as they are read say that they are empty.
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise _too_large()
    return data.decode("utf-8")


def _too_large() -> ValueError:
    return ValueError(f"it is larger than {MAX_FILE_BYTES:,} bytes")
