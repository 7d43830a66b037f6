"""Which lines of a window answer a query: how near its words are, and the best ones, numbered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from rlm_rag.indexes.requests import MAX_SNIPPET_CHARS
from rlm_rag.indexes.term_lines import Held, TermLines

_LINE_CHARS = 160
_KEPT_BEFORE_CHARS = 40
# What a term is still worth in a line, when a chosen line has it already: a quarter.
_LOST, _OF = 3, 4
_MIN_LINE_CHARS = 24
# What `str.strip` takes from an ASCII text.
_BLANK = b"\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f "
# Whole numbers, for sums of others differ in their last bits with the order of a set.
_WORTH = 1_000_000


class Snippets:
    """Cuts the snippets of one query, given its terms with their weights."""

    def __init__(self, terms: Mapping[bytes, float]) -> None:
        self._terms = {term: int(weight * _WORTH) for term, weight in terms.items()}
        self._lines = TermLines(self._terms)
        # The terms in the lines of windows seen before.
        self._held: dict[bytes, Held] = {}

    @property
    def term_count(self) -> int:
        """How many terms are looked for."""
        return len(self._terms)

    def of(self, window: bytes, first: int, *, begins: int | None = None) -> str:
        """Return at most 400 characters of the lines of a window, whose first has that number.

        Between the lines there is LF. Each shown line is `number: text` with outer space cut;
        `…` stands where a long line was cut. The lines chosen first are those that hold the
        most weight of terms not shown yet, then their neighbours; the last may be cut to fit.
        After the best line comes the one where its definition `begins`, if that is known.
        """
        lines = window.split(b"\n")
        found = self._found(window)
        chosen: dict[int, str] = {}
        left = MAX_SNIPPET_CHARS
        header = None if begins is None else begins - first
        for at in self._by_worth(lines, found, header):
            room = left - len(f"{first + at}: ") - 1
            if room < _MIN_LINE_CHARS and chosen:
                break
            if chosen and _is_longer(lines[at], room):
                continue
            text = self._cut(lines[at].decode("utf-8", "surrogatepass").strip(), found.get(at))
            if len(text) > room and chosen:
                continue
            chosen[at] = f"{first + at}: {text}"
            left -= len(chosen[at]) + 1
        return "\n".join(chosen[at] for at in sorted(chosen))

    def nearness(self, windows: Sequence[bytes]) -> list[float]:
        """Return, for each window, the most that one line holds of the terms, by weight: 0 to 1."""
        self.look_at(windows)
        total = sum(self._terms.values()) or 1
        held = (self._held[window].values() for window in windows)
        return [max(map(self._worth, lines), default=0) / total for lines in held]

    def look_at(self, windows: Iterable[bytes]) -> None:
        """Find the terms in windows that are asked about later: all at once costs least."""
        new = [window for window in windows if window not in self._held]
        if new:
            self._held.update(zip(new, self._lines.of(new), strict=True))

    def lines(self, window: bytes) -> Iterable[int]:
        """Return the lines of a window, counted from 0, that hold a term."""
        return self._found(window).keys()

    def best_line(self, window: bytes) -> int:
        """Return the first of a window's lines, counted from 0, that hold most of the terms."""
        found = self._found(window)
        return max(sorted(found), key=lambda at: self._worth(found[at]), default=0)

    def _found(self, window: bytes) -> Held:
        found = self._held.get(window)
        if found is None:
            self.look_at([window])
            found = self._held[window]
        return found

    def _worth(self, terms: Iterable[bytes]) -> int:
        return sum(map(self._terms.__getitem__, terms))

    def _by_worth(self, lines: Sequence[bytes], found: Held, header: int | None) -> Iterator[int]:
        """Yield the lines worth showing: best first, then what stands next to the best."""
        worths = {at: self._worth(found[at]) for at in sorted(found)}
        shown: set[bytes] = set()
        anchor: int | None = None
        while worths:
            best = max(worths, key=worths.__getitem__)
            with_it = () if header is None or anchor is not None else (header,)
            anchor = best if anchor is None else anchor
            for one in dict.fromkeys((best, *with_it)):
                worths.pop(one, None)
                yield one
                for term in found.get(one, frozenset()) - shown:
                    lost = self._terms[term] * _LOST // _OF
                    for at in worths:
                        if term in found[at]:
                            worths[at] -= lost
                shown |= found.get(one, frozenset())
        yielded = {*found, header} if anchor is not None else set(found)
        for at in _outward(anchor or 0, len(lines)):
            if at not in yielded and lines[at].strip():
                yield at

    def _cut(self, text: str, found: Set[bytes] | None) -> str:
        """Cut a long line around the weightiest of its terms."""
        if len(text) <= _LINE_CHARS:
            return text
        folded = text.lower()
        by_weight = sorted(found or (), key=lambda term: (-self._terms[term], term))
        places = (folded.find(term.decode("utf-8", "surrogatepass")) for term in by_weight)
        first = next((place for place in places if place >= 0), 0)
        start = max(0, first - _KEPT_BEFORE_CHARS)
        if first <= _LINE_CHARS - _KEPT_BEFORE_CHARS:
            start = 0
        head = "…" if start else ""
        end = start + _LINE_CHARS - len(head)
        if end >= len(text):
            return head + text[len(text) - _LINE_CHARS + len(head) :]
        return head + text[start : end - 1] + "…"


def _is_longer(line: bytes, room: int) -> bool:
    """Whether a line is told to be too long, however it is cut, before it is decoded."""
    return line.isascii() and min(len(line.strip(_BLANK)), _LINE_CHARS) > room


def _outward(anchor: int, count: int) -> Iterator[int]:
    """Yield the numbers below `count`, those nearest to `anchor` first."""
    yield anchor
    for distance in range(1, max(anchor, count - 1 - anchor) + 1):
        if anchor >= distance:
            yield anchor - distance
        if anchor + distance < count:
            yield anchor + distance
