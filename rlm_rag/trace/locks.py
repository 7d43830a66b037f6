"""Who writes to a file: a lock that ends with the process that holds it."""

from __future__ import annotations

import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has no such locks.
    fcntl = None  # type: ignore[assignment]


def lock(fd: int) -> bool:
    """Keep others from writing on; false where one has the file. Ends with the process."""
    if fcntl is None:
        return True
    return _take(fd, fcntl.LOCK_EX)


def is_locked(path: Path) -> bool:
    """Whether somebody writes to a file now; false too where that cannot be told."""
    if fcntl is None:
        return False
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        # It was removed meanwhile, and nobody's any more.
        return False
    try:
        return not _take(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)


def _take(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # Some network file systems know no locks; a file is written there all the same.
        return True
    return True
