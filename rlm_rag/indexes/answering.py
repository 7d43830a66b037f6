"""Answers every retrieval request about one packed corpus, in this process."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.holdings import Holdings, OwnHoldings
from rlm_rag.indexes.landmarks import LATE, Survey
from rlm_rag.indexes.outline import outline
from rlm_rag.indexes.parsers import Parsers
from rlm_rag.indexes.path_filter import PathFilter
from rlm_rag.indexes.paths import resolve
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.repo_map import repo_map
from rlm_rag.indexes.requests import (
    MAX_CONTEXT_LINES,
    MAX_GREP_HITS,
    MAX_K,
    AnyRequest,
    BordersRequest,
    BordersResult,
    ExplainRequest,
    GrepRequest,
    GrepResult,
    HoldRequest,
    IndexRequest,
    LoadRequest,
    LoadResult,
    OutlineRequest,
    PathsRequest,
    ReadRequest,
    RepoMapRequest,
    Result,
    SearchRequest,
    SearchResult,
    SymbolsRequest,
    SymbolsResult,
    TextResult,
    checked_timeout,
    joined_notes,
)
from rlm_rag.indexes.selection import select
from rlm_rag.indexes.skeleton import MINOR_KINDS
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.indexes.store import SegmentStore
from rlm_rag.indexes.symbols import symbols
from rlm_rag.packed import PackedCorpus

if TYPE_CHECKING:
    from rlm_rag.indexes.index import Progress
    from rlm_rag.indexes.leaning import Leaning
    from rlm_rag.indexes.search import Searcher

_FOCUS_HITS = 40
_WORD = re.compile(r"\w{3,}")
# Too many and too small to split a text at.
_NO_BORDERS = MINOR_KINDS | {"constant", "declaration"}
# Files that score less than this share of the best do not bear on the focus.
_FOCUS_SHARE = 0.5


class Answerer:
    """The retrieval primitives over one corpus; the search index is built when first needed.

    Not safe for threads: one request at a time.
    """

    def __init__(
        self, corpus: PackedCorpus, holdings: Holdings, *, weights: Weights | None = None
    ) -> None:
        self._corpus = corpus
        self._holdings = holdings
        self._weights = weights or Weights()
        self._known_searcher: Searcher | None = None
        self._leaning: Leaning | None = None

    @classmethod
    def of(
        cls,
        corpus: PackedCorpus,
        *,
        weights: Weights | None = None,
        store: SegmentStore | None = None,
        packed_path: Path | None = None,
        parsers: Parsers | None = None,
        on_progress: Progress | None = None,
    ) -> Answerer:
        """Return what answers about a corpus by holdings of this process, made as `OwnHoldings`."""
        holdings = OwnHoldings(
            corpus,
            weights=weights,
            store=store,
            packed_path=packed_path,
            parsers=parsers,
            on_progress=on_progress,
        )
        return cls(corpus, holdings, weights=weights)

    @classmethod
    def open(
        cls,
        packed_path: Path,
        *,
        index_folder: Path | None = None,
        origin: str = "",
        on_progress: Progress | None = None,
    ) -> Answerer:
        """Open a packed corpus, with the folder of its index, or None to keep that in memory.

        Raises:
            PackedCorpusError: the file is none, or is damaged.
        """
        store = SegmentStore(index_folder, stamp=stamp_of(Weights()), origin=origin)
        corpus = PackedCorpus.open(packed_path)
        return cls.of(corpus, store=store, packed_path=packed_path, on_progress=on_progress)

    def answer(self, request: AnyRequest) -> Result:
        """Answer one request.

        Raises:
            RetrievalError: an argument cannot be used; what is wrong with a pattern, a path
                or a line range is said in the result's `error` instead.
        """
        if isinstance(request, SearchRequest):
            return self._search(request)
        if isinstance(request, GrepRequest):
            return self._grep(request)
        if isinstance(request, SymbolsRequest):
            return self._symbols(request)
        if isinstance(request, BordersRequest):
            return self._borders(request)
        if isinstance(request, PathsRequest):
            return select(self._corpus, request)
        if isinstance(request, LoadRequest):
            return LoadResult()
        if isinstance(request, HoldRequest):
            return self._holdings.hold(request.numbers)
        if isinstance(request, IndexRequest):
            return self._holdings.described(verify=request.verify)
        try:
            if isinstance(request, ExplainRequest):
                return self._explain(request)
            return self._text(request)
        except RetrievalError as error:
            hint = f" ({error.hint})" if error.hint else ""
            return TextResult("", error=error.message + hint)

    def go_on(self, seconds: float) -> bool:
        """Parse documents that a request left for lack of time; return whether more are left.

        Raises:
            OSError: no process could be started; what was left is then forgotten.
        """
        return self._holdings.go_on(seconds)

    def close(self) -> None:
        """Unmap the corpus, and end what works on it."""
        self._holdings.close()
        self._corpus.close()

    def _search(self, request: SearchRequest) -> SearchResult:
        _check_text("query", request.query)
        k, note = _capped("k", request.k, MAX_K)
        allowed, unmatched = self._allowed(request.path_glob, request.within)
        searcher = self._searcher()
        hits = searcher.search(request.query, k=k, allowed=allowed)
        late = LATE if searcher.is_late else None
        return SearchResult(hits, joined_notes(note, unmatched, late, self._holdings.note))

    def _grep(self, request: GrepRequest) -> GrepResult:
        _check_text("pattern", request.pattern, blank=True)
        checked_timeout(request.timeout_seconds)
        k, note = _capped("k", request.k, MAX_GREP_HITS)
        before, before_note = _capped("before", request.before, MAX_CONTEXT_LINES, least=0)
        after, after_note = _capped("after", request.after, MAX_CONTEXT_LINES, least=0)
        allowed, unmatched = self._allowed(request.path_glob, request.within)
        asked = replace(request, k=k, before=before, after=after)
        result = self._holdings.matching(asked, allowed)
        return replace(result, note=joined_notes(note, before_note, after_note, unmatched))

    def _symbols(self, request: SymbolsRequest) -> SymbolsResult:
        _check_text("name", request.name)
        allowed, unmatched = self._allowed(request.path_glob, request.within)
        result = symbols(request, partial(self._holdings.looked_up, request, allowed))
        return replace(result, note=unmatched or result.note)

    def _explain(self, request: ExplainRequest) -> TextResult:
        from rlm_rag.indexes.explain import explain

        _check_text("query", request.query)
        _check_text("path", request.path)
        path = self._corpus.path(resolve(self._corpus, request.path))
        return explain(self._searcher(), path, request)

    def _text(self, request: OutlineRequest | ReadRequest | RepoMapRequest) -> TextResult:
        match request:
            case OutlineRequest():
                _check_text("path", request.path)
                if request.budget_chars is not None:
                    _check_whole("budget_chars", request.budget_chars, 1)
                return outline(self._corpus, self._holdings, request)
            case ReadRequest():
                _check_text("path", request.path)
                _check_whole("start", request.start, None)
                if request.end is not None:
                    _check_whole("end", request.end, None)
                return self._holdings.read(request)
            case RepoMapRequest():
                if request.focus is not None:
                    _check_text("focus", request.focus)
                _check_whole("budget_chars", request.budget_chars, 1)
                return self._map(request)
            case _:
                assert_never(request)

    def _borders(self, request: BordersRequest) -> BordersResult:
        _check_text("path", request.path)
        if request.text is None:
            number = self._corpus.index_of(request.path)
            if number is None:
                raise RetrievalError(f"no document has the path {request.path!r}")
            found = self._holdings.outlined(number)
        else:
            data = request.text.encode("utf-8", "surrogatepass")
            found = self._holdings.outlined_text(request.path, data)
        borders = (one for one in found.definitions if one.kind not in _NO_BORDERS)
        return BordersResult(tuple((one.line, one.depth) for one in borders), found.said)

    def _map(self, request: RepoMapRequest) -> TextResult:
        self._leaning = self._leaning or self._leaned()
        within = None if request.within is None else frozenset(request.within)
        focus = (request.focus or "").strip()
        focused = self._focused(focus, request.within) if focus else None
        names = frozenset(_WORD.findall(focus))
        ranked = self._leaning.ranked(within, focused, names)
        mapped = repo_map(self._leaning.paths, ranked, request)
        late = (
            None if self._leaning.is_complete else "some documents were scanned, for lack of time"
        )
        return replace(mapped, note=joined_notes(mapped.note, late))

    def _leaned(self) -> Leaning:
        # Not before: numpy is slow to import.
        from rlm_rag.indexes.leaning import Leaning

        return Leaning(self._corpus.paths(), self._holdings.told(), self._holdings.uses)

    def _focused(self, focus: str, within: Sequence[str] | None) -> Sequence[str]:
        """Return the paths that a text names, then those that search finds for it."""
        allowed, _ = self._allowed(None, within)
        hits = self._searcher().search(focus, k=_FOCUS_HITS, allowed=allowed)
        named = [path for path in self._corpus.paths() if focus in path]
        return [
            *(path for path in named if allowed is None or allowed(path)),
            *(hit.path for hit in hits if hit.score >= _FOCUS_SHARE * hits[0].score),
        ]

    def _searcher(self) -> Searcher:
        if self._known_searcher is None:
            # Not before: numpy is slow to import, and few other requests need it.
            from rlm_rag.indexes.search import Searcher

            survey = Survey(self._corpus, self._holdings)
            self._known_searcher = Searcher(
                self._holdings.parts, weights=self._weights, survey=survey
            )
        return self._known_searcher

    def _allowed(
        self, glob: object, within: Sequence[str] | None
    ) -> tuple[Callable[[str], bool] | None, str | None]:
        """Return the test of a glob and of `within`, and what to say if no path passes it."""
        if glob is None and within is None:
            return None, None
        allowed = PathFilter(glob, within)
        if glob is None or any(map(allowed, self._corpus.paths())):
            return allowed, None
        return allowed, f"no path of the corpus matches path_glob={glob!r}"


def _check_text(name: str, value: Any, *, blank: bool = False) -> None:
    if not isinstance(value, str):
        raise RetrievalError(f"{name} must be a string, not {type(value).__name__}")
    if not value or not (blank or value.strip()):
        raise RetrievalError(f"{name} is empty: say what to look for")


def _check_whole(name: str, value: Any, least: int | None) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise RetrievalError(f"{name} must be a whole number, not {value!r}")
    if least is not None and value < least:
        raise RetrievalError(f"{name}={value}: must be {least} or more")


def _capped(name: str, value: Any, most: int, *, least: int = 1) -> tuple[int, str | None]:
    _check_whole(name, value, least)
    if value <= most:
        return value, None
    return most, f"{name}={value} was taken as {most}, the most there is"
