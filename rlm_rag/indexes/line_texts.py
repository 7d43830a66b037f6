"""Some lines of a document, read without splitting the rest of it."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.segment import FAR
from rlm_rag.packed import PackedCorpus

_LF, _CR = 10, 13
_CACHED_DOCUMENTS = 256
_CACHED_BYTES = 8 << 20
_PIECE_BYTES = 16 << 20


class LineTexts:
    """Reads lines, and keeps where those of recent documents end."""

    def __init__(self, corpus: PackedCorpus) -> None:
        self._corpus = corpus
        self._ends: OrderedDict[int, NDArray[np.uint32]] = OrderedDict()
        self._cached_bytes = 0

    def lines(self, document: int, first: int, last: int) -> bytes:
        """Return lines, counted from 1, both ends included, joined by LF however they ended."""
        content = self._corpus.content_bytes(document)
        ends = self._ends.get(document)
        if ends is None:
            ends = self._found(document, content)
        else:
            self._ends.move_to_end(document)
        start = int(ends[first - 2]) + 1 if first > 1 else 0
        stop = int(ends[last - 1]) if last <= len(ends) else len(content)
        text = bytes(content[start:stop])
        if b"\r" not in text:
            return text
        if len(ends) and content[int(ends[0])] == _CR:
            return text.replace(b"\r", b"\n")
        text = text.replace(b"\r\n", b"\n")
        return text.removesuffix(b"\r") if last <= len(ends) else text

    def between(self, document: int, first: int, last: int, begin: int, end: int | None) -> bytes:
        """Return lines as `lines` does, for less where it is known at which bytes they lie.

        `begin` is where the first begins, `end` where what follows the last does, None at the end
        of the text; either may be `FAR`.
        """
        if begin < FAR and end != FAR:
            text = bytes(self._corpus.content_bytes(document)[begin:end])
            if b"\r" not in text:
                return text.removesuffix(b"\n")
        return self.lines(document, first, last)

    def _found(self, document: int, content: memoryview) -> NDArray[np.uint32]:
        found = self._ends[document] = line_ends(content).astype(np.uint32)
        self._cached_bytes += found.nbytes
        while len(self._ends) > _CACHED_DOCUMENTS or self._cached_bytes > _CACHED_BYTES:
            _, oldest = self._ends.popitem(last=False)
            self._cached_bytes -= oldest.nbytes
        return found


def line_ends(data: bytes | memoryview) -> NDArray[np.intp]:
    """Return the offsets of the bytes that end lines: of LF, or of CR where there is no LF."""
    values = np.frombuffer(data, np.uint8)
    ends = _places(values, _LF)
    return ends if len(ends) else _places(values, _CR)


def _places(values: NDArray[np.uint8], value: int) -> NDArray[np.intp]:
    """Return where a value is, of many piece by piece: to compare them takes a byte for each."""
    if len(values) <= _PIECE_BYTES:
        return np.flatnonzero(values == value)
    pieces = range(0, len(values), _PIECE_BYTES)
    counts = [int(np.count_nonzero(values[at : at + _PIECE_BYTES] == value)) for at in pieces]
    places = np.empty(sum(counts), np.intp)
    first = 0
    for at, count in zip(pieces, counts, strict=True):
        places[first : first + count] = np.flatnonzero(values[at : at + _PIECE_BYTES] == value)
        places[first : first + count] += at
        first += count
    return places
