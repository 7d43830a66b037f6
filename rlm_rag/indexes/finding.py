"""Finding the best windows of one part of a corpus, by scores that hold for the whole of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.candidates import SCORE_DIGITS, Found, Groups
from rlm_rag.indexes.columns import Numbers, Places, Scores, raised
from rlm_rag.indexes.contest import Wanted
from rlm_rag.indexes.kinds import KINDS, Kind
from rlm_rag.indexes.line_texts import LineTexts
from rlm_rag.indexes.marks import Marks
from rlm_rag.indexes.names import FileNames
from rlm_rag.indexes.parts import Candidate, Counts, Question, Stretch, Totals
from rlm_rag.indexes.pruning import PrunedRanker
from rlm_rag.indexes.query import Query
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.scoring import Ranker, totals_of
from rlm_rag.indexes.term_lines import term_lines
from rlm_rag.indexes.windows import STRIDE_LINES, WINDOW_LINES, window_lines
from rlm_rag.packed import PackedCorpus

if TYPE_CHECKING:
    from rlm_rag.indexes.index import SearchIndex

# As many hold the lines from `stretch_first` on.
_WINDOWS_ABOVE = 2

LARGE_WINDOWS = 1 << 17
"""From so many windows on, most are passed over: with fewer, scoring all costs less."""


class Finder:
    """Counts, and finds windows, in a corpus or a part of one."""

    def __init__(self, corpus: PackedCorpus, index: SearchIndex, *, weights: Weights) -> None:
        self._index = index
        self._weights = weights
        self._texts = LineTexts(corpus)
        self._last_ranker: Ranker | PrunedRanker | None = None
        self._first_windows = np.frombuffer(index.postings.first_windows, np.uint32)
        self._line_counts = np.frombuffer(index.line_counts, np.uint64).astype(np.int64)

    @property
    def index(self) -> SearchIndex:
        """The index that is searched."""
        return self._index

    def totals(self) -> Totals:
        """Return what this part adds to the totals of its corpus."""
        return totals_of(self._index.postings)

    def counts(self, query: Query, totals: Totals) -> Counts:
        """Return how many here hold what a query asks of a corpus of these totals."""
        terms = (*query.terms, *query.forms)
        held = self._ranker(totals).holding(dict.fromkeys((*terms, *query.identifiers)))
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
        found = self._found(question, count)
        windows, scores = found.best(count)
        ranks = np.round(scores, SCORE_DIGITS)
        documents = self._ranker(question.totals).window_documents[windows]
        best = np.lexsort((windows, self._path_order[documents], -ranks))[:count]
        return self._candidates(part, windows[best], documents[best], scores[best], ranks[best])

    def stretches(self, windows: Sequence[int], terms: Sequence[bytes]) -> list[Stretch]:
        """Return windows with the lines above them, and which of the terms they hold."""
        postings = self._index.postings
        lines = term_lines(postings, windows, terms)
        found = []
        for window, held in zip(windows, lines, strict=True):
            document, number = postings.place(window)
            first = max(0, number - _WINDOWS_ABOVE) * STRIDE_LINES + 1
            found.append(Stretch(partial(self._text, window, document, number), first, held))
        return found

    def _text(self, window: int, document: int, number: int) -> bytes:
        """Return a window, which has that number in its document, with the lines above it."""
        postings = self._index.postings
        line_count = self._index.line_counts[document]
        above = min(number, _WINDOWS_ABOVE)
        first, _ = window_lines(number - above, line_count)
        _, last = window_lines(number, line_count)
        begin = postings.stretch_offsets[2 * (window - above)]
        # A window ends where the second stretch of the next one begins.
        end = None if last == line_count else postings.stretch_offsets[2 * window + 3]
        return self._texts.between(document, first, last, begin, end)

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
        self, part: int, windows: Places, documents: Places, scores: Scores, ranks: Scores
    ) -> list[Candidate]:
        postings, paths, line_counts = self._index.postings, self._index.paths, self._line_counts
        firsts = (windows - self._first_windows.take(documents)) * STRIDE_LINES + 1
        lasts = np.minimum(firsts + (WINDOW_LINES - 1), line_counts.take(documents))
        columns = (windows, documents, firsts, lasts, scores, ranks)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        lengths = postings.window_lengths
        return [
            Candidate(part, window, paths[document], first, last, lengths[window], score, rank)
            for window, document, first, last, score, rank in rows
        ]

    def _found(self, question: Question, count: int) -> Found:
        query, rarity, weights = question.query, question.rarity, self._weights
        ranker = self._ranker(question.totals)
        factor = weights.report_names if query.is_report else 1.0
        bonuses = [
            (
                self._defining(name),
                weights.defined_identifier * factor * rarity.windows[name] * share,
            )
            for name, share in rarity.defining.items()
        ]
        gains, gaining = self._gains(question)
        if factor != 1:
            gains[gaining] *= factor
        second = weights.report_second if query.is_report else 0.0
        discounts = 1 - self._factors(query)
        are_allowed = None if question.allowed is None else self._allowing(question.allowed)
        terms = {**query.terms, **query.forms}
        factors = partial(self._least_factors, 1 - discounts)
        wanted = Wanted(count, gains, gaining, bonuses, second, factors, are_allowed)
        windows, scores = ranker.scores(terms, rarity, wanted)
        for those, bonus in bonuses:
            windows, scores = raised(windows, scores, those, bonus)
        documents = ranker.window_documents.take(windows)
        if are_allowed is not None:
            kept = are_allowed(documents)
            windows, scores, documents = windows[kept], scores[kept], documents[kept]
        if len(gaining):
            scores += gains.take(documents)
        if second:
            scores += second * Groups(documents).second_best(scores)
        shares = partial(ranker.shares, query.terms, rarity)
        kinds = self._index.postings.document_kinds.take(documents).astype(np.intp)
        return Found(windows, scores, kinds, discounts, shares)

    def _ranker(self, totals: Totals) -> Ranker | PrunedRanker:
        if self._last_ranker is None or self._last_ranker.totals != totals:
            postings = self._index.postings
            is_large = postings.window_count >= LARGE_WINDOWS
            kind = PrunedRanker if is_large else Ranker
            self._last_ranker = kind(postings, self._weights, totals)
        return self._last_ranker

    def _defining(self, name: bytes) -> Places:
        return np.asarray(self._index.defined.get(name, ()), np.intp)

    def _gains(self, question: Question) -> tuple[Scores, Places]:
        """Return what the windows of documents gain by their names, and those that gain at all."""
        query, rarity, weights = question.query, question.rarity, self._weights
        gains = np.zeros(len(self._index.paths))
        gaining: list[Places] = []
        if weights.file_stem:
            for term, weight in (*query.terms.items(), *query.forms.items()):
                sharing = self._names.sharing(term)
                if sharing is not None:
                    worth = weights.file_stem * weight * rarity.stems.get(term, 0.0)
                    gains[sharing.documents] += worth * sharing.gains
                    gaining.append(sharing.documents)
        named = self._names.named(rarity.named)
        for number, gain in named.items():
            gains[number] += weights.named_file * gain
        if named:
            gaining.append(np.fromiter(named, np.intp, len(named)))
        return gains, np.concatenate(gaining) if gaining else np.zeros(0, np.intp)

    def _factors(self, query: Query) -> Scores:
        """Return the factor of each of `KINDS`."""
        weights = self._weights
        prose = weights.report_prose if query.is_report else 1.0
        of_kind = {
            Kind.TEST: 1.0 if query.about_tests else weights.test_path,
            Kind.RECORD: 1.0 if query.about_records else min(prose, weights.record_path),
            Kind.PROSE: prose,
            Kind.ASIDE: weights.aside,
        }
        return np.array([1.0 if kind is None else of_kind[kind] for kind in KINDS])

    def _least_factors(self, factors: Scores, documents: Places) -> Scores:
        return factors.take(self._index.postings.document_kinds.take(documents))

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

    def _allowing(self, allowed: Callable[[str], bool]) -> Callable[[Places], NDArray[np.bool_]]:
        """Return what tells the documents whose paths are allowed."""
        paths = self._index.paths
        marks = Marks(len(paths), lambda number: allowed(paths[number]))
        return lambda documents: marks.of(documents).astype(np.bool_)
