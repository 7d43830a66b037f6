"""What the length of windows and documents makes of how often they hold a term."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.columns import Places, Scores
from rlm_rag.indexes.parts import Totals
from rlm_rag.indexes.ranking import Weights

if TYPE_CHECKING:
    from rlm_rag.indexes.live import LivePostings


class Norms:
    """How well windows, and documents, hold what they hold so often, by how long they are.

    All by number; `document_of` gives the document of each window, and so does `numbers_of`, in
    half the memory.
    """

    def __init__(self, postings: LivePostings, weights: Weights, totals: Totals) -> None:
        self._weights = weights
        self.numbers_of = np.frombuffer(postings.window_documents, np.uint32)
        # By numbers of another size, numpy would convert them whenever they are used.
        self.document_of: Places = np.asarray(postings.window_documents, np.intp)
        self._of_window = self._norms(postings.window_lengths, totals.window_terms, totals.windows)
        self._of_document = self._norms(
            postings.document_lengths, totals.document_terms, totals.documents
        )

    @property
    def window_count(self) -> int:
        """How many windows there are."""
        return len(self._of_window)

    @property
    def document_count(self) -> int:
        """How many documents there are."""
        return len(self._of_document)

    @property
    def limit(self) -> float:
        """What no score of one term reaches."""
        return self._weights.k1 + 1

    def of_windows(self, windows: NDArray[np.integer], counts: Scores) -> Scores:
        """Return the scores of windows that hold a term so often."""
        return counts * (self._weights.k1 + 1) / (counts + self._of_window.take(windows))

    def of_documents(self, documents: NDArray[np.integer], counts: Scores) -> Scores:
        """Return the scores of documents that hold a term so often."""
        return counts * (self._weights.k1 + 1) / (counts + self._of_document.take(documents))

    def _norms(self, lengths: object, total: int, count: int) -> Scores:
        mean = (total / count if count else 0.0) or 1.0
        k1, b = self._weights.k1, self._weights.b
        return k1 * (1 - b + b * np.asarray(lengths, np.float64) / mean)
