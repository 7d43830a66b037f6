"""Lines that match a regular expression, over the whole corpus, on two cores where that helps."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Thread
from typing import Literal

from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.grep import Found, search_documents
from rlm_rag.indexes.grep_helper import GrepHelper
from rlm_rag.indexes.patterns import LinePattern, compile_pattern
from rlm_rag.indexes.requests import GrepRequest, GrepResult
from rlm_rag.indexes.time_limit import TimeLimitReached, time_limit
from rlm_rag.packed import PackedCorpus

_PIECE_BYTES = 4 << 20
# A helper takes a tenth of a second to start: it is asked for where as much is left to do.
_WORTH_A_HELPER_SECONDS = 0.2
_JOIN_SECONDS = 1.0


def grep(
    corpus: PackedCorpus,
    request: GrepRequest,
    allowed: Callable[[str], bool] | None,
    helper: GrepHelper | None = None,
) -> GrepResult:
    """Search every allowed document, in the corpus's order; counts are always complete.

    `helper` searches a part of a large corpus meanwhile. A bad pattern or the time limit is
    said in the result's `error`.
    """
    search = _Search(corpus, request, allowed, helper)
    error: str | None = None
    kind: Literal["pattern", "time_limit"] | None = None
    try:
        with time_limit(request.timeout_seconds):
            search.run(compile_pattern(request.pattern, ignore_case=request.ignore_case))
    except RetrievalError as problem:
        error, kind = f"{problem.message} ({problem.hint})", "pattern"
    except TimeLimitReached:
        kind = "time_limit"
        error = (
            f"the pattern took longer than {request.timeout_seconds:g} s, and counts are "
            "partial: make it simpler (no nested repeats such as (a+)+) or narrow path_glob"
        )
    found = search.found()
    total = sum(found.counts.values())
    truncated = error is not None or total > len(found.hits)
    return GrepResult(
        tuple(found.hits), found.counts, total, truncated, error=error, error_kind=kind
    )


class _Search:
    """One search: its pieces are taken from the front here, and from the end by the helper."""

    def __init__(
        self,
        corpus: PackedCorpus,
        request: GrepRequest,
        allowed: Callable[[str], bool] | None,
        helper: GrepHelper | None,
    ) -> None:
        self._corpus = corpus
        self._request = request
        self._helper = helper
        self._until = time.monotonic() + request.timeout_seconds
        self._pieces = deque(enumerate(_pieces(corpus, allowed)))
        self._found: dict[int, Found] = {}
        self._hits = 0
        self._helped_too_long = False

    def run(self, pattern: LinePattern) -> None:
        """Search all pieces.

        Raises:
            TimeLimitReached: the helper took too long; in this process a signal says it.
        """
        feeder: Thread | None = None
        started, all_pieces = time.monotonic(), len(self._pieces)
        try:
            while True:
                while self._pieces:
                    if feeder is None and self._helper is not None:
                        done = all_pieces - len(self._pieces)
                        left = (time.monotonic() - started) / max(done, 1) * len(self._pieces)
                        if left > _WORTH_A_HELPER_SECONDS or (self._helper.running and not done):
                            feeder = self._started(self._helper)
                    self._search_first(pattern)
                if feeder is None or not feeder.is_alive():
                    break
                feeder.join()
        except TimeLimitReached:
            if feeder is not None and self._helper is not None:
                self._helper.end()
                feeder.join(_JOIN_SECONDS)
            raise
        # What a helper that ended had taken is back among the pieces by now.
        while self._pieces:
            self._search_first(pattern)
        if self._helped_too_long:
            raise TimeLimitReached

    def found(self) -> Found:
        """Return what was found, in the corpus's order."""
        merged = Found()
        for _, found in sorted(self._found.items()):
            merged.hits += found.hits[: self._request.k - len(merged.hits)]
            merged.counts |= found.counts
        return merged

    def _search_first(self, pattern: LinePattern) -> None:
        try:
            number, documents = self._pieces.popleft()
        except IndexError:
            # The helper took the last one.
            return
        found = self._found[number] = Found()
        request = replace(self._request, k=max(self._request.k - self._hits, 0))
        search_documents(self._corpus, pattern, request, documents, found)
        self._hits += len(found.hits)

    def _started(self, helper: GrepHelper) -> Thread | None:
        if not helper.start():
            self._helper = None
            return None
        feeder = Thread(target=self._feed, args=(helper,), daemon=True)
        feeder.start()
        return feeder

    def _feed(self, helper: GrepHelper) -> None:
        while self._pieces:
            try:
                number, documents = self._pieces.pop()
            except IndexError:
                return
            seconds = max(self._until - time.monotonic(), 0.001)
            request = replace(
                self._request, path_glob=None, within=None, timeout_seconds=seconds,
                k=max(self._request.k - self._hits, 1),
            )  # fmt: skip
            result = helper.search(request, documents)
            if result is None:
                self._pieces.append((number, documents))
                return
            self._found[number] = Found(list(result.hits), dict(result.counts))
            if result.error is not None:
                self._helped_too_long = True
                self._pieces.clear()


def _pieces(corpus: PackedCorpus, allowed: Callable[[str], bool] | None) -> list[Sequence[int]]:
    pieces: list[Sequence[int]] = []
    piece: list[int] = []
    size = 0
    for number, size_bytes in enumerate(corpus.sizes()):
        if allowed is None or allowed(corpus.path(number)):
            piece.append(number)
            size += size_bytes
            if size >= _PIECE_BYTES:
                pieces.append(piece)
                piece, size = [], 0
    return [*pieces, piece] if piece else pieces
