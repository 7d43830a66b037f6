"""Packages of the host as a folder of links, for layers whose workers see the host's own paths."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def link_libraries(folder: Path, files: Iterable[tuple[str, str]]) -> Path:
    """Make `folder` look like a worker's folder of libraries, and return it.

    `files` are what `libraries.library_files` returns.
    """
    folder.mkdir(exist_ok=True)
    for path, name in files:
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if sys.platform == "win32":
            _link_or_copy(Path(path), place)
        else:
            place.symlink_to(path)
    return folder


def _link_or_copy(path: Path, place: Path) -> None:
    """Copy what cannot be linked: on Windows that takes a privilege."""
    with suppress(OSError):
        place.symlink_to(path, target_is_directory=path.is_dir())
    if not place.exists():
        _copy(path, place)


def _copy(path: Path, place: Path) -> None:
    if path.is_dir():
        # With its times, so that what was compiled of it holds.
        shutil.copytree(path, place)
    else:
        shutil.copy2(path, place)
