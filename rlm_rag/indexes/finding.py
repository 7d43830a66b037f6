"""Finding the best windows of one part of a corpus, by scores that hold for the whole of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.candidates import SCORE_DIGITS, Found, Groups
from rlm_rag.indexes.columns import Numbers, Places, Scores, raised
from rlm_rag.indexes.kinds import Kind, kind_of
from rlm_rag.indexes.line_texts import LineTexts
from rlm_rag.indexes.names import FileNames
from rlm_rag.indexes.parts import Candidate, Counts, Question, Stretch, Totals
from rlm_rag.indexes.query import Query
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.scoring import Ranker, totals_of
from rlm_rag.indexes.term_lines import term_lines
from rlm_rag.indexes.windows import stretch_first, window_lines
from rlm_rag.packed import PackedCorpus
from rlm_rag.traits import HEAD_BYTES, trait_of

if TYPE_CHECKING:
    from rlm_rag.indexes.index import SearchIndex

_KINDS = (None, *Kind)


class Finder:
    """Counts, and finds windows, in a corpus or a part of one."""

    def __init__(self, corpus: PackedCorpus, index: SearchIndex, *, weights: Weights) -> None:
        self._corpus = corpus
        self._index = index
        self._weights = weights
        self._texts = LineTexts(corpus)
        self._last_ranker: Ranker | None = None

    @property
    def index(self) -> SearchIndex:
        """The index that is searched."""
        return self._index

    def totals(self) -> Totals:
        """Return what this part adds to the totals of its corpus."""
        return totals_of(self._index.postings)

    def counts(self, query: Query, totals: Totals) -> Counts:
        """Return how many here hold what a query asks of a corpus of these totals."""
        holding = self._ranker(totals).holding
        terms = (*query.terms, *query.forms)
        held = {term: holding(term) for term in (*terms, *query.identifiers)}
        names = self._names
        shared = ((term, names.sharing(term)) for term in terms if self._weights.file_stem)
        files = query.file_names if self._weights.named_file else ()
        defined = query.identifiers if self._weights.defined_identifier else ()
        return Counts(
            {term: windows for term, (windows, _) in held.items()},
            {term: documents for term, (_, documents) in held.items()},
            {term: len(sharing.documents) for term, sharing in shared if sharing is not None},
            {name: len(self._defining(name)) for name in defined},
            {name: names.endings(name) for name in files},
        )

    def best(self, question: Question, count: int, part: int) -> list[Candidate]:
        """Return the best windows, `count` or all, best first; ties by path, then line.

        They are told to be of the part of that number.
        """
        found = self._found(question)
        windows, scores = found.best(count)
        ranks = np.round(scores, SCORE_DIGITS)
        documents = self._ranker(question.totals).window_documents[windows]
        best = np.lexsort((windows, self._path_order[documents], -ranks))[:count]
        return self._candidates(part, windows[best], scores[best], ranks[best])

    def stretches(self, windows: Sequence[int], terms: Sequence[bytes]) -> list[Stretch]:
        """Return windows with the lines above them, and which of the terms they hold."""
        found = []
        postings = self._index.postings
        lines = term_lines(postings, windows, terms)
        for window, held in zip(windows, lines, strict=True):
            document, number = postings.place(window)
            first, last = window_lines(number, self._index.line_counts[document])
            first = stretch_first(first)
            found.append(Stretch(self._texts.lines(document, first, last), first, held))
        return found

    def times(self, window: int, terms: Sequence[bytes]) -> list[int]:
        """Return how often each of the terms is in a window."""
        times = []
        for term in terms:
            found = self._index.postings.postings(term)
            at = int(found.windows.searchsorted(window))
            held = at < len(found.windows) and found.windows[at] == window
            times.append(int(found.counts[at]) if held else 0)
        return times

    def _candidates(
        self, part: int, windows: Places, scores: Scores, ranks: Scores
    ) -> list[Candidate]:
        postings, paths = self._index.postings, self._index.paths
        found = []
        rows = zip(windows.tolist(), scores.tolist(), ranks.tolist(), strict=True)
        for window, score, rank in rows:
            document, number = postings.place(window)
            first, last = window_lines(number, self._index.line_counts[document])
            length = postings.window_lengths[window]
            found.append(Candidate(part, window, paths[document], first, last, length, score, rank))
        return found

    def _found(self, question: Question) -> Found:
        query, rarity, weights = question.query, question.rarity, self._weights
        ranker = self._ranker(question.totals)
        windows, scores = ranker.scores({**query.terms, **query.forms}, rarity)
        factor = weights.report_names if query.is_report else 1.0
        for name, share in rarity.defining.items():
            bonus = weights.defined_identifier * factor * rarity.windows[name]
            windows, scores = raised(windows, scores, self._defining(name), bonus * share)
        if question.allowed is not None:
            are_allowed = self._are_allowed(ranker.window_documents[windows], question.allowed)
            windows, scores = windows[are_allowed], scores[are_allowed]
        documents = ranker.window_documents.take(windows)
        gains = self._gains(question)
        if gains.any():
            scores += factor * gains.take(documents)
        if query.is_report and weights.report_second:
            scores += weights.report_second * Groups(documents).second_best(scores)
        shares = partial(ranker.shares, query.terms, rarity)
        kinds = self._kinds.take(documents)
        return Found(windows, scores, kinds, 1 - self._factors(query), shares)

    def _ranker(self, totals: Totals) -> Ranker:
        if self._last_ranker is None or self._last_ranker.totals != totals:
            self._last_ranker = Ranker(self._index.postings, self._weights, totals)
        return self._last_ranker

    def _defining(self, name: bytes) -> Places:
        return np.asarray(self._index.defined.get(name, ()), np.intp)

    def _gains(self, question: Question) -> Scores:
        """Return what the windows of each document gain by its name."""
        query, rarity, weights = question.query, question.rarity, self._weights
        gains = np.zeros(len(self._index.paths))
        if weights.file_stem:
            for term, weight in (*query.terms.items(), *query.forms.items()):
                sharing = self._names.sharing(term)
                if sharing is not None:
                    worth = weights.file_stem * weight * rarity.stems.get(term, 0.0)
                    gains[sharing.documents] += worth * sharing.gains
        for number, gain in self._names.named(rarity.named).items():
            gains[number] += weights.named_file * gain
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
        """The place among `_KINDS` of each document."""
        paths = enumerate(self._index.paths)
        return np.array([_KINDS.index(self._kind(*one)) for one in paths], np.intp)

    def _kind(self, document: int, path: str) -> Kind | None:
        content = self._corpus.content_bytes(document)
        lines = self._corpus.line_count(document)
        head = bytes(content[:HEAD_BYTES])
        aside = trait_of(path, head, size_bytes=len(content), lines=lines)
        return kind_of(path) if aside is None else Kind.ASIDE

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

    def _are_allowed(self, documents: Places, allowed: Callable[[str], bool]) -> NDArray[np.bool_]:
        kept = np.zeros(len(self._index.paths), np.bool_)
        for number in np.unique(documents).tolist():
            kept[number] = allowed(self._index.paths[number])
        return kept[documents]
