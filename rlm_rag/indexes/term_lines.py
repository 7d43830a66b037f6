"""In which lines of a text the terms of a query stand, in however they are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.runs import run_starts
from rlm_rag.indexes.terms import separated, word_terms

_SPACE, _LF, _UNDERSCORE, _FIRST_WIDE = 0x20, 0x0A, 0x5F, 0x80
_DIGITS, _LOWER = (0x30, 10), (0x61, 26)
# Four bytes are compared at once, whatever follows the text's last ones.
_KEY_BYTES = 4

# Lines that hold a term, counted from 0: bit n is set for term n.
Held = Mapping[int, int]
Places = NDArray[np.intp]
Bytes = NDArray[np.uint8]


class TermLines:
    """Finds the terms of one query; keeps what the words it met have of them."""

    def __init__(self, terms: Sequence[bytes]) -> None:
        self._bits = {term: 1 << number for number, term in enumerate(terms)}
        # Others stand in words beyond ASCII alone, which are all looked at.
        self._sought = [term for term in self._bits if term.isascii()]
        self._across = _pairs_across(self._sought)
        self._known: dict[bytes, int] = {}

    def of(self, texts: Sequence[bytes]) -> list[Held]:
        """Return for each text what its lines hold.

        All texts are looked through at once, which costs little more than one of them.
        """
        # Only texts beyond ASCII cost more than a look.
        data = b" %b%b" % (b" ".join(map(separated, texts)), b" " * _KEY_BYTES)
        starts, ends = self._likely(data)
        words = [data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        known = self._known
        known.update((word, self._of_word(word)) for word in set(words) - known.keys())
        found: list[dict[int, int]] = [{} for _ in texts]
        numbers, lines = _places(texts, starts - 1)
        for number, line, bits in zip(numbers, lines, map(known.__getitem__, words), strict=True):
            if bits:
                held = found[number]
                held[line] = held.get(line, 0) | bits
        return list(found)

    def _of_word(self, word: bytes) -> int:
        bits = self._bits
        return sum(bits[term] for term in word_terms(word) if term in bits)

    def _likely(self, data: bytes) -> tuple[Places, Places]:
        """Return where words lie, between spaces, among them all that have terms of the query."""
        folded = data.lower()
        values, written = np.frombuffer(folded, np.uint8), np.frombuffer(data, np.uint8)
        places = [self._alone(folded, values, written)]
        underscores = np.flatnonzero(values == _UNDERSCORE)
        if len(underscores):
            pairs = values[underscores - 1].astype(np.uint16) << 8 | values[underscores + 1]
            places.append(underscores[self._across[pairs]])
        if not folded.isascii():
            # What a word beyond ASCII means cannot be told from how it is written.
            places.append(np.flatnonzero(values >= _FIRST_WIDE))
        spaces = np.flatnonzero(values == _SPACE)
        following = np.searchsorted(spaces, np.concatenate(places))
        following.sort()
        following = following[run_starts(following)]
        return spaces[following - 1] + 1, spaces[following]

    def _alone(self, folded: bytes, values: Bytes, written: Bytes) -> Places:
        """Return where the terms may stand, begun and ended where parts of words can be."""
        keys = np.ndarray(len(folded) - _KEY_BYTES + 1, "<u4", folded, strides=(1,)).copy()
        borders = np.ones(len(values) + 1, np.bool_)
        small, digits = _among(written, _LOWER), _among(written, _DIGITS)
        borders[1:-1] = ~(small[1:] & _among(values, _LOWER)[:-1] | digits[1:] & digits[:-1])
        begun = np.zeros(len(keys), np.bool_)
        for term in self._sought:
            found = _found(keys, term)
            begun[: len(found)] |= found & borders[len(term) : len(term) + len(found)]
        return np.flatnonzero(begun & borders[: len(begun)])


def _among(values: Bytes, those: tuple[int, int]) -> NDArray[np.bool_]:
    """Say which bytes are among so many from the first on."""
    first, count = those
    return values - np.uint8(first) < count


def _found(keys: NDArray[np.uint32], term: bytes) -> NDArray[np.bool_]:
    """Say where the first four bytes of a term and its last four are, or all of a short one."""
    size = len(term)
    first = np.uint32(int.from_bytes(term[:_KEY_BYTES], "little"))
    found: NDArray[np.bool_]
    if size < _KEY_BYTES:
        found = keys & np.uint32((1 << 8 * size) - 1) == first
    elif size == _KEY_BYTES:
        found = keys == first
    else:
        lasts = keys[size - _KEY_BYTES :]
        last = np.uint32(int.from_bytes(term[-_KEY_BYTES:], "little"))
        found = (keys[: len(lasts)] == first) & (lasts == last)
    return found


def _pairs_across(terms: Iterable[bytes]) -> NDArray[np.bool_]:
    """Say of two bytes, `one << 8 | other`, if they can be beside an underscore in a joined term.

    After it there may be another one.
    """
    across = bytearray(1 << 16)
    for term in terms:
        for before, after in pairwise(term):
            across[before << 8 | after] = across[before << 8 | _UNDERSCORE] = 1
    return np.frombuffer(across, np.bool_)


def _places(texts: Sequence[bytes], offsets: Places) -> tuple[list[int], list[int]]:
    """Return in which of the texts, joined by LF, offsets lie, and in which line of it."""
    block = b"\n".join(texts)
    line_ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _LF)
    text_starts = np.cumsum([0, *(len(text) + 1 for text in texts)])
    numbers = np.searchsorted(text_starts, offsets, side="right") - 1
    first_lines = np.searchsorted(line_ends, text_starts)
    lines = np.searchsorted(line_ends, offsets) - first_lines[numbers]
    return numbers.tolist(), lines.tolist()
