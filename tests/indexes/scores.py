"""The scores of a corpus in one part, as its own counts make them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rlm_rag.indexes.columns import Scores
from rlm_rag.indexes.contest import Wanted
from rlm_rag.indexes.index import SearchIndex
from rlm_rag.indexes.parts import Counts, Rarity
from rlm_rag.indexes.ranking import PLAIN, Weights
from rlm_rag.indexes.scoring import Ranker, totals_of


def scores_of(index: SearchIndex, terms: Mapping[bytes, float], weights: Weights = PLAIN) -> Scores:
    """Return the score of every window for weighted terms."""
    totals = totals_of(index.postings)
    ranker = Ranker(index.postings, weights, totals)
    held = ranker.holding(terms)
    windows = {term: count for term, (count, _) in held.items()}
    documents = {term: count for term, (_, count) in held.items()}
    counts = Counts(windows, documents, {}, {}, {})
    scores = np.zeros(index.postings.window_count)
    none, alike = np.zeros(index.postings.document_count), np.ones_like
    every = Wanted(index.postings.window_count, none, none.astype(int), (), 0.0, alike, None)
    windows, found = ranker.scores(terms, Rarity.of(totals, counts), every)
    scores[windows] = found
    return scores
