"""The names of a corpus's files: which ones a question names, and which words they share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.terms import raw_words, word_terms

# A name that so many files have tells them apart no more.
_MOST_NAMESAKES = 20


@dataclass(frozen=True, slots=True)
class Named:
    """Documents, and what each gains, by number."""

    documents: NDArray[np.uint32]
    gains: NDArray[np.float64]


class FileNames:
    """Looks documents up by their paths, numbered in the order given."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._of_name: dict[str, list[int]] = defaultdict(list)
        holding: dict[bytes, list[tuple[int, float]]] = defaultdict(list)
        stems: dict[str, tuple[bytes, ...]] = {}
        for number, path in enumerate(paths):
            name = path.partition("#")[0].rpartition("/")[2]
            self._of_name[name].append(number)
            stem = name.rpartition(".")[0] or name
            if stem not in stems:
                stems[stem] = tuple(t for word in raw_words(stem) for t in word_terms(word))
            terms = stems[stem]
            for term in dict.fromkeys(terms):
                holding[term].append((number, 1 / sqrt(len(terms))))
        self._holding = {
            term: Named(
                np.array([number for number, _ in found], np.uint32),
                np.array([gain for _, gain in found]) * _idf(len(paths), len(found)),
            )
            for term, found in holding.items()
        }

    def sharing(self, term: bytes) -> Named | None:
        """Return the documents whose file name, without its ending, holds a term.

        A document gains ln(1 + (N - n + 0.5) / (n + 0.5)), over the root of how many terms the
        name has: a name that the question covers whole says more.
        """
        return self._holding.get(term)

    def named(self, names: Iterable[str]) -> Mapping[int, float]:
        """Return what documents gain by being named, as a path or as the end of one.

        Of a path from another machine, the longest end that is here counts: the file in
        `/usr/lib/python3/site-packages/net/retry.py` is `net/retry.py`. One of several
        namesakes gains 1 / (1 + ln n).
        """
        gains: dict[int, float] = {}
        for name in names:
            found = self._ending(name)
            if len(found) <= _MOST_NAMESAKES:
                for number in found:
                    gains[number] = max(gains.get(number, 0.0), 1 / (1 + log(len(found))))
        return gains

    def _ending(self, name: str) -> list[int]:
        parts = name.split("/")
        candidates = self._of_name.get(parts[-1], [])
        for first in range(len(parts) - 1):
            ending = "/".join(parts[first:])
            found = [
                number
                for number in candidates
                if f"/{self._paths[number].partition('#')[0]}".endswith(f"/{ending}")
            ]
            if found:
                return found
        return candidates


def _idf(total: int, holding: int) -> float:
    return log(1 + (total - holding + 0.5) / (holding + 0.5))
