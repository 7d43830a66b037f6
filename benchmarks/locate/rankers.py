"""What is compared: this project's search, and the baselines it has to lead."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Protocol

from rlm_rag.api import SearchableCorpus
from rlm_rag.corpus import Corpus
from rlm_rag.indexes.query import STOP_WORDS
from rlm_rag.indexes.terms import raw_words, word_terms
from rlm_rag.indexes.windows import window_count, window_lines
from rlm_rag.lines import split_lines

_PATH_TIMES = 3


@dataclass(frozen=True, slots=True)
class Place:
    """A place that a ranker proposes; a whole file has no lines of its own."""

    path: str
    first: int
    last: int
    snippet: str = ""


class Ranker(Protocol):
    """Orders the places of one tree for a question, best first."""

    def rank(self, text: str, most: int) -> list[Place]: ...

    def close(self) -> None: ...


class OwnSearch:
    """`search` as a caller meets it, index process included."""

    def __init__(self, documents: Iterable[tuple[str, str]]) -> None:
        self._corpus = SearchableCorpus.adopt(Corpus.from_documents(documents))

    def rank(self, text: str, most: int) -> list[Place]:
        hits = self._corpus.search(text, k=most)
        return [Place(hit.path, hit.line, hit.end_line, hit.snippet) for hit in hits]

    def close(self) -> None:
        self._corpus.close()


class Bm25:
    """Okapi BM25, with the scores of rank-bm25 0.2.2 at its defaults, by inverted lists.

    k1 1.5, b 0.75; a term in more than half of the texts has a quarter of the mean idf.
    """

    def __init__(self, texts: Iterable[Sequence[bytes]]) -> None:
        self._lengths: list[int] = []
        self._postings: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
        for number, terms in enumerate(texts):
            self._lengths.append(len(terms))
            for term, count in Counter(terms).items():
                self._postings[term].append((number, count))
        total = len(self._lengths)
        self._mean = sum(self._lengths) / total if total else 1.0
        self._idf = {
            term: log(total - len(found) + 0.5) - log(len(found) + 0.5)
            for term, found in self._postings.items()
        }
        least = 0.25 * sum(self._idf.values()) / len(self._idf) if self._idf else 0.0
        self._idf = {term: idf if idf >= 0 else least for term, idf in self._idf.items()}

    def scores(self, terms: Iterable[bytes]) -> dict[int, float]:
        """Score the texts that hold one of the terms; a repeated term counts again."""
        scores: dict[int, float] = {}
        for term, times in Counter(terms).items():
            idf = self._idf.get(term, 0.0) * times
            for number, count in self._postings.get(term, ()):
                norm = 1.5 * (0.25 + 0.75 * self._lengths[number] / self._mean)
                scores[number] = scores.get(number, 0.0) + idf * count * 2.5 / (count + norm)
        return scores


class WindowBm25:
    """BM25 over windows of 40 lines, with this project's terms: words and their parts."""

    def __init__(self, documents: Iterable[tuple[str, str]]) -> None:
        self._places, texts = _windows(documents)
        self._bm25 = Bm25(terms_of(text) for text in texts)

    def rank(self, text: str, most: int) -> list[Place]:
        return _best(self._bm25.scores(terms_of(text)), self._places, most)

    def close(self) -> None:
        pass


class FileBm25:
    """BM25 over whole files, the terms of the path counted three times more."""

    def __init__(self, documents: Sequence[tuple[str, str]]) -> None:
        self._places = [Place(path, 1, text.count("\n") + 1) for path, text in documents]
        self._bm25 = Bm25(terms_of(text) + terms_of(path) * _PATH_TIMES for path, text in documents)

    def rank(self, text: str, most: int) -> list[Place]:
        return _best(self._bm25.scores(terms_of(text)), self._places, most)

    def close(self) -> None:
        pass


class KeywordCount:
    """How many distinct keywords a window holds, as one who greps for each would count."""

    def __init__(self, documents: Iterable[tuple[str, str]]) -> None:
        self._places, texts = _windows(documents)
        self._holding: dict[bytes, list[int]] = defaultdict(list)
        for number, text in enumerate(texts):
            for word in {word.lower() for word in raw_words(text)}:
                self._holding[word].append(number)

    def rank(self, text: str, most: int) -> list[Place]:
        words = {word.lower() for word in raw_words(text)} - STOP_WORDS
        scores: Counter[int] = Counter()
        for word in words:
            scores.update(self._holding.get(word, ()))
        return _best(scores, self._places, most)

    def close(self) -> None:
        pass


OWN = "rlm-rag"
WINDOWS = "BM25, 40 lines"
FILES = "BM25, whole files"
RANKERS: Mapping[str, Callable[[Sequence[tuple[str, str]]], Ranker]] = {
    OWN: OwnSearch,
    WINDOWS: WindowBm25,
    FILES: FileBm25,
    "keywords counted": KeywordCount,
}


def terms_of(text: str) -> list[bytes]:
    """Return the terms of a text in order, parts of words included."""
    return [term for word in raw_words(text) for term in word_terms(word)]


def _windows(documents: Iterable[tuple[str, str]]) -> tuple[list[Place], list[str]]:
    places, texts = [], []
    for path, text in documents:
        lines = split_lines(text)
        for number in range(window_count(len(lines))):
            first, last = window_lines(number, len(lines))
            places.append(Place(path, first, last, "\n".join(lines[first - 1 : last])))
            texts.append(places[-1].snippet)
    return places, texts


def _best(scores: Mapping[int, float], places: Sequence[Place], most: int) -> list[Place]:
    best = heapq.nsmallest(most, scores, key=lambda number: (-scores[number], number))
    return [places[number] for number in best]
