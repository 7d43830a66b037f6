"""Why a document ranks where it does: its best window's place, and which words it holds."""

from __future__ import annotations

from rlm_rag.indexes.path_filter import PathFilter
from rlm_rag.indexes.query import parse_query
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.requests import MAX_K, ExplainRequest, TextResult
from rlm_rag.indexes.search import Searcher

_MAX_TERMS = 30


def explain(searcher: Searcher, path: str, request: ExplainRequest) -> TextResult:
    """Say at which place the best window of that document is, and what of the query it holds."""
    hits = searcher.search(request.query, k=MAX_K)
    place = next((number for number, hit in enumerate(hits, start=1) if hit.path == path), None)
    own = searcher.placed(request.query, k=1, allowed=PathFilter(within=(path,)))
    if not own:
        return TextResult(f"{path}: no window holds a word of the query", path)
    ((window, best),) = own
    where = (
        f"place {place} of {len(hits):,} hits" if place else f"not among the first {MAX_K:,} hits"
    )
    lines = [f"{path}:{best.line}-{best.end_line}  {best.score:.2f}  {where}"]
    if hits and place != 1:
        lines.append(f"first is {hits[0].path}:{hits[0].line}  {hits[0].score:.2f}")
    lines.append("word: times in this window, windows of all that hold it, weight in the query")
    query = parse_query(request.query, weights=Weights())
    holding = searcher.counts(query).windows
    weighted = sorted(query.terms.items(), key=lambda pair: (-pair[1], pair[0]))[:_MAX_TERMS]
    times = searcher.times(window, [term for term, _ in weighted])
    for (term, weight), count in zip(weighted, times, strict=True):
        word = term.decode("utf-8", "replace")
        lines.append(f"  {word}: {count}, {holding[term]:,}, {weight:.2f}")
    return TextResult("\n".join(lines), path, best.line, best.end_line)
