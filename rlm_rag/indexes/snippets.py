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


class Snippets:
    """Cuts the snippets of one query, given its terms with their weights."""

    def __init__(self, terms: Mapping[bytes, float]) -> None:
        self._terms = terms
        # What of a raw word counts, for the words of all windows.
        self._known: dict[bytes, tuple[bytes, ...]] = {}

    def of(self, lines: Sequence[str], first: int) -> str:
        """Return at most 400 characters of `lines`, whose first has the number `first`.

        Each shown line is `number: text` with outer space cut; `…` stands where a long line
        was cut. The lines chosen first are those that hold the most weight of terms not shown
        yet, then their neighbours; the last may be cut to fit.
        """
        found = [self._weighted_terms(line) for line in lines]
        chosen: dict[int, str] = {}
        left = MAX_SNIPPET_CHARS
        for at in _by_worth(lines, found):
            room = left - len(f"{first + at}: ") - 1
            if room < _MIN_LINE_CHARS and chosen:
                break
            text = _cut(lines[at].strip(), found[at], _LINE_CHARS)
            if len(text) > room and chosen:
                continue
            chosen[at] = f"{first + at}: {text}"
            left -= len(chosen[at]) + 1
        return "\n".join(chosen[at] for at in sorted(chosen))

    def _weighted_terms(self, line: str) -> dict[bytes, float]:
        terms, known = self._terms, self._known
        found: dict[bytes, float] = {}
        for word in separated(line.encode("utf-8", "surrogatepass")).split():
            counted = known.get(word)
            if counted is None:
                counted = known[word] = tuple(t for t in word_terms(word) if t in terms)
            for term in counted:
                found[term] = terms[term]
        return found


def _by_worth(lines: Sequence[str], found: Sequence[Mapping[bytes, float]]) -> Iterator[int]:
    """Yield the lines worth showing: best first, then what stands next to the best."""
    shown: set[bytes] = set()
    remaining = [at for at, line in enumerate(lines) if line.strip()]
    matching = {at for at in remaining if found[at]}
    beside = [at for at in remaining if not found[at]]
    anchor: int | None = None
    while matching:
        best = min(matching, key=lambda at: (-_worth(found[at], shown), at))
        matching.remove(best)
        anchor = best if anchor is None else anchor
        yield best
        shown.update(found[best])
    yield from sorted(beside, key=lambda at: abs(at - (anchor or 0)))


def _worth(found: Mapping[bytes, float], shown: set[bytes]) -> float:
    return sum(weight * (_REPEATED if term in shown else 1.0) for term, weight in found.items())


def _cut(text: str, found: Mapping[bytes, float], limit: int) -> str:
    """Cut a long line around the weightiest of its terms."""
    if len(text) <= limit:
        return text
    folded = text.lower()
    by_weight = sorted(found, key=lambda term: (-found[term], term))
    places = (folded.find(term.decode("utf-8", "surrogatepass")) for term in by_weight)
    first = next((place for place in places if place >= 0), 0)
    start = max(0, first - _KEPT_BEFORE_CHARS) if first > limit - _KEPT_BEFORE_CHARS else 0
    head = "…" if start else ""
    end = start + limit - len(head)
    if end >= len(text):
        return head + text[len(text) - limit + len(head) :]
    return head + text[start : end - 1] + "…"
