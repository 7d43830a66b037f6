"""What processes hold of the machine's memory, from /proc."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
AVAILABLE = (_PROC / "self" / "smaps_rollup").exists()


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of one or more processes.

    `private` are held by one process alone and `proportional` share out what several hold:
    both leave a file that many map to whoever else maps it.
    """

    resident: int
    proportional: int
    private: int


def descendants(of: int) -> set[int]:
    """Return the processes that `of` started, and those that they started."""
    parents: dict[int, int] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            parent = _parent(entry)
            if parent is not None:
                parents[int(entry.name)] = parent
    found: set[int] = set()
    new = {of}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return found


def memory_of(processes: Iterable[int]) -> Memory:
    """Add up what `processes` hold; one that has ended holds nothing."""
    totals = {"Rss": 0, "Pss": 0, "Private_Clean": 0, "Private_Dirty": 0}
    for process in processes:
        try:
            rollup = (_PROC / str(process) / "smaps_rollup").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        for line in rollup.splitlines():
            name, _, rest = line.partition(":")
            if name in totals:
                totals[name] += int(rest.split()[0]) * 1024
    return Memory(totals["Rss"], totals["Pss"], totals["Private_Clean"] + totals["Private_Dirty"])


def _parent(entry: Path) -> int | None:
    try:
        stat = (entry / "stat").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name, in parentheses, may hold spaces and parentheses of its own.
    return int(stat.rpartition(")")[2].split()[1])
