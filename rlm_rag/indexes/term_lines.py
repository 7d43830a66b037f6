"""In which lines of a text the terms of a query stand, in however they are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.runs import run_starts
from rlm_rag.indexes.terms import separated, word_terms

_SPACE, _LF, _FIRST_WIDE = 0x20, 0x0A, 0x80

Held = Mapping[int, frozenset[bytes]]


class TermLines:
    """Finds the terms of one query; keeps what the words it met have of them."""

    def __init__(self, terms: Iterable[bytes]) -> None:
        self._terms = frozenset(terms)
        self._known: dict[bytes, frozenset[bytes]] = {}

    def of(self, texts: Sequence[bytes]) -> list[Held]:
        """Return for each text the terms that its lines hold, by line, counted from 0.

        Lines that hold none are left out. All texts are looked through at once, which costs
        little more than one of them.
        """
        block = b"\n".join(texts)
        data = b" %b " % separated(block)
        starts, ends = self._likely(data)
        values = np.frombuffer(block, np.uint8)
        # The block begins one byte later in `data`.
        line_ends = np.flatnonzero(values == _LF) + 1
        lines = np.searchsorted(line_ends, starts)
        held: dict[int, frozenset[bytes]] = {}
        known = self._known
        for start, end, line in zip(starts.tolist(), ends.tolist(), lines.tolist(), strict=True):
            word = data[start:end]
            counted = known.get(word)
            if counted is None:
                counted = known[word] = self._terms.intersection(word_terms(word))
            if counted:
                before = held.get(line)
                held[line] = counted if before is None else before | counted
        return _by_text(held, texts)

    def _likely(self, data: bytes) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return where words lie, between spaces, among them all that have terms of the query."""
        folded = data.lower()
        places = [_places(folded, term) for term in self._terms]
        if b"_" in folded and self._any_joined(folded, places):
            places.append(_places(folded, b"_"))
        values = np.frombuffer(folded, np.uint8)
        if not folded.isascii():
            # What a word beyond ASCII means cannot be told from how it is written.
            places.append(np.flatnonzero(values >= _FIRST_WIDE))
        spaces = np.flatnonzero(values == _SPACE)
        following = np.searchsorted(spaces, np.concatenate(places))
        following.sort()
        following = following[run_starts(following)]
        return spaces[following - 1] + 1, spaces[following]

    def _any_joined(self, folded: bytes, places: Sequence[NDArray[np.intp]]) -> bool:
        """Whether a term is a word but for its underscores, so that it cannot be looked for."""
        joined = folded.replace(b"_", b"")
        for term, found in zip(self._terms, places, strict=True):
            if joined.count(term) > len(found):
                # Two words that follow each other share a space.
                spaced, apart = b" %b " % term, folded.replace(b" ", b"  ")
                if apart.replace(b"_", b"").count(spaced) > apart.count(spaced):
                    return True
        return False


def _places(data: bytes, wanted: bytes) -> NDArray[np.intp]:
    """Return where some bytes occur, of occurrences that overlap the first."""
    pieces = data.split(wanted)
    sizes = np.fromiter(map(len, pieces), np.intp, len(pieces))[:-1]
    return np.cumsum(sizes + len(wanted)) - len(wanted)


def _by_text(held: Held, texts: Sequence[bytes]) -> list[Held]:
    """Give each of the texts, which follow each other line by line, what its lines hold."""
    found: list[dict[int, frozenset[bytes]]] = [{} for _ in texts]
    text = first = 0
    following = texts[0].count(b"\n") + 1 if texts else 0
    for line, terms in held.items():
        while line >= following:
            text, first = text + 1, following
            following += texts[text].count(b"\n") + 1
        found[text][line - first] = terms
    return list(found)
