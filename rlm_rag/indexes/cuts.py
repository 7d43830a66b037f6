"""A text without some parts of it, and the way back to the offsets of the whole."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from rlm_rag.indexes.body_rows import BODIES
from rlm_rag.indexes.places import Place, told


class Cut:
    """`text` is what is left of a whole text without `spans` of it, which are in order.

    In the place of each stands `joint`.
    """

    def __init__(self, whole: bytes, spans: Sequence[tuple[int, int]], joint: bytes = b"") -> None:
        bounds = [0, *(offset for span in spans for offset in span), len(whole)]
        kept = [whole[start:end] for start, end in pairwise(bounds)][::2]
        self.joint = joint
        self.text = joint.join(kept)
        # Where the text was cut, in what is left, and how much was left out before and up to it.
        self._at = list(accumulate(len(piece) + len(joint) for piece in kept[:-1]))
        self._out = [0, *accumulate(end - start - len(joint) for start, end in spans)]

    def offset(self, offset: int) -> int:
        """Return where in the whole text stands what stands at an offset of what is left."""
        return offset + self._out[bisect_right(self._at, offset)]

    def is_cut(self, start: int, end: int) -> bool:
        """Whether something was left out between two offsets of what is left."""
        return bisect_right(self._at, end) > bisect_right(self._at, start - 1)

    def restored(self, places: list[Place]) -> list[Place]:
        """Read the names of places in what is left, and return them placed in the whole text."""
        text, at, out = self.text, self._at, self._out
        last = len(at)
        for one in places:
            told(one, text)
            before = bisect_right(at, one.start)
            one.start += out[before]
            one.end += out[bisect_right(at, one.end, before)]
            if before < last and at[before] <= max(one.name_end, one.body):
                one.name_start = self.offset(one.name_start)
                # What is left out right behind a name is not of it.
                one.name_end = self.offset(one.name_end - 1) + 1
                one.body = self.offset(one.body) if one.body >= 0 else -1
                continue
            one.name_start += out[before]
            one.name_end += out[before]
            if one.body >= 0:
                one.body += out[before]
        return places


def without_bodies(text: bytes, language: str) -> Cut | None:
    """Return a text without the bodies that define nothing; None where they are few, or unsure."""
    known = BODIES.get(language)
    spans = known.bodies(text) if known else None
    if not known or not spans:
        return None
    if sum(end - start for start, end in spans) < known.least_share * len(text):
        return None
    return Cut(text, spans, known.joint)
