"""What the windows that a search looks at are shown as: their lines, and their snippets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from rlm_rag.indexes.enclosing import header_above
from rlm_rag.indexes.finding import Finder
from rlm_rag.indexes.landmarks import Landmarks
from rlm_rag.indexes.languages import language_of
from rlm_rag.indexes.parts import Candidate, Held, Parts, Stretch
from rlm_rag.indexes.requests import Hit
from rlm_rag.indexes.snippets import Snippets
from rlm_rag.indexes.windows import WINDOW_LINES, stretch_first

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


class _Lines:
    """The lines of a window, and those above it, by their numbers in the document."""

    def __init__(self, stretch: Stretch, window_first: int) -> None:
        self._stretch, self._window_first = stretch, window_first
        self.held = held = stretch.held
        if held and next(iter(held)) < window_first:
            held = {line: terms for line, terms in held.items() if line >= window_first}
        # Which terms the lines of the window alone hold.
        self.window_held = held

    @cached_property
    def window(self) -> bytes:
        """The lines of the window alone, joined by LF."""
        stretch = self._stretch
        return stretch.text.split(b"\n", self._window_first - stretch.first)[-1]

    @cached_property
    def _all(self) -> list[bytes]:
        return self._stretch.text.split(b"\n")

    def cut(self, first: int, last: int) -> list[bytes]:
        """Return lines from one to another; those that are not there are left out."""
        begins = self._stretch.first
        return self._all[first - begins : last - begins + 1]


class Showing:
    """Reads windows for one query, each once; those of a part that was lost are empty."""

    def __init__(self, parts: Parts, snippets: Snippets) -> None:
        self._parts = parts
        self._snippets = snippets
        self._read: dict[_Key, _Lines] = {}
        self._shown: dict[_Key, Shown] = {}
        self.landmarks: Mapping[str, Landmarks | None] = {}
        """What is known of documents by their paths, before the first window is shown."""

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
        terms = self._snippets.terms
        requests = {
            part: partial(Finder.stretches, windows=[one.window for one in those], terms=terms)
            for part, those in wanted.items()
        }
        found = self._parts.ask(requests) if requests else {}
        for part, those in wanted.items():
            lost = [Stretch(b"", stretch_first(one.first), {}) for one in those]
            for one, stretch in zip(those, found.get(part, lost), strict=True):
                self._read[_key(one)] = _Lines(stretch, one.first)

    def text(self, one: Candidate) -> bytes:
        """Return a window's lines, joined by LF however its document ends them."""
        return self._read[_key(one)].window

    def held(self, one: Candidate) -> Held:
        """Return which of the query's terms a window's lines hold."""
        return self._read[_key(one)].window_held

    def shown(self, one: Candidate) -> Shown:
        """Return what lines a window is shown as."""
        key = _key(one)
        known = self._shown.get(key)
        if known is None:
            first, last = one.first, one.last
            best = self._snippets.best_line(self.held(one), first)
            begins = self._begins(one, best)
            if begins is not None and begins < first:
                first, last = begins, min(last, begins + WINDOW_LINES - 1)
            known = self._shown[key] = Shown(first, last, best, begins)
        return known

    def hit(self, one: Candidate) -> Hit:
        """Return a window as what a search gives."""
        shown, read = self.shown(one), self._read[_key(one)]
        lines = read.cut(shown.first, shown.last)
        snippet = self._snippets.of(lines, shown.first, read.held, begins=shown.begins)
        return Hit(one.path, shown.first, shown.last, one.rank, snippet)

    def _begins(self, one: Candidate, line: int) -> int | None:
        """Return the line where the definition begins that holds a line, if not far above it."""
        first = stretch_first(line)
        landmarks = self.landmarks.get(one.path)
        if landmarks is not None:
            return landmarks.around(line, first)
        language = language_of(one.path)
        if language is None:
            return None
        above = header_above(b"\n".join(self._read[_key(one)].cut(first, line)), language)
        return None if above is None else first + above


def _key(one: Candidate) -> _Key:
    return one.part, one.window
