"""Write a page to a file, whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def write_page(path: Path, pieces: Iterable[str]) -> int:
    """Write pieces of text beside `path` and rename; return how many bytes there are.

    Only its owner can read a new file, since a page says what its data says. A link is
    followed, and what is no regular file, such as a terminal or a pipe, written to as it is.

    Raises:
        OSError: it cannot be written; an older file is as it was.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            return sum(file.write(_bytes(piece)) for piece in pieces)
    target = path.resolve()
    fd, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    try:
        with os.fdopen(fd, "wb") as file:
            size = sum(file.write(_bytes(piece)) for piece in pieces)
        Path(name).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    return size


def _bytes(piece: str) -> bytes:
    return piece.encode("utf-8", "backslashreplace")
