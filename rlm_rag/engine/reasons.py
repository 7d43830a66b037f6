"""Why a citation does not stand, in one line that its author can act on."""

from __future__ import annotations

from rlm_rag.corpus import Corpus
from rlm_rag.engine.citations import ADDED_PREFIX, Citation, paths_that_end

MAX_PATHS_NAMED = 3
MAX_QUOTE_CHARS = 80


def why_false(citation: Citation, corpus: Corpus) -> str:
    """Return the place with what is wrong: its path, its lines, or its quote."""
    place = f"{citation.path}:{citation.line}"
    if citation.end_line != citation.line:
        place += f"-{citation.end_line}"
    if citation.path.startswith(ADDED_PREFIX):
        return f"{place}: what a block added is no evidence; cite the corpus"
    lines = corpus.lines_of(citation.path)
    if lines is None:
        return f"{place}: no document has this path{_others(citation.path, corpus)}"
    if not 1 <= citation.line <= citation.end_line <= lines:
        return f"{place}: the document has lines 1 to {lines:,}"
    quote = (citation.quote or "")[:MAX_QUOTE_CHARS]
    return f'{place}: "{quote}" does not stand in the document; quote it word for word'


def _others(path: str, corpus: Corpus) -> str:
    name = path.rpartition("/")[2]
    same = paths_that_end([name], corpus.paths()).get(name, [])
    if not same:
        return ""
    more = ", ..." if len(same) > MAX_PATHS_NAMED else ""
    return f"; there is {', '.join(same[:MAX_PATHS_NAMED])}{more}"
