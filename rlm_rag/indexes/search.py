"""Answering search requests: ranked windows with their snippets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from math import log
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.kinds import Kind, kind_of
from rlm_rag.indexes.names import FileNames
from rlm_rag.indexes.query import Query, parse_query
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.requests import Hit
from rlm_rag.indexes.scoring import Numbers, Ranker, Scores
from rlm_rag.indexes.snippets import Snippets
from rlm_rag.indexes.windows import window_lines
from rlm_rag.packed import PackedCorpus

if TYPE_CHECKING:
    from rlm_rag.indexes.index import SearchIndex

_SCORE_DIGITS = 4
# Candidates looked at, so that k remain when neighbours are left out.
_CANDIDATES_PER_HIT = 4
_MOST_COMPARED = 1000
# The power of the share of the query that lifts a factor: little, until nearly all is there.
_LIFT = 4
# Less than all, so that of equals the one that is no test comes first.
_MOST_LIFTED = 0.9
_KINDS = (None, *Kind)


class Searcher:
    """Searches one indexed corpus."""

    def __init__(self, corpus: PackedCorpus, index: SearchIndex, *, weights: Weights) -> None:
        self._corpus = corpus
        self._index = index
        self._weights = weights
        self._ranker = Ranker(index.postings, weights)
        # The lines of windows that the search under way has looked at.
        self._read: dict[int, tuple[str, ...]] = {}

    @property
    def index(self) -> SearchIndex:
        """The index that is searched."""
        return self._index

    def search(
        self, query: str, *, k: int, allowed: Callable[[str], bool] | None = None
    ) -> tuple[Hit, ...]:
        """Return the `k` best windows, best first; ties by path, then line.

        `allowed` says which paths may be in it. A window that overlaps or adjoins a better
        one of its file, or has the same lines as one, is left out while others are to be had.
        """
        parsed = parse_query(query, weights=self._weights)
        scores = self._scores(parsed)
        if allowed is not None:
            scores = self._only(scores, allowed)
        chosen = self._choose(scores, k)
        weights = {term: weight * self._ranker.idf(term) for term, weight in parsed.terms.items()}
        snippets = Snippets(weights)
        hits = tuple(self._hit(window, float(scores[window]), snippets) for window in chosen)
        self._read.clear()
        return hits

    def _scores(self, query: Query) -> Scores:
        scores = self._ranker.scores({**query.terms, **query.forms})
        weights, documents = self._weights, self._ranker.window_documents
        for name in query.identifiers if weights.defined_identifier else ():
            windows = np.unique(np.asarray(self._index.defined.get(name, ()), np.uint32))
            if len(windows):
                bonus = weights.defined_identifier * self._ranker.idf(name)
                scores[windows] += bonus / (1 + log(len(windows)))
        held = np.flatnonzero(scores)
        scores[held] += self._gains(query)[documents[held]]
        discounts = 1 - self._factors(query)[self._kinds]
        if discounts.any():
            # A window that holds all that is asked for is what was meant, whatever its file.
            missing = 1 - _MOST_LIFTED * self._ranker.shares(query.terms)[held] ** _LIFT
            scores[held] *= 1 - discounts[documents[held]] * missing
        return scores

    def _gains(self, query: Query) -> Scores:
        """Return what the windows of each document gain by its name."""
        gains = np.zeros(len(self._index.paths))
        if self._weights.file_stem:
            for term, weight in (*query.terms.items(), *query.forms.items()):
                sharing = self._names.sharing(term)
                if sharing is not None:
                    gains[sharing.documents] += self._weights.file_stem * weight * sharing.gains
        if self._weights.named_file:
            for number, gain in self._names.named(query.file_names).items():
                gains[number] += self._weights.named_file * gain
        return gains

    def _factors(self, query: Query) -> Scores:
        """Return the factor of each of `_KINDS`."""
        weights = self._weights
        prose = weights.report_prose if query.is_report else 1.0
        of_kind = {
            Kind.TEST: 1.0 if query.about_tests else weights.test_path,
            Kind.RECORD: 1.0 if query.about_records else min(prose, weights.record_path),
            Kind.PROSE: prose,
        }
        return np.array([1.0 if kind is None else of_kind[kind] for kind in _KINDS])

    @cached_property
    def _kinds(self) -> Numbers:
        return np.array([_KINDS.index(kind_of(path)) for path in self._index.paths], np.uint32)

    @cached_property
    def _names(self) -> FileNames:
        return FileNames(self._index.paths)

    @cached_property
    def _path_order(self) -> Numbers:
        """The place of each document in the order of paths."""
        paths = self._index.paths
        order = np.empty(len(paths), np.uint32)
        order[sorted(range(len(paths)), key=paths.__getitem__)] = np.arange(len(paths))
        return order

    def _only(self, scores: Scores, allowed: Callable[[str], bool]) -> Scores:
        documents = self._ranker.window_documents
        kept = np.zeros(len(self._index.paths), bool)
        for number in np.unique(documents[scores > 0]).tolist():
            kept[number] = allowed(self._index.paths[number])
        return np.where(kept[documents], scores, 0.0)

    def _choose(self, scores: Scores, k: int) -> list[int]:
        held = np.flatnonzero(scores)
        wanted = _CANDIDATES_PER_HIT * k
        ranked = self._ordered(held, scores, wanted)
        chosen = self._apart(ranked, k)
        if len(chosen) < k and len(ranked) < len(held):
            ranked = self._ordered(held, scores, len(held))
            chosen = self._apart(ranked, k)
        if len(chosen) < k:
            taken = set(chosen)
            chosen += [window for window in ranked if window not in taken][: k - len(chosen)]
            place_of = {window: place for place, window in enumerate(ranked)}
            chosen.sort(key=place_of.__getitem__)
        return chosen

    def _ordered(self, held: NDArray[np.intp], scores: Scores, most: int) -> Sequence[int]:
        """Return the best windows, best first; ties by path, then line."""
        rounded = np.round(scores[held], _SCORE_DIGITS)
        if most < len(held):
            least = np.partition(rounded, len(held) - most)[len(held) - most]
            held, rounded = held[rounded >= least], rounded[rounded >= least]
        order = self._path_order[self._ranker.window_documents[held]]
        best: list[int] = held[np.lexsort((held, order, -rounded))][:most].tolist()
        return best

    def _apart(self, ranked: Iterable[int], k: int) -> list[int]:
        """Take the best windows: no two neighbours of a file, no two of the same lines."""
        documents = self._index.postings.window_documents
        chosen: list[int] = []
        taken: set[int] = set()
        shown: set[tuple[str, ...]] = set()
        for window in ranked:
            beside = (near for near in (window - 1, window + 1) if near in taken)
            if any(documents[near] == documents[window] for near in beside):
                continue
            # Of a great many copies some are not recognised: each has to be read.
            if len(self._read) < _MOST_COMPARED:
                lines = self._lines(window)
                if lines in shown:
                    continue
                shown.add(lines)
            chosen.append(window)
            taken.add(window)
            if len(chosen) == k:
                break
        return chosen

    def _hit(self, window: int, score: float, snippets: Snippets) -> Hit:
        document, _ = self._index.postings.place(window)
        first, last = self._span(window)
        shown = snippets.of(self._lines(window), first)
        return Hit(self._index.paths[document], first, last, round(score, _SCORE_DIGITS), shown)

    def _span(self, window: int) -> tuple[int, int]:
        document, number = self._index.postings.place(window)
        return window_lines(number, self._index.line_counts[document])

    def _lines(self, window: int) -> tuple[str, ...]:
        known = self._read.get(window)
        if known is None:
            document, _ = self._index.postings.place(window)
            first, last = self._span(window)
            data = bytes(self._corpus.content_bytes(document))
            # What comes after the window is not split.
            terminator = b"\n" if b"\n" in data else b"\r"
            lines = data.split(terminator, last)[first - 1 : last]
            known = self._read[window] = tuple(
                line.removesuffix(b"\r").decode("utf-8", "surrogatepass") for line in lines
            )
        return known
