"""Answering search requests: ranked windows with their snippets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from math import log
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.candidates import SCORE_DIGITS, Found, Groups
from rlm_rag.indexes.kinds import Kind, kind_of
from rlm_rag.indexes.line_texts import LineTexts
from rlm_rag.indexes.names import FileNames
from rlm_rag.indexes.query import STOP_WORDS, Query, parse_query
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.requests import Hit
from rlm_rag.indexes.scoring import Numbers, Ranker, Scores
from rlm_rag.indexes.snippets import Snippets
from rlm_rag.indexes.windows import window_lines
from rlm_rag.packed import PackedCorpus
from rlm_rag.traits import HEAD_BYTES, trait_of

if TYPE_CHECKING:
    from rlm_rag.indexes.index import SearchIndex

# Candidates looked at, so that k remain when neighbours are left out.
_CANDIDATES_PER_HIT = 4
_MOST_COMPARED = 1000
# Windows that are read to see how near the query's words are: 30 gain little more.
_MOST_READ = 20
# Of more no line holds a good part.
_MOST_TERMS_NEAR = 40
_KINDS = (None, *Kind)


class Searcher:
    """Searches one indexed corpus."""

    def __init__(self, corpus: PackedCorpus, index: SearchIndex, *, weights: Weights) -> None:
        self._corpus = corpus
        self._index = index
        self._weights = weights
        self._ranker = Ranker(index.postings, weights)
        self._texts = LineTexts(corpus)
        # Windows that the search under way has looked at.
        self._read: dict[int, bytes] = {}

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
        # In a line, common words count only where there are no others.
        telling = parsed.terms.keys() - STOP_WORDS or parsed.terms.keys()
        idf = self._ranker.idf
        snippets = Snippets({term: parsed.terms[term] * idf(term) for term in sorted(telling)})
        chosen = self._choose(self._found(parsed, allowed), k, snippets)
        hits = tuple(self._hit(window, score, snippets) for window, score in chosen)
        self._read.clear()
        return hits

    def _found(self, query: Query, allowed: Callable[[str], bool] | None) -> Found:
        scores = self._ranker.scores({**query.terms, **query.forms})
        weights, documents = self._weights, self._ranker.window_documents
        factor = weights.report_names if query.is_report else 1.0
        for name in query.identifiers if weights.defined_identifier else ():
            windows = np.unique(np.asarray(self._index.defined.get(name, ()), np.uint32))
            if len(windows):
                bonus = weights.defined_identifier * factor * self._ranker.idf(name)
                scores[windows] += bonus / (1 + log(len(windows)))
        gains = self._gains(query)
        if gains.any():
            scores += factor * gains.take(documents) * (scores > 0)
        if allowed is not None:
            scores = self._only(scores, allowed)
        if query.is_report and weights.report_second:
            scores += weights.report_second * self._groups.second_best(scores) * (scores > 0)
        discounts = (1 - self._factors(query)).take(self._kinds)
        return Found(scores, discounts, lambda windows: self._ranker.shares(query.terms, windows))

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
            Kind.ASIDE: weights.aside,
        }
        return np.array([1.0 if kind is None else of_kind[kind] for kind in _KINDS])

    @cached_property
    def _kinds(self) -> NDArray[np.intp]:
        """The place among `_KINDS` of each window's document."""
        kinds = [_KINDS.index(self._kind(*one)) for one in enumerate(self._index.paths)]
        return np.array(kinds, np.intp).take(self._ranker.window_documents)

    def _kind(self, document: int, path: str) -> Kind | None:
        content = self._corpus.content_bytes(document)
        lines = self._corpus.line_count(document)
        head = bytes(content[:HEAD_BYTES])
        aside = trait_of(path, head, size_bytes=len(content), lines=lines)
        return kind_of(path) if aside is None else Kind.ASIDE

    @cached_property
    def _groups(self) -> Groups:
        return Groups(self._ranker.window_documents)

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

    def _choose(self, found: Found, k: int, snippets: Snippets) -> list[tuple[int, float]]:
        wanted = max(_CANDIDATES_PER_HIT * k, _MOST_READ)
        windows, scores = found.best(wanted)
        self._lift_near(windows, scores, snippets)
        ranked, score_of = self._ordered(windows, scores, wanted)
        chosen = self._apart(ranked, k)
        if len(chosen) < k and len(ranked) < found.count:
            windows, scores = found.all()
            self._lift_near(windows, scores, snippets)
            ranked, score_of = self._ordered(windows, scores, len(windows))
            chosen = self._apart(ranked, k)
        if len(chosen) < k:
            taken = set(chosen)
            chosen += [window for window in ranked if window not in taken][: k - len(chosen)]
            place_of = {window: place for place, window in enumerate(ranked)}
            chosen.sort(key=place_of.__getitem__)
        return [(window, score_of[window]) for window in chosen]

    def _lift_near(self, windows: NDArray[np.intp], scores: Scores, snippets: Snippets) -> None:
        """Raise the scores of those of the best windows that hold the query's words in one line."""
        if not self._weights.near or not 1 < snippets.term_count <= _MOST_TERMS_NEAR:
            return
        best, _ = self._ordered(windows, scores, _MOST_READ)
        near = snippets.nearness([self._text(window) for window in best])
        for window, nearness in zip(best, near, strict=True):
            scores[np.searchsorted(windows, window)] *= 1 + self._weights.near * nearness**2

    def _ordered(
        self, windows: NDArray[np.intp], scores: Scores, most: int
    ) -> tuple[list[int], dict[int, float]]:
        """Return the best windows, best first, and their scores; ties by path, then line."""
        rounded = np.round(scores, SCORE_DIGITS)
        paths = self._path_order[self._ranker.window_documents[windows]]
        order = np.lexsort((windows, paths, -rounded))[:most]
        best: list[int] = windows[order].tolist()
        return best, dict(zip(best, rounded[order].tolist(), strict=True))

    def _apart(self, ranked: Iterable[int], k: int) -> list[int]:
        """Take the best windows: no two neighbours of a file, no two of the same lines."""
        postings = self._index.postings
        documents, lengths = postings.window_documents, postings.window_lengths
        chosen: list[int] = []
        taken: set[int] = set()
        # Only windows of as many words are worth a comparison.
        shown: dict[int, list[int]] = {}
        for window in ranked:
            beside = (near for near in (window - 1, window + 1) if near in taken)
            if any(documents[near] == documents[window] for near in beside):
                continue
            alike = shown.setdefault(lengths[window], [])
            if alike and self._has_copy(window, alike):
                continue
            alike.append(window)
            chosen.append(window)
            taken.add(window)
            if len(chosen) == k:
                break
        return chosen

    def _has_copy(self, window: int, others: Sequence[int]) -> bool:
        # Of a great many copies some are not recognised: each has to be read.
        if len(self._read) >= _MOST_COMPARED:
            return False
        text = self._text(window)
        return any(text == self._text(other) for other in others)

    def _hit(self, window: int, score: float, snippets: Snippets) -> Hit:
        document, _ = self._index.postings.place(window)
        first, last = self._span(window)
        shown = snippets.of(self._text(window), first)
        return Hit(self._index.paths[document], first, last, score, shown)

    def _span(self, window: int) -> tuple[int, int]:
        document, number = self._index.postings.place(window)
        return window_lines(number, self._index.line_counts[document])

    def _text(self, window: int) -> bytes:
        """Return a window's lines, joined by LF however its document ends them."""
        known = self._read.get(window)
        if known is None:
            document, _ = self._index.postings.place(window)
            first, last = self._span(window)
            known = self._read[window] = self._texts.lines(document, first, last)
        return known
