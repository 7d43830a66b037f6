"""Which lines of a window answer a query: how near its words are, and the best ones, numbered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set

from rlm_rag.indexes.requests import MAX_SNIPPET_CHARS
from rlm_rag.indexes.terms import separated, word_terms

_LINE_CHARS = 160
_KEPT_BEFORE_CHARS = 40
# What a term is still worth in a line, when a chosen line has it already: a quarter.
_LOST, _OF = 3, 4
_MIN_LINE_CHARS = 24
# Whole numbers, for sums of others differ in their last bits with the order of a set.
_WORTH = 1_000_000
_WORD = re.compile(rb"[^ ]+")


class Snippets:
    """Cuts the snippets of one query, given its terms with their weights."""

    def __init__(self, terms: Mapping[bytes, float]) -> None:
        self._terms = {term: int(weight * _WORTH) for term, weight in terms.items()}
        self._spaced = [b" %b " % term for term in self._terms]
        # What counts of the raw words met so far in any window.
        self._known: dict[bytes, Set[bytes]] = {}
        self._found_in: dict[bytes, dict[int, set[bytes]]] = {}

    @property
    def term_count(self) -> int:
        """How many terms are looked for."""
        return len(self._terms)

    def of(self, window: bytes, first: int) -> str:
        """Return at most 400 characters of the lines of a window, whose first has that number.

        Between the lines there is LF. Each shown line is `number: text` with outer space cut;
        `…` stands where a long line was cut. The lines chosen first are those that hold the
        most weight of terms not shown yet, then their neighbours; the last may be cut to fit.
        """
        lines = window.split(b"\n")
        found = self._found(window)
        chosen: dict[int, str] = {}
        left = MAX_SNIPPET_CHARS
        for at in self._by_worth(lines, found):
            room = left - len(f"{first + at}: ") - 1
            if room < _MIN_LINE_CHARS and chosen:
                break
            text = self._cut(lines[at].decode("utf-8", "surrogatepass").strip(), found.get(at))
            if len(text) > room and chosen:
                continue
            chosen[at] = f"{first + at}: {text}"
            left -= len(chosen[at]) + 1
        return "\n".join(chosen[at] for at in sorted(chosen))

    def nearness(self, window: bytes) -> float:
        """Return the greatest share of the terms, by weight, that one line holds: 0 to 1."""
        worth = self._terms.__getitem__
        most = max((sum(map(worth, terms)) for terms in self._found(window).values()), default=0)
        return most / (sum(self._terms.values()) or 1)

    def _found(self, window: bytes) -> dict[int, set[bytes]]:
        """Return the query's terms in each line that has any."""
        found = self._found_in.get(window)
        if found is not None:
            return found
        found = self._found_in[window] = {}
        data = b" %b " % separated(window)
        known = self._known
        for at, end in self._likely(data):
            word = data[at:end]
            counted = known.get(word)
            if counted is None:
                counted = known[word] = self._terms.keys() & word_terms(word)
            if counted:
                # The window begins one byte later than `data`.
                line = window.count(b"\n", 0, at - 1)
                if line in found:
                    found[line] |= counted
                else:
                    found[line] = set(counted)
        return found

    def _likely(self, data: bytes) -> list[tuple[int, int]]:
        """Return where words lie, between spaces, among them all that have terms of the query."""
        if not data.isascii() or (b"_" in data and self._any_joined(data)):
            return [match.span() for match in _WORD.finditer(data)]
        folded = data.lower()
        spans = []
        for term in self._terms:
            at = folded.find(term)
            while at >= 0:
                end = data.find(b" ", at)
                spans.append((data.rfind(b" ", 0, at) + 1, end))
                at = folded.find(term, end)
        return spans

    def _any_joined(self, data: bytes) -> bool:
        """Whether a term is a word but for its underscores, so that it cannot be looked for."""
        folded = data.lower()
        joined = folded.replace(b"_", b"")
        return any(
            spaced in joined and joined.count(spaced) > folded.count(spaced)
            for spaced in self._spaced
        )

    def _by_worth(self, lines: Sequence[bytes], found: Mapping[int, set[bytes]]) -> Iterator[int]:
        """Yield the lines worth showing: best first, then what stands next to the best."""
        worth = self._terms.__getitem__
        worths = {at: sum(map(worth, found[at])) for at in sorted(found)}
        shown: set[bytes] = set()
        anchor: int | None = None
        while worths:
            best = max(worths, key=worths.__getitem__)
            del worths[best]
            anchor = best if anchor is None else anchor
            yield best
            for term in found[best] - shown:
                lost = worth(term) * _LOST // _OF
                for at in worths:
                    if term in found[at]:
                        worths[at] -= lost
            shown |= found[best]
        beside = [at for at, line in enumerate(lines) if at not in found and line.strip()]
        yield from sorted(beside, key=lambda at: abs(at - (anchor or 0)))

    def _cut(self, text: str, found: set[bytes] | None) -> str:
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
