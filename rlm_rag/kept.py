"""What is kept of sources in the user's cache folder: one folder a source, with no state but files.

A file appears under its name when it is whole and is never changed, so that processes need no
lock. What lies there is no trusted input: who reads it checks it, and does without it.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO

from rlm_rag.own_folders import CACHE_TAG, CACHE_TAG_NAME, cache_folder

MAX_KEPT_BYTES = 4 << 30
SEGMENT_SUFFIX = ".segment"

_PACKAGE = Path(__file__).parent
_PARTIAL = ".partial"
_ABOUT = "about.json"
# No file takes this long to write: its process died.
_ABANDONED_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class KeptSource:
    """What is kept of one source: `used` is when it was opened last, in seconds since 1970."""

    origin: str
    folder: Path
    size_bytes: int
    segments: int
    used: float


def default_kept_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """The folder of all sources' folders, in the user's cache folder; None where there is none."""
    folder = cache_folder(environ)
    return None if folder is None else folder / "indexes"


def folder_of(root: Path, origin: str) -> Path:
    """Return the folder of a source."""
    return (
        root / hashlib.blake2b(origin.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    )


@cache
def sources_digest(names: tuple[str, ...]) -> str:
    """Return a digest of the source of modules, given by their paths within this package.

    What is kept bears it, so that no change to what it was made by can be forgotten.
    """
    digest = hashlib.blake2b()
    for name in names:
        digest.update((_PACKAGE / name).read_bytes())
    return digest.hexdigest()


def prepare(folder: Path, origin: str) -> None:
    """Make a source's folder, for this user alone, and remove what was left half written in it.

    Raises:
        OSError: it cannot be made or written.
    """
    make_private(folder.parent.parent, folder.parent, folder)
    about = folder / _ABOUT
    if not about.exists():
        write(about, lambda file: file.write(json.dumps({"origin": origin}).encode("ascii")))
    for path in folder.glob(f"*{_PARTIAL}"):
        remove_abandoned(path)


def make_cache(folder: Path) -> None:
    """Make a folder to keep things in, for this user alone; the user's cache folder gets its tag.

    Raises:
        OSError: it cannot be made.
    """
    make_private(folder)
    tag = folder / CACHE_TAG_NAME
    # Any other may have been there, and hold what no backup should leave out.
    if folder == cache_folder() and not os.path.lexists(tag):
        # What is kept does without it, and the folders within may be all that can be written.
        with suppress(OSError):
            write(tag, lambda file: file.write(CACHE_TAG))


def make_private(*folders: Path) -> None:
    """Make folders, outermost first, for this user alone.

    Raises:
        OSError: one cannot be made.
    """
    for folder in folders:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def write(path: Path, fill: Callable[[BinaryIO], object]) -> None:
    """Make a file of mode 0600 that has its name only when `fill` has written all of it.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}{_PARTIAL}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(partial, flags, 0o600), "wb") as file:
            fill(file)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def fresh_name(suffix: str) -> str:
    """Return a name that no file has, later ones after earlier ones."""
    return f"{time.time_ns():016x}-{secrets.token_hex(4)}{suffix}"


def remove_abandoned(path: Path) -> None:
    """Remove a file that nobody can still be writing or about to name.

    Raises:
        OSError: it cannot be removed.
    """
    with suppress(FileNotFoundError):
        if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
            path.unlink()


def mark_used(folder: Path) -> None:
    """Note that a source was opened now, where that can be written."""
    with suppress(OSError):
        os.utime(folder / _ABOUT)


def list_kept(root: Path) -> list[KeptSource]:
    """Return what is kept beneath a folder, last used first."""
    found = []
    with suppress(FileNotFoundError, NotADirectoryError):
        for folder in root.iterdir():
            # None of them is a link, which may lead anywhere, or to itself.
            if folder.is_symlink():
                continue
            with suppress(FileNotFoundError, NotADirectoryError):
                found.append(_described(folder))
    return sorted(found, key=lambda one: (-one.used, one.folder))


def clear(kept: Iterable[KeptSource]) -> None:
    """Remove what is kept of some sources.

    Raises:
        OSError: a folder cannot be removed.
    """
    for one in kept:
        with suppress(FileNotFoundError):
            shutil.rmtree(one.folder)


def evict(root: Path, max_bytes: int, *, spared: Path) -> None:
    """Remove the sources used longest ago until all take `max_bytes`; `spared` stays.

    One counts half of that at most: a large one would else drive out all others.
    """
    kept = list_kept(root)
    sizes = {one.folder: min(one.size_bytes, max_bytes // 2) for one in kept}
    total = sum(sizes.values())
    for one in reversed(kept):
        if total <= max_bytes:
            return
        if one.folder != spared:
            shutil.rmtree(one.folder, ignore_errors=True)
            total -= sizes[one.folder]


def _described(folder: Path) -> KeptSource:
    paths = list(folder.iterdir())
    sizes = [path.lstat().st_size for path in paths]
    about = folder / _ABOUT
    try:
        origin = str(json.loads(about.read_text("ascii"))["origin"])
        used = about.stat().st_mtime
    except (OSError, ValueError, KeyError, TypeError):
        origin, used = "(unknown)", folder.stat().st_mtime
    segments = sum(path.suffix == SEGMENT_SUFFIX for path in paths)
    return KeptSource(origin, folder, sum(sizes), segments, used)
