"""Private folders for temporary files, removed with their owner, whatever way it ended."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]
try:
    import msvcrt
except ImportError:
    msvcrt = None  # type: ignore[assignment]

_PREFIX = "rlm-rag-host-"
_LOCK_NAME = "lock"
# No process takes this long from making a folder to locking it: it died in between.
_UNLOCKED_SECONDS = 3600.0
# On Windows a file has its name before it is locked.
_LOCKED_SECONDS = 10.0
_own: set[Path] = set()


class ScratchFolder:
    """A folder of mode 0700 under `parent`, gone at `close`, at exit or when forgotten.

    `parent` is made where it is missing; it defaults to the temporary folder, which is not.

    A process that was killed cannot remove its own: a locked file inside tells the living from
    the dead, and whoever makes the next folder removes what the dead left.

    Raises:
        OSError: `parent` cannot be written.
    """

    __slots__ = ("__weakref__", "_finalizer", "path")

    def __init__(self, parent: Path | None = None) -> None:
        if parent is None:
            parent = Path(tempfile.gettempdir())
        else:
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        remove_stale(parent)
        # Known as ours before it is there, so that no interrupt finds it there and unknown.
        self.path = parent / f"{_PREFIX}{secrets.token_hex(8)}"
        _own.add(self.path)
        self.path.mkdir(mode=0o700)
        lock = None
        try:
            lock = _lock(self.path)
        finally:
            self._finalizer = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def close(self) -> None:
        """Remove the folder and all in it; idempotent."""
        self._finalizer()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_own.clear)


def remove_own() -> None:
    """Remove every folder of this process, for one that ends where it stands.

    Idempotent; also finishes what an interrupt broke off.
    """
    for folder in tuple(_own):
        _empty_and_remove(folder)


def remove_stale(parent: Path) -> None:
    """Remove the folders that dead processes of this user left in `parent`."""
    if fcntl is None:
        _remove_stale_on_windows(parent)
        return
    for folder in _own_folders(parent):
        # Another process may be removing the same folder now.
        with suppress(OSError), _abandoned(folder / _LOCK_NAME) as abandoned:
            if abandoned:
                _empty_and_remove(folder)


def _remove_stale_on_windows(parent: Path) -> None:
    """Remove them where no file can be removed or renamed that is open."""
    if msvcrt is None:
        return
    for folder in _own_folders(parent):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > _LOCKED_SECONDS:
                os.close(_locked_on_windows(folder))
                _empty_and_remove(folder)


def _locked_on_windows(folder: Path) -> int:
    """Lock a folder's file, made where it is missing, and return its descriptor.

    Raises:
        OSError: another process has it.
    """
    descriptor = os.open(folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _own_folders(parent: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    if _is_own(entry.stat(follow_symlinks=False)):
                        yield Path(entry.path)


def _is_own(status: os.stat_result) -> bool:
    # On Windows each user has a folder of temporary files.
    return not hasattr(os, "getuid") or status.st_uid == os.getuid()


@contextmanager
def _abandoned(lock: Path) -> Iterator[bool]:
    """Hold the lock while the caller removes its folder; a folder with no lock is being made."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        yield time.time() - lock.parent.stat().st_mtime > _UNLOCKED_SECONDS
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def _lock(folder: Path) -> int | None:
    if fcntl is None:
        return None if msvcrt is None else _locked_on_windows(folder)
    # Locked before it has its name, so that no other process finds it unlocked.
    unnamed = folder / f"{_LOCK_NAME}.new"
    descriptor = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    unnamed.rename(folder / _LOCK_NAME)
    return descriptor


def _remove(folder: Path, lock: int | None, owner: int) -> None:
    # A forked child inherits the object, but not the folder.
    if os.getpid() != owner:
        return
    if fcntl is None:
        _close(lock)
    _empty_and_remove(folder)
    _own.discard(folder)
    if fcntl is not None:
        _close(lock)


def _empty_and_remove(folder: Path) -> None:
    # The lock goes last: without it, what is left by one that dies meanwhile passes for new.
    with suppress(OSError):
        for entry in folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != _LOCK_NAME:
                entry.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _close(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)
