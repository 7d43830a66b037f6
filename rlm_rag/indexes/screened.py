"""Documents that may hold a match, many of them looked through as one text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rlm_rag.indexes.blocks import as_one_text
from rlm_rag.indexes.runs import run_starts
from rlm_rag.indexes.screen import Places, Screen
from rlm_rag.indexes.steps import Run
from rlm_rag.packed import PackedCorpus

_NOWHERE = np.zeros(0, np.intp)


class Screened(NamedTuple):
    """A document that may hold a match, in whose lines matches may be at these bytes.

    `places` is None where that is not known. Where it `is_sure`, a run begins at each of them, and
    nothing else may be one.
    """

    number: int
    data: bytes
    places: Places | None
    is_sure: bool = False

    def characters(self) -> list[int]:
        """Return which characters of the text the places are; none where they are not known."""
        places = _NOWHERE if self.places is None else self.places
        if not self.data.isascii():
            begins = (np.frombuffer(self.data, np.uint8) & 0xC0) != 0x80
            places = np.cumsum(begins)[places] - 1
        found: list[int] = places.tolist()
        return found


def screened(
    corpus: PackedCorpus, runs: Sequence[Run], documents: Sequence[int]
) -> Iterator[Screened]:
    """Yield documents that may hold a match of what has one of the runs."""
    block, starts = as_one_text(corpus, documents)
    screen = Screen(runs)
    told = screen.told(block)
    if told is None:
        for number in documents:
            yield Screened(number, bytes(corpus.content_bytes(number)), None)
        return
    places = told.places
    owners = np.searchsorted(starts, places, side="right") - 1
    doubted = {*(np.searchsorted(starts, told.doubtful, side="right") - 1).tolist()}
    firsts = run_starts(owners)
    lasts = np.append(firsts, len(owners))[1:]
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        owner = int(owners[first])
        data = bytes(corpus.content_bytes(documents[owner]))
        own = places[first:last] - starts[owner]
        # What ends in a line feed that joins the next document to this one is not of it.
        own = own[own < len(data)]
        if b"\r" in data:
            yield Screened(documents[owner], data, None)
        elif len(own):
            # A run may begin in one document, and end in the next.
            is_within = int(own[-1]) + screen.longest <= len(data)
            yield Screened(documents[owner], data, own, is_within and owner not in doubted)
