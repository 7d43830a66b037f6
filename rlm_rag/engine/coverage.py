"""Which lines of the corpus the host showed to the root or sent to sub-models.

What a block reads from `context` itself is not seen here: that it did so is all that is known.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from rlm_rag.engine.question import asks_for_all
from rlm_rag.globs import compile_glob

MAX_LOOKED = 50
MAX_LOOKED_CHARS = 200
MAX_FILES_LISTED = 200

# More stars than a person writes, or more globs, may take as long as the grep itself.
_MAX_STARS = 6
_MAX_GLOBS = 20
_READS_CONTEXT = re.compile(
    r"(?<![\w.'\"])(?:(?:context|ctx|context_\d+)(?![\w'\"])|records[ \t]*\()"
)


@dataclass(frozen=True, slots=True)
class CoverageSummary:
    """Files of the corpus, and how many of them had lines searched, read or delegated.

    `searched` counts what search, grep, outline and symbols returned; `grepped`, the files that
    a grep went through to their ends, hit or not; `untouched`, those of none of these kinds. A
    line counts once in each kind, however often it was returned. `unobserved` says that blocks
    also used `context` itself, of which nothing is known. `looked` are the look-ups that were
    made, such as `search: retry backoff`; `ranges` the lines seen in any way, by path.
    """

    files: int
    searched: int
    read: int
    delegated: int
    searched_lines: int = 0
    read_lines: int = 0
    delegated_lines: int = 0
    grepped: int = 0
    untouched: int = 0
    unobserved: bool = False
    looked: tuple[str, ...] = ()
    ranges: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The `coverage` object of docs/design.md section 4.4.

        `lines` has the first MAX_FILES_LISTED files, each with its ranges of lines.
        """
        listed = sorted(self.ranges)[:MAX_FILES_LISTED]
        return {
            "files": self.files,
            "searched": self.searched,
            "read": self.read,
            "delegated": self.delegated,
            "grepped": self.grepped,
            "untouched": self.untouched,
            "unobserved": self.unobserved,
            "looked": list(self.looked),
            "lines": {path: [list(each) for each in self.ranges[path]] for path in listed},
        }


def not_looked_at(question: str, seen: CoverageSummary) -> tuple[str, ...]:
    """Return what to say where a question asks for all of something, and not all was looked at."""
    if not seen.untouched or not asks_for_all(question):
        return ()
    said = (
        f"the question asks for all of something, and {seen.untouched:,} of {seen.files:,} files "
        "were neither searched, grepped, read nor delegated"
    )
    if seen.unobserved:
        said += "; blocks used `context` too, which is not observed"
    return (said,)


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
        self._grepped: dict[tuple[str | None, frozenset[str] | None], None] = {}
        self._looked: dict[str, None] = {}
        self._unobserved = False

    def add(self, other: Coverage) -> None:
        """Record all that another one has recorded."""
        for mine, kind in (
            (self._searched, other._searched),
            (self._read, other._read),
            (self._delegated, other._delegated),
        ):
            for path, lines in kind.items():
                for first, last in zip(lines.first, lines.last, strict=True):
                    _add(mine, path, first, last)
        self._grepped |= other._grepped
        for looked in other._looked:
            if len(self._looked) < MAX_LOOKED:
                self._looked[looked] = None
        self._unobserved = self._unobserved or other._unobserved

    def looked(self, name: str, arguments: Mapping[str, Any]) -> None:
        """A look-up that was answered, of whatever use."""
        what = next((value for value in arguments.values() if isinstance(value, str)), "")
        if what and len(self._looked) < MAX_LOOKED:
            self._looked[f"{name.removesuffix('_context')}: {what[:MAX_LOOKED_CHARS]}"] = None

    def grepped(self, path_glob: str | None, within: Collection[str] | None = None) -> None:
        """A grep that went to the end of each file that the glob matches, of `within` or all."""
        members = None if within is None else frozenset(within)
        self._grepped[path_glob, members] = None

    def ran(self, code: str) -> None:
        """A block, which may read `context` without the host."""
        self._unobserved = self._unobserved or _READS_CONTEXT.search(code) is not None

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

    def summary(self, paths: Iterable[str]) -> CoverageSummary:
        """The figures so far, for a corpus with documents of these paths."""
        every = list(paths)
        grepped = self._went_through(every)
        seen = self._searched.keys() | self._read.keys() | self._delegated.keys()
        touched = seen | grepped
        return CoverageSummary(
            files=len(every),
            searched=len(self._searched),
            read=len(self._read),
            delegated=len(self._delegated),
            searched_lines=sum(lines.count() for lines in self._searched.values()),
            read_lines=sum(lines.count() for lines in self._read.values()),
            delegated_lines=sum(lines.count() for lines in self._delegated.values()),
            grepped=len(grepped),
            untouched=sum(path not in touched for path in every),
            unobserved=self._unobserved,
            looked=tuple(self._looked),
            ranges={path: self.ranges(path) for path in sorted(seen)},
        )

    def _went_through(self, every: Iterable[str]) -> set[str]:
        found: set[str] = set()
        for glob, members in islice(self._grepped, _MAX_GLOBS):
            if (glob or "").count("*") > _MAX_STARS:
                continue
            matches = compile_glob(glob) if glob is not None else None
            for path in every if members is None else members:
                if matches is None or matches(path):
                    found.add(path)
        return found


def _add(kind: dict[str, _Lines], path: str, first: int, last: int) -> None:
    first = max(first, 1)
    if last >= first:
        kind.setdefault(path, _Lines()).add(first, last)
