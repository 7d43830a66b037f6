"""Documents that may hold a match, many of them looked through as one text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rlm_rag.indexes.runs import run_starts
from rlm_rag.indexes.screen import Places, Screen
from rlm_rag.indexes.steps import Run
from rlm_rag.packed import PackedCorpus


def screened(
    corpus: PackedCorpus, runs: Sequence[Run], documents: Sequence[int]
) -> Iterator[tuple[int, bytes, list[int] | None]]:
    """Yield documents that may hold a match of what has one of the runs, with their contents.

    With each come the characters in whose lines matches may be, or None where that is not known.
    """
    contents = [corpus.content_bytes(number) for number in documents]
    block = b"\n".join(contents)
    starts = np.cumsum([0, *(len(content) + 1 for content in contents)])
    places = Screen(runs).places(block)
    if places is None:
        for number, content in zip(documents, contents, strict=True):
            yield number, bytes(content), None
        return
    owners = np.searchsorted(starts, places, side="right") - 1
    firsts = run_starts(owners)
    lasts = np.append(firsts, len(owners))[1:]
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        owner = int(owners[first])
        data = bytes(contents[owner])
        own = places[first:last] - starts[owner]
        # What ends in a line feed that joins the next document to this one is not of it.
        own = own[own < len(data)]
        yield documents[owner], data, None if b"\r" in data else _characters(data, own)


def _characters(data: bytes, places: Places) -> list[int]:
    """Return which characters of a text in UTF-8 lie at places in its bytes."""
    if not data.isascii():
        begins = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80
        places = np.cumsum(begins)[places] - 1
    found: list[int] = places.tolist()
    return found
