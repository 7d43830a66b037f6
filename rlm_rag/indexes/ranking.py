"""BM25 over windows, with a share of the whole file's.

The extras and their sizes were chosen on docstring, commit and issue queries of several
projects; with `PLAIN` they are off, and the score is textbook BM25.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # A process that only builds has no use for numpy.
    from rlm_rag.indexes.live import LivePostings

_CACHED_TERMS = 512


@dataclass(frozen=True, slots=True)
class Weights:
    """What ranking adds to BM25; `path`, `definition` and `scope` are added occurrences."""

    k1: float = 2.0
    b: float = 0.75
    path: int = 2
    definition: int = 4
    scope: int = 1
    whole_file: float = 0.4
    stop_word: float = 0.3
    test_path: float = 0.8
    defined_identifier: float = 2.0
    named_file: float = 6.0


PLAIN = Weights(
    path=0,
    definition=0,
    scope=0,
    whole_file=0.0,
    stop_word=1.0,
    test_path=1.0,
    defined_identifier=0.0,
    named_file=0.0,
)


@dataclass(frozen=True, slots=True)
class _Impacts:
    windows: Sequence[int]
    window_scores: Sequence[float]
    document_scores: Mapping[int, float]


class Ranker:
    """Scores the windows of an index; keeps what it worked out for recent terms."""

    def __init__(self, postings: LivePostings, weights: Weights) -> None:
        self._postings = postings
        self._weights = weights
        self._cache: OrderedDict[bytes, _Impacts] = OrderedDict()
        self._mean_window = _mean(postings.window_lengths)
        self._mean_document = _mean(postings.document_lengths)

    def idf(self, term: bytes) -> float:
        """Return a term's inverse window frequency, ln(1 + (N - n + 0.5) / (n + 0.5))."""
        return _idf(self._postings.window_count, len(self._impacts(term).windows))

    def scores(self, terms: Mapping[bytes, float]) -> dict[int, float]:
        """Score every window that holds one of the weighted terms."""
        scores: dict[int, float] = {}
        documents: dict[int, float] = {}
        for term, weight in terms.items():
            impacts = self._impacts(term)
            for window, impact in zip(impacts.windows, impacts.window_scores, strict=True):
                scores[window] = scores.get(window, 0.0) + weight * impact
            for document, impact in impacts.document_scores.items():
                documents[document] = documents.get(document, 0.0) + weight * impact
        share = self._weights.whole_file
        if share:
            document_of = self._postings.window_documents
            for window in scores:
                scores[window] += share * documents[document_of[window]]
        return scores

    def _impacts(self, term: bytes) -> _Impacts:
        found = self._cache.get(term)
        if found is None:
            found = self._cache[term] = self._score(term)
            if len(self._cache) > _CACHED_TERMS:
                self._cache.popitem(last=False)
        else:
            self._cache.move_to_end(term)
        return found

    def _score(self, term: bytes) -> _Impacts:
        postings = self._postings
        found = postings.postings(term)
        lengths = postings.window_lengths
        idf = _idf(postings.window_count, len(found.windows))
        scores = [
            idf * self._saturation(count, lengths[window], self._mean_window)
            for window, count in zip(found.windows, found.counts, strict=True)
        ]
        if not self._weights.whole_file:
            return _Impacts(found.windows, scores, {})
        counts: dict[int, int] = {}
        for window, count in zip(found.windows, found.counts, strict=True):
            document = postings.window_documents[window]
            counts[document] = counts.get(document, 0) + count
        idf = _idf(postings.document_count, len(counts))
        documents = {
            document: idf
            * self._saturation(count, postings.document_lengths[document], self._mean_document)
            for document, count in counts.items()
        }
        return _Impacts(found.windows, scores, documents)

    def _saturation(self, count: int, length: int, mean: float) -> float:
        k1, b = self._weights.k1, self._weights.b
        return count * (k1 + 1) / (count + k1 * (1 - b + b * length / mean))


def _mean(lengths: Sequence[int]) -> float:
    return (sum(lengths) / len(lengths) if lengths else 0.0) or 1.0


def _idf(total: int, holding: int) -> float:
    return log(1 + (total - holding + 0.5) / (holding + 0.5))
