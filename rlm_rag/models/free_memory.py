"""How much memory this program may still take, as the system and its control groups say."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where a version of control groups keeps its limits, and what it names them.

    `cached` are the pages of files that a group holds and gives back when it needs memory.
    """

    folder: str
    limit: str
    used: str
    cached: tuple[str, ...]


# Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst; in the latter the
# names with `total_` count what the groups below hold too, as the usage does.
_V2 = _Layout("sys/fs/cgroup", "memory.max", "memory.current", ("active_file", "inactive_file"))
_V1 = _Layout(
    "sys/fs/cgroup/memory",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    ("total_active_file", "total_inactive_file"),
)


def free_memory_bytes(root: Path = Path("/")) -> int | None:
    """Return how many bytes can be had, None where the system does not say.

    On Linux what the kernel calls available (the cache of files is given back to whoever needs
    memory), or less where a control group of this process, or one above it, leaves less; elsewhere
    the pages that are free. `root` is where `proc` and `sys` lie.
    """
    system = _available(root)
    if system is None:
        system = _free_pages()
    amounts = [*_left_by_groups(root), *([] if system is None else [system])]
    return min(amounts, default=None)


def _available(root: Path) -> int | None:
    kibibytes = _figures(root / "proc/meminfo").get("MemAvailable")
    return None if kibibytes is None else kibibytes * 1024


def _free_pages() -> int | None:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def _left_by_groups(root: Path) -> Iterator[int]:
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if not controllers:
            layout = _V2
        elif "memory" in controllers.split(","):
            layout = _V1
        else:
            continue
        for group in (PurePosixPath(path), *PurePosixPath(path).parents):
            left = _left(root / layout.folder / group.relative_to(group.anchor), layout)
            if left is not None:
                yield left


def _left(folder: Path, layout: _Layout) -> int | None:
    """Return what a group leaves; None where it has no limit, or is not seen from here."""
    limit, used = _text(folder / layout.limit).strip(), _text(folder / layout.used).strip()
    if not limit.isdecimal() or not used.isdecimal():
        return None
    held = _figures(folder / "memory.stat")
    cached = sum(held.get(name, 0) for name in layout.cached)
    return max(0, int(limit) - max(0, int(used) - cached))


def _figures(file: Path) -> Mapping[str, int]:
    """Return the first number of each line of a file, by the word before it."""
    rows = (line.replace(":", " ").split() for line in _text(file).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        # Not of this system, or not of this version of control groups.
        return ""
