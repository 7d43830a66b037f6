"""Which lines of the corpus the host showed to the root or sent to sub-models.

What a block reads from `context` itself is not seen here, and so not counted.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CoverageSummary:
    """Files of the corpus, and how many of them had lines searched, read or delegated.

    `searched` counts what search, grep, outline and symbols returned. A line counts once in
    each kind, however often it was returned.
    """

    files: int
    searched: int
    read: int
    delegated: int
    searched_lines: int = 0
    read_lines: int = 0
    delegated_lines: int = 0

    def to_dict(self) -> dict[str, int]:
        """The `coverage` object of docs/design.md section 4.4."""
        return {
            "files": self.files,
            "searched": self.searched,
            "read": self.read,
            "delegated": self.delegated,
        }


@dataclass(slots=True)
class _Lines:
    """Merged line ranges of one file: `first[i]`..`last[i]` inclusive, ascending, not touching."""

    first: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)

    def add(self, first: int, last: int) -> None:
        begin = bisect_left(self.last, first - 1)
        end = bisect_right(self.first, last + 1)
        if begin < end:
            first = min(first, self.first[begin])
            last = max(last, self.last[end - 1])
        self.first[begin:end] = [first]
        self.last[begin:end] = [last]

    def count(self) -> int:
        return sum(self.last) - sum(self.first) + len(self.first)


class Coverage:
    """Records line ranges (1-based, inclusive) as the host returns or sends them.

    Ranges that are empty or begin before line 1 are cut to what exists of them.
    """

    def __init__(self) -> None:
        self._searched: dict[str, _Lines] = {}
        self._read: dict[str, _Lines] = {}
        self._delegated: dict[str, _Lines] = {}

    def searched(self, path: str, first: int, last: int) -> None:
        """Lines that search, grep, outline or symbols returned."""
        _add(self._searched, path, first, last)

    def read(self, path: str, first: int, last: int) -> None:
        """Lines whose text `read` returned."""
        _add(self._read, path, first, last)

    def delegated(self, path: str, first: int, last: int) -> None:
        """Lines that were sent to a sub-model."""
        _add(self._delegated, path, first, last)

    def ranges(self, path: str) -> tuple[tuple[int, int], ...]:
        """The lines of one file that were seen in any way, merged, ascending."""
        merged = _Lines()
        for kind in (self._searched, self._read, self._delegated):
            lines = kind.get(path, _Lines())
            for first, last in zip(lines.first, lines.last, strict=True):
                merged.add(first, last)
        return tuple(zip(merged.first, merged.last, strict=True))

    def summary(self, corpus_files: int) -> CoverageSummary:
        """The figures so far, for a corpus of `corpus_files` files."""
        return CoverageSummary(
            files=corpus_files,
            searched=len(self._searched),
            read=len(self._read),
            delegated=len(self._delegated),
            searched_lines=sum(lines.count() for lines in self._searched.values()),
            read_lines=sum(lines.count() for lines in self._read.values()),
            delegated_lines=sum(lines.count() for lines in self._delegated.values()),
        )


def _add(kind: dict[str, _Lines], path: str, first: int, last: int) -> None:
    first = max(first, 1)
    if last >= first:
        kind.setdefault(path, _Lines()).add(first, last)
