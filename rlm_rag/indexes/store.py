"""Segments kept in the user's cache folder: one folder a source, with no state but its files.

A segment appears under its name when it is whole and is never changed, so that processes need
no lock: each reads the segments there are, adds those that it misses, and removes those that
hold nothing it needs. A file that is damaged or of another version is removed when it is met.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rlm_rag.indexes.segment import Segment, SegmentError

MAX_STORED_BYTES = 4 << 30

_SUFFIX = ".segment"
_PARTIAL = ".partial"
_ABOUT = "about.json"
# No segment takes this long to write: its process died.
_ABANDONED_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """The index of one source: `used` is when it was opened last, in seconds since 1970."""

    origin: str
    folder: Path
    size_bytes: int
    segments: int
    used: float


def default_index_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """The folder of all indexes, in `XDG_CACHE_HOME` or the platform's own cache folder.

    None where none is chosen and this user has no home folder.
    """
    environ = os.environ if environ is None else environ
    chosen = environ.get("XDG_CACHE_HOME", "")
    if chosen and Path(chosen).is_absolute():
        return Path(chosen) / "rlm-rag" / "indexes"
    local = environ.get("LOCALAPPDATA", "")
    if sys.platform == "win32" and local:
        return Path(local) / "rlm-rag" / "Cache" / "indexes"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    below = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return home / below / "rlm-rag" / "indexes"


def folder_of(root: Path, origin: str) -> Path:
    """Return the folder of a source's index."""
    return (
        root / hashlib.blake2b(origin.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    )


class SegmentStore:
    """The segments of one source, in `folder`, or in memory where it is None.

    Where the folder cannot be written (read-only, full), what is added stays in memory, and
    `note` says why.
    """

    def __init__(
        self,
        folder: Path | None,
        *,
        stamp: bytes,
        origin: str = "",
        max_bytes: int = MAX_STORED_BYTES,
    ) -> None:
        self.note: str | None = None
        self._folder = folder
        self._stamp = stamp
        self._origin = origin
        self._max_bytes = max_bytes

    @property
    def folder(self) -> Path | None:
        """Where segments are kept; None in memory."""
        return self._folder

    def open(self) -> list[Segment]:
        """Open every segment that can be used, and remove those that cannot."""
        if self._folder is None:
            return []
        segments = []
        # Another process may be removing what is listed here.
        for path in _files(self._folder):
            try:
                segments.append(Segment.open(path, self._stamp))
            except OSError:
                # Gone, or not to be read now: no reason to think that it is damaged.
                continue
            except (SegmentError, ValueError):
                self._remove(path)
        with suppress(OSError):
            os.utime(self._folder / _ABOUT)
        return segments

    def add(self, data: bytes | bytearray) -> Segment:
        """Keep a segment, and return it opened."""
        if self._folder is not None and self.note is None:
            try:
                return self._written(self._folder, data)
            except OSError as error:
                self.note = (
                    f"the index is kept in memory only: {self._folder} cannot be written "
                    f"({error.strerror or error})"
                )
        return Segment(data, self._stamp)

    def remove_damaged(self) -> int:
        """Read all of every segment, remove those that are damaged, and return how many."""
        removed = 0
        paths = set(_files(self._folder)) if self._folder else set()
        for segment in self.open():
            paths.discard(segment.path)
            try:
                segment.check()
            except SegmentError:
                self.remove([segment])
                removed += 1
        # Those left were not even opened.
        return removed + len(paths)

    def remove(self, segments: Iterable[Segment]) -> None:
        """Remove segments; who has them open keeps what they hold."""
        for segment in segments:
            if segment.path is not None:
                self._remove(segment.path)

    def _written(self, folder: Path, data: bytes | bytearray) -> Segment:
        self._prepare(folder)
        path = folder / f"{time.time_ns():016x}-{secrets.token_hex(4)}{_SUFFIX}"
        partial = path.with_suffix(_PARTIAL)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            with os.fdopen(os.open(partial, flags, 0o600), "wb") as file:
                file.write(data)
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        evict(folder.parent, self._max_bytes, kept=folder)
        try:
            return Segment.open(path, self._stamp)
        except SegmentError as error:
            raise OSError(f"what was written reads back otherwise: {error}") from error

    def _prepare(self, folder: Path) -> None:
        for made in (folder.parent.parent, folder.parent, folder):
            made.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder / _ABOUT
        if not about.exists():
            partial = folder / f"{secrets.token_hex(4)}{_PARTIAL}"
            partial.touch(mode=0o600)
            partial.write_text(json.dumps({"origin": self._origin}), "ascii")
            partial.replace(about)
        for path in folder.glob(f"*{_PARTIAL}"):
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                    path.unlink()

    def _remove(self, path: Path) -> None:
        # In a folder that cannot be written it stays, and is met and left aside again.
        with suppress(OSError):
            path.unlink(missing_ok=True)


def list_indexes(root: Path) -> list[StoredIndex]:
    """Return what is stored beneath a folder, last used first."""
    found = []
    with suppress(FileNotFoundError, NotADirectoryError):
        for folder in root.iterdir():
            with suppress(FileNotFoundError, NotADirectoryError):
                found.append(_described(folder))
    return sorted(found, key=lambda one: (-one.used, one.folder))


def clear(indexes: Iterable[StoredIndex]) -> None:
    """Remove stored indexes.

    Raises:
        OSError: a folder cannot be removed.
    """
    for index in indexes:
        with suppress(FileNotFoundError):
            shutil.rmtree(index.folder)


def evict(root: Path, max_bytes: int, *, kept: Path) -> None:
    """Remove the indexes used longest ago until all take `max_bytes`; `kept` stays."""
    stored = list_indexes(root)
    total = sum(index.size_bytes for index in stored)
    for index in reversed(stored):
        if total <= max_bytes:
            return
        if index.folder != kept:
            shutil.rmtree(index.folder, ignore_errors=True)
            total -= index.size_bytes


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == _SUFFIX)
    except OSError:
        # Not there yet, or not readable: either way nothing of it can be used.
        return []


def _described(folder: Path) -> StoredIndex:
    sizes = [path.stat().st_size for path in folder.iterdir()]
    about = folder / _ABOUT
    try:
        origin = str(json.loads(about.read_text("ascii"))["origin"])
        used = about.stat().st_mtime
    except (OSError, ValueError, KeyError, TypeError):
        origin, used = "(unknown)", folder.stat().st_mtime
    return StoredIndex(origin, folder, sum(sizes), len(_files(folder)), used)
