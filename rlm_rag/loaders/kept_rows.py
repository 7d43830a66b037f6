"""The rows of a kept corpus's table, one a file: what its status was, and its documents."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_rag.loaders.memory import STATUS_NUMBERS, UNSETTLED, ReadFile

PLACE_NUMBERS = 2
# What else is told of some rows, by their numbers.
ODD = ("parts", "skipped", "warnings")


@dataclass(frozen=True, slots=True)
class RowChanges:
    """What becomes of some rows: other `statuses`, no file any more (`gone`), or a `new` one.

    `documents` are the numbers that those before have now, None where all keep theirs; of the new
    files `found` has them by path.
    """

    statuses: Mapping[int, Sequence[int]]
    gone: Collection[int] = ()
    new: Sequence[ReadFile] = ()
    documents: Sequence[int] | None = None
    found: Mapping[str, int] | None = None

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.statuses or self.gone or self.new)


@dataclass(frozen=True, slots=True)
class Rows:
    """Of each file its location, its path, `STATUS_NUMBERS` and `PLACE_NUMBERS`.

    Those of its place are its first document, and how many it came to. `odd` is as in `ODD`.
    """

    locations: list[str]
    paths: list[str]
    statuses: array[int]
    places: array[int]
    odd: Mapping[str, Mapping[str, Any]]

    def after(self, changes: RowChanges) -> Rows:
        """Return the rows that there are after some changes."""
        statuses = self.statuses[:]
        for row, status in changes.statuses.items():
            statuses[STATUS_NUMBERS * row : STATUS_NUMBERS * (row + 1)] = array("q", status)
        places = self._moved(changes.documents)
        rows = Rows(self.locations, self.paths, statuses, places, self.odd)
        if changes.gone:
            rows = rows._without(frozenset(changes.gone))
        return rows._with(changes.new, changes.found or {}) if changes.new else rows

    def _moved(self, documents: Sequence[int] | None) -> array[int]:
        places = self.places[:]
        if documents is not None:
            firsts, counts = places[::PLACE_NUMBERS], places[1::PLACE_NUMBERS]
            # Without any, the first is none of them.
            moved = (
                documents[one] if many else 0 for one, many in zip(firsts, counts, strict=True)
            )
            places[::PLACE_NUMBERS] = array("q", moved)
        return places

    def _without(self, gone: frozenset[int]) -> Rows:
        kept = [row for row in range(len(self.paths)) if row not in gone]
        now = {str(row): str(number) for number, row in enumerate(kept)}
        statuses, places = array("q"), array("q")
        start = 0
        for end in sorted((*gone, len(self.paths))):
            statuses += self.statuses[STATUS_NUMBERS * start : STATUS_NUMBERS * end]
            places += self.places[PLACE_NUMBERS * start : PLACE_NUMBERS * end]
            start = end + 1
        odd = {
            name: {now[key]: told for key, told in self.odd[name].items() if key in now}
            for name in ODD
        }
        locations = [self.locations[row] for row in kept]
        return Rows(locations, [self.paths[row] for row in kept], statuses, places, odd)

    def _with(self, new: Sequence[ReadFile], found: Mapping[str, int]) -> Rows:
        """Add files that came to one document, or to none and were skipped."""
        statuses, places = self.statuses[:], self.places[:]
        odd = {name: dict(self.odd[name]) for name in ODD}
        for row, file in enumerate(new, start=len(self.paths)):
            statuses.extend(file.status or UNSETTLED)
            places.extend((found.get(file.path, 0), len(file.parts)))
            if not file.parts:
                odd["parts"][str(row)] = ()
                odd["skipped"][str(row)] = [(one.path, one.reason) for one in file.skipped]
        locations = [*self.locations, *(file.location for file in new)]
        return Rows(locations, [*self.paths, *(file.path for file in new)], statuses, places, odd)
