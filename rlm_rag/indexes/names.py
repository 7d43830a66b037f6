"""The names of a corpus's files: which ones a question names, and which words they share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.parts import Ending
from rlm_rag.indexes.terms import raw_words, word_terms


@dataclass(frozen=True, slots=True)
class Named:
    """Documents, and what each gains, by number."""

    documents: NDArray[np.intp]
    gains: NDArray[np.float64]


class FileNames:
    """Looks documents up by their paths, numbered in the order given."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._of_name: dict[str, list[int]] = defaultdict(list)
        for number, path in enumerate(paths):
            self._of_name[path.partition("#")[0].rpartition("/")[2]].append(number)
        # By term, the names that hold it, and what each is worth.
        self._holding: dict[bytes, list[tuple[str, float]]] = defaultdict(list)
        for name in self._of_name:
            stem = name.rpartition(".")[0] or name
            terms = [term for word in raw_words(stem) for term in word_terms(word)]
            for term in set(terms):
                self._holding[term].append((name, 1 / sqrt(len(terms))))
        self._sharing: dict[bytes, Named] = {}

    def sharing(self, term: bytes) -> Named | None:
        """Return the documents whose file name, without its ending, holds a term, ascending.

        A document gains 1 over the root of how many terms the name has: a name that the
        question covers whole says more.
        """
        holding = self._holding.get(term)
        if holding is None:
            return None
        found = self._sharing.get(term)
        if found is None:
            gains = {number: gain for name, gain in holding for number in self._of_name[name]}
            numbers = sorted(gains)
            found = self._sharing[term] = Named(
                np.array(numbers, np.intp), np.array([gains[number] for number in numbers])
            )
        return found

    def endings(self, name: str) -> tuple[int, ...]:
        """Return how many documents end in a path, then without its first folder, and so on.

        It ends with the first that some document ends in.
        """
        counts: list[int] = []
        for dropped in range(name.count("/") + 1):
            counts.append(len(self._ending(name, dropped)))
            if counts[-1]:
                break
        return tuple(counts)

    def named(self, names: Mapping[str, Ending]) -> Mapping[int, float]:
        """Return what documents gain by being named, as a path or as the end of one.

        Of a path from another machine, the longest end that is here counts: the file in
        `/usr/lib/python3/site-packages/net/retry.py` is `net/retry.py`.
        """
        gains: dict[int, float] = {}
        for name, ending in names.items():
            for number in self._ending(name, ending.dropped):
                gains[number] = max(gains.get(number, 0.0), ending.gain)
        return gains

    def _ending(self, name: str, dropped: int) -> list[int]:
        parts = name.split("/")
        candidates = self._of_name.get(parts[-1], [])
        if dropped == len(parts) - 1:
            return candidates
        ending = "/".join(["", *parts[dropped:]])
        return [
            number
            for number in candidates
            if f"/{self._paths[number].partition('#')[0]}".endswith(ending)
        ]
