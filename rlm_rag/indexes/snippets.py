"""Which lines of a window answer a query: how near its words are, and the best ones, numbered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from rlm_rag.indexes.parts import Held
from rlm_rag.indexes.requests import MAX_SNIPPET_CHARS

_LINE_CHARS = 160
_KEPT_BEFORE_CHARS = 40
# To be cut a line is made text, and once more in lower case.
_MOST_LINE_BYTES = 1 << 20
_AROUND_BYTES = 1 << 12
# Shorter ones are made text at once.
_LONG_LINE_BYTES = 1 << 10
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
        self._total = sum(self._weights) or 1
        # What sets of terms are worth, and what their lines lose of it once one shows them.
        self._worths = _Sums(self._weights)
        self._losses = _Sums([weight * _LOST // _OF for weight in self._weights])

    @property
    def terms(self) -> Sequence[bytes]:
        """The terms, as bits in what lines hold stand for them."""
        return self._terms

    def of(
        self, lines: Sequence[bytes], first: int, held: Held, *, begins: int | None = None
    ) -> str:
        """Return at most 400 characters of some lines, whose first has that number.

        Between the lines there is LF. Each shown line is `number: text` with outer space cut;
        `…` stands where a long line was cut. The lines chosen first are those that hold the
        most weight of terms not shown yet, then their neighbours; the last may be cut to fit.
        After the best line comes the one where its definition `begins`, if that is known.
        """
        end = first + len(lines)
        found = {line - first: bits for line, bits in held.items() if first <= line < end}
        chosen: dict[int, str] = {}
        left = MAX_SNIPPET_CHARS
        header = None if begins is None else begins - first
        for at in self._by_worth(lines, found, header):
            head = f"{first + at}: "
            room = left - len(head) - 1
            if room < _MIN_LINE_CHARS and chosen:
                break
            line = lines[at]
            if len(line) > _LONG_LINE_BYTES:
                if len(line) > _MOST_LINE_BYTES:
                    line = self._around(line, found.get(at, 0))
                line = line.strip(_BLANK)
                if chosen and line.isascii() and min(len(line), _LINE_CHARS) > room:
                    # It is too long however it is cut.
                    continue
            text = line.decode("utf-8", "surrogatepass").strip()
            if len(text) > _LINE_CHARS:
                if room < _LINE_CHARS and chosen:
                    # Cut, it has so many.
                    continue
                text = self._cut(text, found.get(at, 0))
            elif len(text) > room and chosen:
                continue
            chosen[at] = head + text
            left -= len(head) + len(text) + 1
        return "\n".join([chosen[at] for at in sorted(chosen)])

    def nearness(self, held: Held) -> float:
        """Return the most that one line holds of the terms, by weight: 0 to 1."""
        return max(map(self._worths.__getitem__, set(held.values())), default=0) / self._total

    def best_line(self, held: Held, default: int) -> int:
        """Return the first of the lines that hold most of the terms; the default for no lines."""
        if not held:
            return default
        worths = list(map(self._worths.__getitem__, held.values()))
        return list(held)[worths.index(max(worths))]

    def _by_worth(self, lines: Sequence[bytes], found: Held, header: int | None) -> Iterator[int]:
        """Yield the lines worth showing: best first, then what stands next to the best."""
        of_bits, losses = self._worths, self._losses
        worths = {at: of_bits[bits] for at, bits in found.items()}
        shown = 0
        anchor: int | None = None
        while worths:
            for at in sorted(worths, key=worths.__getitem__, reverse=True):
                del worths[at]
                yield at
                new = found[at] & ~shown
                if anchor is None:
                    anchor = at
                    if header is not None and header != at:
                        worths.pop(header, None)
                        yield header
                        new |= found.get(header, 0)
                if new:
                    shown |= new
                    for other in worths:
                        worths[other] -= losses[found[other] & new]
                    break
        yielded = {*found, header} if anchor is not None else set(found)
        for at in _outward(anchor or 0, len(lines)):
            if at not in yielded and lines[at].strip():
                yield at

    def _around(self, line: bytes, bits: int) -> bytes:
        """Return what of a line is looked at to cut it, around the weightiest of its terms."""
        first = 0
        for number in _numbers(bits):
            found = re.search(_in_either_case(self._terms[number]), line, re.IGNORECASE)
            if found is not None:
                first = found.start()
                break
        start = max(0, first - _AROUND_BYTES)
        around = line[start : first + _AROUND_BYTES]
        return around.decode("utf-8", "ignore").encode("utf-8")

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


class _Sums(dict[int, int]):
    """The sums of numbers by the bits that stand for them, each worked out when first needed."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__()
        self._of_bits = numbers

    def __missing__(self, bits: int) -> int:
        total = self[bits] = sum(self._of_bits[number] for number in _numbers(bits))
        return total


def _in_either_case(term: bytes) -> bytes:
    """Return a pattern of bytes, which knows capitals of ASCII alone, for a term in lower case."""
    chars = term.decode("utf-8", "surrogatepass")
    forms = (
        re.escape(char) if char.isascii() else f"(?:{char}|{re.escape(char.upper())})"
        for char in chars
    )
    return "".join(forms).encode("utf-8", "surrogatepass")


def _numbers(bits: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set, the lowest first."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def _outward(anchor: int, count: int) -> Iterator[int]:
    """Yield the numbers below `count`, those nearest to `anchor` first."""
    yield anchor
    for distance in range(1, max(anchor, count - 1 - anchor) + 1):
        if anchor >= distance:
            yield anchor - distance
        if anchor + distance < count:
            yield anchor + distance
