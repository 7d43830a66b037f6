"""Ways to index windows and search them, each given the same windows and the same terms."""

from __future__ import annotations

import heapq
import sqlite3
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log
from pathlib import Path
from typing import Any, Protocol

from rlm_rag.indexes.terms import raw_words, word_terms
from rlm_rag.indexes.windows import window_count, window_lines
from rlm_rag.lines import split_lines
from rlm_rag.packed import PackedCorpus

K1, B = 1.2, 0.75
TOP = 10


class Engine(Protocol):
    """An index of one packed corpus; `update` brings it to another version of the corpus."""

    def build(self, packed: Path) -> None: ...

    def search(self, query: str) -> object: ...

    def update(self, packed: Path, changed: Sequence[int]) -> None: ...


def terms_of(text: str) -> list[str]:
    """Return the terms of a text, sub-words included, as rlm-rag counts them."""
    return [
        term.decode("utf-8", "replace") for word in raw_words(text) for term in word_terms(word)
    ]


def windows_of(corpus: PackedCorpus, numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Yield the document and the text of each window."""
    for number in numbers:
        lines = split_lines(corpus.content(number))
        for window in range(window_count(len(lines))):
            first, last = window_lines(window, len(lines))
            yield number, "\n".join(lines[first - 1 : last])


class Ours:
    """rlm-rag's own engine, from the packed file to ranked hits with snippets."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._answerer: Any = None
        self._parsers: Any = None

    def build(self, packed: Path) -> None:
        from rlm_rag.indexes.answering import Answerer
        from rlm_rag.indexes.parsers import Parsers
        from rlm_rag.indexes.ranking import Weights
        from rlm_rag.indexes.requests import IndexRequest
        from rlm_rag.indexes.stamp import stamp_of
        from rlm_rag.indexes.store import SegmentStore

        # Where they end with an answerer, their time counts as that of the next.
        self._parsers = self._parsers or Parsers()
        store = SegmentStore(Path(self._folder.name) / "index", stamp=stamp_of(Weights()))
        corpus = PackedCorpus.open(packed)
        self._answerer = Answerer.of(corpus, store=store, packed_path=packed, parsers=self._parsers)
        self._answerer.answer(IndexRequest())

    def search(self, query: str) -> object:
        from rlm_rag.indexes.requests import SearchRequest

        return self._answerer.answer(SearchRequest(query, TOP))

    def update(self, packed: Path, changed: Sequence[int]) -> None:
        self.build(packed)


class Plain:
    """A dict of lists, as code in a sandbox would write it."""

    def __init__(self) -> None:
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._lengths: list[int] = []
        self._documents: list[int] = []

    def build(self, packed: Path) -> None:
        with PackedCorpus.open(packed) as corpus:
            self._add(corpus, range(len(corpus)))

    def _add(self, corpus: PackedCorpus, numbers: Sequence[int]) -> None:
        for document, text in windows_of(corpus, numbers):
            counts = Counter(terms_of(text))
            for term, count in counts.items():
                self._postings[term].append((len(self._lengths), count))
            self._lengths.append(sum(counts.values()))
            self._documents.append(document)

    def search(self, query: str) -> object:
        scores: dict[int, float] = {}
        mean = sum(self._lengths) / len(self._lengths)
        for term in set(terms_of(query)):
            found = self._postings.get(term, [])
            idf = log(1 + (len(self._lengths) - len(found) + 0.5) / (len(found) + 0.5))
            for window, count in found:
                norm = count + K1 * (1 - B + B * self._lengths[window] / mean)
                scores[window] = scores.get(window, 0.0) + idf * count * (K1 + 1) / norm
        return heapq.nlargest(TOP, scores, key=scores.__getitem__)

    def update(self, packed: Path, changed: Sequence[int]) -> None:
        gone = set(changed)
        dead = {window for window, document in enumerate(self._documents) if document in gone}
        for term, found in self._postings.items():
            if any(window in dead for window, _ in found):
                self._postings[term] = [one for one in found if one[0] not in dead]
        with PackedCorpus.open(packed) as corpus:
            self._add(corpus, changed)


class RankBm25:
    """rank-bm25, which is built again for every change."""

    def build(self, packed: Path) -> None:
        from rank_bm25 import BM25Okapi  # type: ignore[import-not-found]

        with PackedCorpus.open(packed) as corpus:
            texts = [terms_of(text) for _, text in windows_of(corpus, range(len(corpus)))]
        self._index = BM25Okapi(texts, k1=K1, b=B)

    def search(self, query: str) -> object:
        return heapq.nlargest(
            TOP, enumerate(self._index.get_scores(terms_of(query))), lambda p: p[1]
        )

    def update(self, packed: Path, changed: Sequence[int]) -> None:
        self.build(packed)


class Bm25s:
    """bm25s with numpy, which is built again for every change."""

    def build(self, packed: Path) -> None:
        import bm25s  # type: ignore[import-not-found]

        with PackedCorpus.open(packed) as corpus:
            texts = [terms_of(text) for _, text in windows_of(corpus, range(len(corpus)))]
        self._index = bm25s.BM25(k1=K1, b=B)
        self._index.index(texts, show_progress=False)

    def search(self, query: str) -> object:
        return self._index.retrieve([terms_of(query)], k=TOP, show_progress=False)

    def update(self, packed: Path, changed: Sequence[int]) -> None:
        self.build(packed)


class Tantivy:
    """tantivy on disk, its terms cut here so that sub-words are found."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()

    def build(self, packed: Path) -> None:
        import tantivy  # type: ignore[import-not-found]

        builder = tantivy.SchemaBuilder()
        builder.add_text_field("body", stored=False, tokenizer_name="whitespace")
        builder.add_text_field("document", stored=True, tokenizer_name="raw")
        self._index = tantivy.Index(builder.build(), path=self._folder.name)
        analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
        self._index.register_tokenizer("whitespace", analyzer)
        self._writer = self._index.writer(heap_size=100_000_000, num_threads=1)
        with PackedCorpus.open(packed) as corpus:
            self._add(corpus, range(len(corpus)))

    def _add(self, corpus: PackedCorpus, numbers: Sequence[int]) -> None:
        import tantivy

        for document, text in windows_of(corpus, numbers):
            self._writer.add_document(
                tantivy.Document(body=" ".join(terms_of(text)), document=str(document))
            )
        self._writer.commit()
        self._index.reload()

    def search(self, query: str) -> object:
        words = " ".join(f'"{term}"' for term in terms_of(query))
        return self._index.searcher().search(self._index.parse_query(words, ["body"]), TOP).hits

    def update(self, packed: Path, changed: Sequence[int]) -> None:
        for number in changed:
            self._writer.delete_documents("document", str(number))
        with PackedCorpus.open(packed) as corpus:
            self._add(corpus, changed)


class Fts5:
    """SQLite's FTS5 in memory, given the terms."""

    def build(self, packed: Path) -> None:
        self._database = sqlite3.connect(":memory:")
        self._database.execute(
            "create virtual table w using fts5(body, document unindexed, tokenize='unicode61')"
        )
        with PackedCorpus.open(packed) as corpus:
            self._add(corpus, range(len(corpus)))

    def _add(self, corpus: PackedCorpus, numbers: Sequence[int]) -> None:
        rows = ((" ".join(terms_of(text)), number) for number, text in windows_of(corpus, numbers))
        self._database.executemany("insert into w values (?, ?)", rows)
        self._database.commit()

    def search(self, query: str) -> object:
        words = " OR ".join(f'"{term}"' for term in terms_of(query))
        found = self._database.execute(
            "select rowid from w where w match ? order by rank limit ?", (words, TOP)
        )
        return found.fetchall()

    def update(self, packed: Path, changed: Sequence[int]) -> None:
        marks = ",".join("?" * len(changed))
        self._database.execute(f"delete from w where document in ({marks})", tuple(changed))
        with PackedCorpus.open(packed) as corpus:
            self._add(corpus, changed)


ENGINES: Mapping[str, Callable[[], Engine]] = {
    "rlm-rag": Ours,
    "plain Python": Plain,
    "rank-bm25": RankBm25,
    "bm25s": Bm25s,
    "tantivy": Tantivy,
    "FTS5": Fts5,
}
