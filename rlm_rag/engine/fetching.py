"""Texts that lie elsewhere, fetched when they are read, and ahead of who reads on in order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlm_rag.corpus import Corpus

if TYPE_CHECKING:
    from rlm_rag.engine.view import View

FETCH = "fetch"
"""By what `context` asks for a text; no block knows of it."""

# A block that reads on in order, which most do, gets so many documents ahead, or so much text:
# a way to a shard and back takes longer than to bring them.
_MOST_AHEAD = 256
_LEAST_AHEAD = 4
_MOST_AHEAD_BYTES = 1 << 20
# Documents that are held, empty, or not in view are passed over by who reads on in order.
_NEAR = 16


class ReadingOn:
    """Tells what is worth fetching beside a text: the more, the longer it is read on in order.

    `members` are the numbers of the documents that may be read, in their order, None for all.
    """

    def __init__(self, members: Sequence[int] | None = None) -> None:
        self._members = members
        # Who begins with the first document may mean to read on.
        self._last = -_NEAR
        self._ahead = 0

    def after(self, number: int, corpus: Corpus) -> list[int]:
        """Return the documents to be fetched ahead with one of the corpus that is read."""
        goes_on = self._last < number <= self._last + _NEAR
        self._ahead = min(max(2 * self._ahead, _LEAST_AHEAD), _MOST_AHEAD) if goes_on else 0
        following: list[int] = []
        left = _MOST_AHEAD_BYTES
        members = range(len(corpus)) if self._members is None else self._members
        start = bisect_left(members, number + 1)
        for one in members[start : bisect_left(members, number + 1 + self._ahead)]:
            left -= corpus.size_of(one)
            if left < 0:
                break
            following.append(one)
        self._last = following[-1] if following else number
        return following


class Fetching:
    """Fetches texts for one worker."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._reading = ReadingOn(view.numbers)

    async def fetch(self, number: int, itself: bool) -> str | None:
        """Have a text in the worker's map; return it `itself` where that has not helped.

        Raises:
            IndexError: there is no such document.
            RetrievalError, NotHeldError: it cannot be fetched from where it lies.
        """
        corpus = self._view.corpus
        if not 0 <= number < len(corpus):
            raise IndexError(number)
        await self._view.hold([number], ahead=self._reading.after(number, corpus))
        return corpus[number].content if itself else None
