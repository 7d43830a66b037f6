"""The lines of a window that answer a query best, numbered, in line order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlm_rag.indexes.requests import MAX_SNIPPET_CHARS
from rlm_rag.indexes.terms import separated, word_terms

_LINE_CHARS = 160
_KEPT_BEFORE_CHARS = 40
# What a term is still worth in a line, when a chosen line has it already.
_REPEATED = 0.25
_MIN_LINE_CHARS = 24


def snippet(lines: Sequence[str], first: int, terms: Mapping[bytes, float]) -> str:
    """Return at most 400 characters of `lines`, whose first has the number `first`.

    Each shown line is `number: text` with outer space cut; `…` stands where a long line
    was cut. The lines chosen first are those that hold the most weight of terms not shown
    yet, then their neighbours; the last may be cut to fit.
    """
    found = [_weighted_terms(line, terms) for line in lines]
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


def _weighted_terms(line: str, terms: Mapping[bytes, float]) -> dict[bytes, float]:
    words = separated(line.encode("utf-8", "surrogatepass")).split()
    return {
        term: terms[term]
        for word in dict.fromkeys(words)
        for term in word_terms(word)
        if term in terms
    }


def _by_worth(lines: Sequence[str], found: Sequence[Mapping[bytes, float]]) -> list[int]:
    """Order the lines worth showing: best first, then what stands next to the best."""
    shown: set[bytes] = set()
    order: list[int] = []
    remaining = [at for at, line in enumerate(lines) if line.strip()]
    matching = {at for at in remaining if found[at]}
    while matching:
        best = min(matching, key=lambda at: (-_worth(found[at], shown), at))
        matching.remove(best)
        order.append(best)
        shown.update(found[best])
    anchor = order[0] if order else 0
    beside = sorted((at for at in remaining if at not in order), key=lambda at: abs(at - anchor))
    return order + beside


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
