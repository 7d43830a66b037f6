"""Why a document ranks where it does: its best window's place, and which words it holds."""

from __future__ import annotations

from rlm_rag.indexes.query import parse_query
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.requests import MAX_K, ExplainRequest, TextResult
from rlm_rag.indexes.search import Searcher

_MAX_TERMS = 30


def explain(searcher: Searcher, document: int, request: ExplainRequest) -> TextResult:
    """Say at which place a document's best window is, and what of the query it holds."""
    index = searcher.index
    path = index.paths[document]
    hits = searcher.search(request.query, k=MAX_K)
    place = next((number for number, hit in enumerate(hits, start=1) if hit.path == path), None)
    own = searcher.placed(request.query, k=1, allowed=lambda one: one == path)
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
    weighted = sorted(parse_query(request.query, weights=Weights()).terms.items())
    for term, weight in sorted(weighted, key=lambda pair: -pair[1])[:_MAX_TERMS]:
        found = index.postings.postings(term)
        at = int(found.windows.searchsorted(window))
        held = at < len(found.windows) and found.windows[at] == window
        times = found.counts[at] if held else 0
        word = term.decode("utf-8", "replace")
        lines.append(f"  {word}: {times}, {len(found.windows):,}, {weight:.2f}")
    return TextResult("\n".join(lines), path, best.line, best.end_line)
