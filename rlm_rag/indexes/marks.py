"""A small number for each document, told when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.columns import Places

_UNKNOWN = 255


class Marks:
    """The marks of `count` documents, 0 to 254, which `told` gives by number, each once."""

    def __init__(self, count: int, told: Callable[[int], int]) -> None:
        self._known = np.full(count, _UNKNOWN, np.uint8)
        self._told = told

    def of(self, documents: Places) -> NDArray[np.uint8]:
        """Return the marks of some documents."""
        marks = self._known.take(documents)
        are_unknown = marks == _UNKNOWN
        if are_unknown.any():
            unknown = np.unique(documents[are_unknown])
            self._known[unknown] = [self._told(number) for number in unknown.tolist()]
            marks = self._known.take(documents)
        return marks
