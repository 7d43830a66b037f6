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
    """

    first: int
    last: int
    best: int
    begins: int | None


class Showing:
    """Reads windows for one query, each once; those of a part that was lost are empty."""

    def __init__(self, parts: Parts, snippets: Snippets) -> None:
        self._parts = parts
        self._snippets = snippets
        # Their lines, and those before them where a definition may begin that they are in.
        self._read: dict[_Key, tuple[bytes, bytes]] = {}
        self._shown: dict[_Key, Shown] = {}

    @property
    def read_count(self) -> int:
        """How many windows were read."""
        return len(self._read)

    def look_at(self, candidates: Iterable[Candidate]) -> None:
        """Read windows that are asked about later: all at once costs least."""
        wanted: defaultdict[int, list[int]] = defaultdict(list)
        for one in candidates:
            if _key(one) not in self._read:
                wanted[one.part].append(one.window)
        requests = {
            part: partial(Finder.stretches, windows=windows) for part, windows in wanted.items()
        }
        found = self._parts.ask(requests) if requests else {}
        for part, windows in wanted.items():
            stretches = found.get(part, [(b"", b"")] * len(windows))
            self._read.update(zip(((part, one) for one in windows), stretches, strict=True))

    def text(self, one: Candidate) -> bytes:
        """Return a window's lines, joined by LF however its document ends them."""
        return self._read[_key(one)][1]

    def shown(self, one: Candidate) -> Shown:
        """Return what lines a window is shown as."""
        key = _key(one)
        known = self._shown.get(key)
        if known is None:
            first, last = one.first, one.last
            best = first + self._snippets.best_line(self.text(one))
            begins = self._begins(one, stretch_first(best), best)
            if begins is not None and begins < first:
                first, last = begins, min(last, begins + WINDOW_LINES - 1)
            known = self._shown[key] = Shown(first, last, best, begins)
        return known

    def text_shown(self, one: Candidate) -> bytes:
        """Return the lines that a window is shown as."""
        shown = self.shown(one)
        if shown.first == one.first:
            return self.text(one)
        return self._lines(one, shown.first, shown.last)

    def hit(self, one: Candidate) -> Hit:
        """Return a window as what a search gives."""
        shown = self.shown(one)
        snippet = self._snippets.of(self.text_shown(one), shown.first, begins=shown.begins)
        return Hit(one.path, shown.first, shown.last, one.rank, snippet)

    def _begins(self, one: Candidate, first: int, line: int) -> int | None:
        """Return the line, `first` or later, where the definition begins that holds a line."""
        language = language_of(one.path)
        if language is None:
            return None
        above = header_above(self._lines(one, first, line), language)
        return None if above is None else first + above

    def _lines(self, one: Candidate, first: int, last: int) -> bytes:
        before, text = self._read[_key(one)]
        start = stretch_first(one.first)
        stretch = b"\n".join((before, text)) if start < one.first else text
        lines = stretch.split(b"\n")
        return b"\n".join(lines[first - start : last - start + 1])


def _key(one: Candidate) -> _Key:
    return one.part, one.window
