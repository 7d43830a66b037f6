"""Answering search requests: ranked windows with their snippets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import log
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rlm_rag.indexes.candidates import SCORE_DIGITS, Found, Groups
from rlm_rag.indexes.enclosing import NamedDefinitions, header_above
from rlm_rag.indexes.forms import Language
from rlm_rag.indexes.kinds import Kind, kind_of
from rlm_rag.indexes.languages import language_of
from rlm_rag.indexes.line_texts import LineTexts
from rlm_rag.indexes.names import FileNames
from rlm_rag.indexes.query import STOP_WORDS, Query, parse_query
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.requests import Hit
from rlm_rag.indexes.scoring import Numbers, Ranker, Scores
from rlm_rag.indexes.snippets import Snippets
from rlm_rag.indexes.windows import WINDOW_LINES, window_lines
from rlm_rag.packed import PackedCorpus
from rlm_rag.traits import HEAD_BYTES, trait_of

if TYPE_CHECKING:
    from rlm_rag.indexes.index import SearchIndex

# Candidates looked at, so that k remain when neighbours are left out.
_CANDIDATES_PER_HIT = 4
_MOST_COMPARED = 1000
# Windows that are read to see how near the query's words are: 30 gain little more.
_MOST_READ = 20
# Of these, windows whose definitions are looked at: 20 gain .005 of MRR, and cost 0.2 ms.
_MOST_NAMED = 10
# Of more no line holds a good part.
_MOST_TERMS_NEAR = 40
_KINDS = (None, *Kind)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What windows that were read are held against."""

    snippets: Snippets
    names: NamedDefinitions


@dataclass(frozen=True, slots=True)
class _Shown:
    """The lines that a window is shown as, and the one of them that holds most of the query.

    `begins` is the one where the definition begins that holds it, None where that is not shown.
    """

    first: int
    last: int
    best: int
    begins: int | None


class Searcher:
    """Searches one indexed corpus."""

    def __init__(self, corpus: PackedCorpus, index: SearchIndex, *, weights: Weights) -> None:
        self._corpus = corpus
        self._index = index
        self._weights = weights
        self._ranker = Ranker(index.postings, weights)
        self._texts = LineTexts(corpus)
        # Windows that the search under way has looked at, and how they are shown.
        self._read: dict[int, bytes] = {}
        self._shown_as: dict[int, _Shown] = {}

    @property
    def index(self) -> SearchIndex:
        """The index that is searched."""
        return self._index

    def search(
        self, query: str, *, k: int, allowed: Callable[[str], bool] | None = None
    ) -> tuple[Hit, ...]:
        """Return the `k` best windows, best first; ties by path, then line.

        A hit has 40 lines at most: those of its window, or, where the definition that holds the
        best of them begins up to 39 lines before it, the lines from there. `allowed` says which
        paths may be in it. A window whose best line a better one shows, or that has the same
        lines as one, is left out while others are to be had.
        """
        return tuple(hit for _, hit in self.placed(query, k=k, allowed=allowed))

    def placed(
        self, query: str, *, k: int, allowed: Callable[[str], bool] | None = None
    ) -> list[tuple[int, Hit]]:
        """Return what `search` does, each hit with the number of its window."""
        parsed = parse_query(query, weights=self._weights)
        # In a line, common words count only where there are no others.
        telling = parsed.terms.keys() - STOP_WORDS or parsed.terms.keys()
        idf = self._ranker.idf
        worth = {term: parsed.terms[term] * idf(term) for term in sorted(telling)}
        forms = {form: weight * idf(form) for form, weight in parsed.forms.items()}
        asked = _Asked(Snippets(worth), NamedDefinitions(worth, forms))
        chosen = self._choose(self._found(parsed, allowed), k, asked)
        asked.snippets.look_at([self._text_shown(window, asked.snippets) for window, _ in chosen])
        hits = [(window, self._hit(window, score, asked.snippets)) for window, score in chosen]
        self._read.clear()
        self._shown_as.clear()
        return hits

    def _found(self, query: Query, allowed: Callable[[str], bool] | None) -> Found:
        scores = self._ranker.scores({**query.terms, **query.forms})
        weights, documents = self._weights, self._ranker.window_documents
        factor = weights.report_names if query.is_report else 1.0
        for name in query.identifiers if weights.defined_identifier else ():
            defining = np.unique(np.asarray(self._index.defined.get(name, ()), np.uint32))
            if len(defining):
                bonus = weights.defined_identifier * factor * self._ranker.idf(name)
                scores[defining] += bonus / (1 + log(len(defining)))
        windows = np.flatnonzero(scores).astype(np.intp)
        if allowed is not None:
            windows = windows[self._are_allowed(documents[windows], allowed)]
        documents, scores = documents[windows], scores[windows]
        gains = self._gains(query)
        if gains.any():
            scores += factor * gains.take(documents)
        if query.is_report and weights.report_second:
            scores += weights.report_second * Groups(documents).second_best(scores)
        discounts = (1 - self._factors(query)).take(self._kinds[documents])
        shares = partial(self._ranker.shares, query.terms)
        return Found(windows, scores, discounts, shares)

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

    def _are_allowed(self, documents: Numbers, allowed: Callable[[str], bool]) -> NDArray[np.bool_]:
        kept = np.zeros(len(self._index.paths), np.bool_)
        for number in np.unique(documents).tolist():
            kept[number] = allowed(self._index.paths[number])
        return kept[documents]

    def _choose(self, found: Found, k: int, asked: _Asked) -> list[tuple[int, float]]:
        wanted = max(_CANDIDATES_PER_HIT * k, _MOST_READ)
        windows, scores = found.best(wanted)
        self._lift(windows, scores, asked)
        ranked, score_of = self._ordered(windows, scores, wanted)
        chosen = self._apart(ranked, k, asked.snippets)
        if len(chosen) < k and len(ranked) < found.count:
            windows, scores = found.all()
            self._lift(windows, scores, asked)
            ranked, score_of = self._ordered(windows, scores, len(windows))
            chosen = self._apart(ranked, k, asked.snippets)
        if len(chosen) < k:
            taken = set(chosen)
            chosen += [window for window in ranked if window not in taken][: k - len(chosen)]
            place_of = {window: place for place, window in enumerate(ranked)}
            chosen.sort(key=place_of.__getitem__)
        return [(window, score_of[window]) for window in chosen]

    def _lift(self, windows: NDArray[np.intp], scores: Scores, asked: _Asked) -> None:
        """Raise those of the best windows that hold the query's words in one line, or in a name."""
        weights = self._weights
        if not weights.near or not 1 < asked.snippets.term_count <= _MOST_TERMS_NEAR:
            return
        best, _ = self._ordered(windows, scores, _MOST_READ)
        near = asked.snippets.nearness([self._text(window) for window in best])
        for place, (window, nearness) in enumerate(zip(best, near, strict=True)):
            language = self._language(window) if place < _MOST_NAMED else None
            named = 0.0
            if weights.near_name and language is not None:
                text = self._text(window)
                named = asked.names.share(text, asked.snippets.lines(text), language)
            lift = weights.near * nearness**2 + weights.near_name * named
            scores[np.searchsorted(windows, window)] *= 1 + lift

    def _ordered(
        self, windows: NDArray[np.intp], scores: Scores, most: int
    ) -> tuple[list[int], dict[int, float]]:
        """Return the best windows, best first, and their scores; ties by path, then line."""
        rounded = np.round(scores, SCORE_DIGITS)
        paths = self._path_order[self._ranker.window_documents[windows]]
        order = np.lexsort((windows, paths, -rounded))[:most]
        best: list[int] = windows[order].tolist()
        return best, dict(zip(best, rounded[order].tolist(), strict=True))

    def _apart(self, ranked: Iterable[int], k: int, snippets: Snippets) -> list[int]:
        """Take the best windows: none whose best line is shown, no two of the same lines."""
        postings = self._index.postings
        documents, lengths = postings.window_documents, postings.window_lengths
        chosen: list[int] = []
        taken: defaultdict[int, list[_Shown]] = defaultdict(list)
        # Only windows of as many words are worth a comparison.
        shown: dict[int, list[int]] = {}
        for window in ranked:
            beside = taken[documents[window]]
            if beside:
                best = self._shown(window, snippets).best
                if any(better.first <= best <= better.last for better in beside):
                    continue
            alike = shown.setdefault(lengths[window], [])
            if alike and self._has_copy(window, alike):
                continue
            alike.append(window)
            chosen.append(window)
            beside.append(self._shown(window, snippets))
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
        shown = self._shown(window, snippets)
        snippet = snippets.of(self._text_shown(window, snippets), shown.first, begins=shown.begins)
        return Hit(self._index.paths[document], shown.first, shown.last, score, snippet)

    def _shown(self, window: int, snippets: Snippets) -> _Shown:
        known = self._shown_as.get(window)
        if known is None:
            first, last = self._span(window)
            best = first + snippets.best_line(self._text(window))
            begins = self._begins(window, max(1, best - WINDOW_LINES + 1), best)
            if begins is not None and begins < first:
                first, last = begins, min(last, begins + WINDOW_LINES - 1)
            known = self._shown_as[window] = _Shown(first, last, best, begins)
        return known

    def _text_shown(self, window: int, snippets: Snippets) -> bytes:
        shown = self._shown(window, snippets)
        if shown.first == self._span(window)[0]:
            return self._text(window)
        document, _ = self._index.postings.place(window)
        return self._texts.lines(document, shown.first, shown.last)

    def _begins(self, window: int, first: int, line: int) -> int | None:
        """Return the line, `first` or later, where the definition begins that holds a line."""
        language = self._language(window)
        if language is None:
            return None
        document, _ = self._index.postings.place(window)
        above = header_above(self._texts.lines(document, first, line), language)
        return None if above is None else first + above

    def _language(self, window: int) -> Language | None:
        document, _ = self._index.postings.place(window)
        return language_of(self._index.paths[document])

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
