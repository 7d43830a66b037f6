"""The lines of a window that answer a query best, numbered, in line order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rlm_rag.indexes.requests import MAX_SNIPPET_CHARS
from rlm_rag.indexes.terms import separated, word_terms

_LINE_CHARS = 160
_KEPT_BEFORE_CHARS = 40
# What a term is still worth in a line, when a chosen line has it already.
_REPEATED = 0.25
_MIN_LINE_CHARS = 24
_WORTH_DIGITS = 6


class Snippets:
    """Cuts the snippets of one query, given its terms with their weights."""

    def __init__(self, terms: Mapping[bytes, float]) -> None:
        self._terms = terms
        # What of a raw word counts, for the words of all windows.
        self._known: dict[bytes, frozenset[bytes]] = {}

    def of(self, lines: Sequence[str], first: int) -> str:
        """Return at most 400 characters of `lines`, whose first has the number `first`.

        Each shown line is `number: text` with outer space cut; `…` stands where a long line
        was cut. The lines chosen first are those that hold the most weight of terms not shown
        yet, then their neighbours; the last may be cut to fit.
        """
        found = self._found(lines)
        chosen: dict[int, str] = {}
        left = MAX_SNIPPET_CHARS
        for at in self._by_worth(lines, found):
            room = left - len(f"{first + at}: ") - 1
            if room < _MIN_LINE_CHARS and chosen:
                break
            text = self._cut(lines[at].strip(), found[at])
            if len(text) > room and chosen:
                continue
            chosen[at] = f"{first + at}: {text}"
            left -= len(chosen[at]) + 1
        return "\n".join(chosen[at] for at in sorted(chosen))

    def _found(self, lines: Sequence[str]) -> list[frozenset[bytes]]:
        """Return the query's terms in each line."""
        known = self._known
        found: list[frozenset[bytes]] = []
        for words in map(bytes.split, _separated_lines(lines)):
            here: set[bytes] = set()
            for word in words:
                counted = known.get(word)
                if counted is None:
                    counted = known[word] = frozenset(word_terms(word)) & self._terms.keys()
                if counted:
                    here |= counted
            found.append(frozenset(here))
        return found

    def _by_worth(self, lines: Sequence[str], found: Sequence[frozenset[bytes]]) -> Iterator[int]:
        """Yield the lines worth showing: best first, then what stands next to the best."""
        worth = self._terms.__getitem__
        worths = {at: sum(map(worth, terms)) for at, terms in enumerate(found) if terms}
        shown: set[bytes] = set()
        anchor: int | None = None
        while worths:
            # Rounded, for sums over sets differ in their last bits from run to run.
            best = max(worths, key=lambda at: round(worths[at], _WORTH_DIGITS))
            del worths[best]
            anchor = best if anchor is None else anchor
            yield best
            for term in found[best] - shown:
                lost = (1 - _REPEATED) * worth(term)
                for at in worths:
                    if term in found[at]:
                        worths[at] -= lost
            shown |= found[best]
        beside = [at for at, line in enumerate(lines) if line.strip() and not found[at]]
        yield from sorted(beside, key=lambda at: abs(at - (anchor or 0)))

    def _cut(self, text: str, found: frozenset[bytes]) -> str:
        """Cut a long line around the weightiest of its terms."""
        if len(text) <= _LINE_CHARS:
            return text
        folded = text.lower()
        by_weight = sorted(found, key=lambda term: (-self._terms[term], term))
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


def _separated_lines(lines: Sequence[str]) -> Iterator[bytes]:
    """Yield the lines with spaces for separators, which are all found at once."""
    encoded = [line.encode("utf-8", "surrogatepass") for line in lines]
    data = separated(b" ".join(encoded))
    start = 0
    for line in encoded:
        yield data[start : start + len(line)]
        start += len(line) + 1
