"""Which lines of a window answer a query: how near its words are, and the best ones, numbered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

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
        # The heaviest first: of bits that stand for terms, the lowest is of the most worth.
        self._terms = sorted(terms, key=lambda term: (-int(terms[term] * _WORTH), term))
        self._weights = [int(terms[term] * _WORTH) for term in self._terms]
        self._lines = TermLines(self._terms)
        # What sets of terms are worth, and what their lines lose of it once one shows them.
        self._worths = {0: 0}
        self._losses = {0: 0}
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
            head = f"{first + at}: "
            room = left - len(head) - 1
            if room < _MIN_LINE_CHARS and chosen:
                break
            if chosen and _is_longer(lines[at], room):
                continue
            text = lines[at].decode("utf-8", "surrogatepass").strip()
            if len(text) > _LINE_CHARS:
                text = self._cut(text, found.get(at, 0))
            if len(text) > room and chosen:
                continue
            chosen[at] = head + text
            left -= len(head) + len(text) + 1
        return "\n".join([chosen[at] for at in sorted(chosen)])

    def nearness(self, windows: Sequence[bytes]) -> list[float]:
        """Return, for each window, the most that one line holds of the terms, by weight: 0 to 1."""
        self.look_at(windows)
        total = sum(self._weights) or 1
        held = (self._held[window].values() for window in windows)
        return [max(map(self._worth, set(lines)), default=0) / total for lines in held]

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
        return max(found, key=lambda at: self._worth(found[at]), default=0)

    def _found(self, window: bytes) -> Held:
        found = self._held.get(window)
        if found is None:
            self.look_at([window])
            found = self._held[window]
        return found

    def _worth(self, bits: int) -> int:
        worth = self._worths.get(bits)
        if worth is None:
            weights = self._weights
            worth = self._worths[bits] = sum(weights[number] for number in _numbers(bits))
        return worth

    def _loss(self, bits: int) -> int:
        loss = self._losses.get(bits)
        if loss is None:
            lost = (self._weights[number] * _LOST // _OF for number in _numbers(bits))
            loss = self._losses[bits] = sum(lost)
        return loss

    def _by_worth(self, lines: Sequence[bytes], found: Held, header: int | None) -> Iterator[int]:
        """Yield the lines worth showing: best first, then what stands next to the best."""
        worths = {at: self._worth(bits) for at, bits in found.items()}
        shown = 0
        anchor: int | None = None
        while worths:
            best = max(worths, key=worths.__getitem__)
            chosen = [best]
            if anchor is None:
                anchor = best
                if header is not None and header != best:
                    chosen.append(header)
            for one in chosen:
                worths.pop(one, None)
                yield one
                new = found.get(one, 0) & ~shown
                if new:
                    for at in worths:
                        worths[at] -= self._loss(found[at] & new)
                    shown |= new
        yielded = {*found, header} if anchor is not None else set(found)
        for at in _outward(anchor or 0, len(lines)):
            if at not in yielded and lines[at].strip():
                yield at

    def _cut(self, text: str, bits: int) -> str:
        """Cut a long line around the weightiest of its terms."""
        folded = text.lower()
        by_weight = (self._terms[number] for number in _numbers(bits))
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


def _numbers(bits: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set, the lowest first."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


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
