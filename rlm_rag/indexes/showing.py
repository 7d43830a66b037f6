"""What the windows that a search looks at are shown as: their lines, and their snippets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from rlm_rag.indexes.enclosing import header_above
from rlm_rag.indexes.finding import Finder, stretch_first
from rlm_rag.indexes.languages import language_of
from rlm_rag.indexes.parts import Candidate, Parts
from rlm_rag.indexes.requests import Hit
from rlm_rag.indexes.snippets import Snippets
from rlm_rag.indexes.windows import WINDOW_LINES

_Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Shown:
    """The lines that a window is shown as, and the one of them that holds most of the query.

    `begins` is the one where the definition begins that holds it, None where that is not shown.
    `text` is the lines, joined by LF.
    """

    first: int
    last: int
    best: int
    begins: int | None
    text: bytes


class Showing:
    """Reads windows for one query, each once; those of a part that was lost are empty."""

    def __init__(self, parts: Parts, snippets: Snippets) -> None:
        self._parts = parts
        self._snippets = snippets
        # Their lines, alone and after those where a definition may begin that they are in.
        self._read: dict[_Key, tuple[bytes, bytes]] = {}
        self._shown: dict[_Key, Shown] = {}

    @property
    def read_count(self) -> int:
        """How many windows were read."""
        return len(self._read)

    def look_at(self, candidates: Iterable[Candidate]) -> None:
        """Read windows that are asked about later: all at once costs least."""
        wanted: defaultdict[int, list[Candidate]] = defaultdict(list)
        for one in candidates:
            if _key(one) not in self._read:
                wanted[one.part].append(one)
        requests = {
            part: partial(Finder.stretches, windows=[one.window for one in those])
            for part, those in wanted.items()
        }
        found = self._parts.ask(requests) if requests else {}
        for part, those in wanted.items():
            for one, stretch in zip(those, found.get(part, [b""] * len(those)), strict=True):
                text = stretch.split(b"\n", one.first - stretch_first(one.first))[-1]
                self._read[_key(one)] = text, stretch

    def text(self, one: Candidate) -> bytes:
        """Return a window's lines, joined by LF however its document ends them."""
        return self._read[_key(one)][0]

    def shown(self, one: Candidate) -> Shown:
        """Return what lines a window is shown as."""
        key = _key(one)
        known = self._shown.get(key)
        if known is None:
            first, last, text = one.first, one.last, self.text(one)
            best = first + self._snippets.best_line(text)
            begins = self._begins(one, stretch_first(best), best)
            if begins is not None and begins < first:
                first, last = begins, min(last, begins + WINDOW_LINES - 1)
                text = self._lines(one, first, last)
            known = self._shown[key] = Shown(first, last, best, begins, text)
        return known

    def hit(self, one: Candidate) -> Hit:
        """Return a window as what a search gives."""
        shown = self.shown(one)
        snippet = self._snippets.of(shown.text, shown.first, begins=shown.begins)
        return Hit(one.path, shown.first, shown.last, one.rank, snippet)

    def _begins(self, one: Candidate, first: int, line: int) -> int | None:
        """Return the line, `first` or later, where the definition begins that holds a line."""
        language = language_of(one.path)
        if language is None:
            return None
        above = header_above(self._lines(one, first, line), language)
        return None if above is None else first + above

    def _lines(self, one: Candidate, first: int, last: int) -> bytes:
        start = stretch_first(one.first)
        lines = self._read[_key(one)][1].split(b"\n")
        return b"\n".join(lines[first - start : last - start + 1])


def _key(one: Candidate) -> _Key:
    return one.part, one.window
