"""The skeleton of a document: its definitions or headings, with their lines."""

from __future__ import annotations

from collections.abc import Sequence

from rlm_rag.indexes.definitions import Definition, definitions
from rlm_rag.indexes.paths import parts, resolve
from rlm_rag.indexes.requests import OutlineRequest, TextResult
from rlm_rag.lines import split_lines
from rlm_rag.packed import PackedCorpus

DEFAULT_BUDGET_CHARS = 20_000

_INDENT = "  "
_OPENING_CHARS = 100


def outline(corpus: PackedCorpus, request: OutlineRequest) -> TextResult:
    """Return a document's skeleton, `line: text`, nesting shown by indentation.

    Within `budget_chars` (default 20,000) the deepest levels are left out first, then the
    end; the note says what was. A document of parts shows its parts; one without a
    definition or heading, the openings of its paragraphs.

    Raises:
        RetrievalError: no document, or several, answer to the path.
    """
    budget = DEFAULT_BUDGET_CHARS if request.budget_chars is None else request.budget_chars
    pieces = parts(corpus, request.path)
    if pieces:
        listed = [f"{corpus.path(number)} ({corpus.line_count(number)} lines)" for number in pieces]
        text, note = _fitting([(0, line) for line in listed], budget)
        return TextResult(text, note=note)
    number = resolve(corpus, request.path)
    path = corpus.path(number)
    data = bytes(corpus.content_bytes(number))
    found = [one for one in definitions(path, data) if one.kind != "variable"]
    if found:
        text, note = _fitting([(one.depth, _entry(one)) for one in found], budget)
        return TextResult(text, path, note=note)
    openings = _paragraph_openings(corpus.content(number))
    text, cut = _fitting([(0, line) for line in openings], budget)
    said = f"no definition or heading found in {path}; these lines open its paragraphs"
    if not openings:
        said = f"{path} has no definition, heading or text"
    return TextResult(text, path, note=f"{said}; {cut}" if cut else said)


def _entry(definition: Definition) -> str:
    return f"{definition.line}: {_INDENT * definition.depth}{definition.signature}"


def _fitting(entries: Sequence[tuple[int, str]], budget: int) -> tuple[str, str | None]:
    """Return the entries that fit, and what must be said of the others."""
    deepest = max((depth for depth, _ in entries), default=0)
    for limit in range(deepest, -1, -1):
        kept = [entry for depth, entry in entries if depth <= limit]
        if sum(map(len, kept)) + len(kept) - 1 <= budget:
            return "\n".join(kept), _said(len(kept), len(entries), budget)
    kept = [entry for depth, entry in entries if depth == 0]
    used, count = 0, 0
    while count < len(kept) and used + len(kept[count]) <= budget:
        used += len(kept[count]) + 1
        count += 1
    return "\n".join(kept[:count]), _said(count, len(entries), budget)


def _said(shown: int, total: int, budget: int) -> str | None:
    if shown == total:
        return None
    return f"{shown} of {total} entries fit in budget_chars={budget}, outermost first"


def _paragraph_openings(text: str) -> list[str]:
    openings: list[str] = []
    blank = True
    for number, line in enumerate(split_lines(text), start=1):
        shown = line.strip()
        if shown and blank:
            cut = shown if len(shown) <= _OPENING_CHARS else shown[: _OPENING_CHARS - 1] + "…"
            openings.append(f"{number}: {cut}")
        blank = not shown
    return openings
