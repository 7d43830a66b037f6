"""Which terms lines hold, told word by word."""

from __future__ import annotations

from collections.abc import Sequence

from rlm_rag.indexes.parts import Held
from rlm_rag.indexes.terms import raw_words, word_terms


def held_by(terms: Sequence[bytes], lines: list[str], first: int) -> Held:
    """Return which terms lines hold, whose first has that number."""
    found = {}
    for number, line in enumerate(lines, start=first):
        said = {term for word in raw_words(line) for term in word_terms(word)}
        bits = sum(1 << at for at, term in enumerate(terms) if term in said)
        if bits:
            found[number] = bits
    return found
