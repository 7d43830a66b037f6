"""The definitions that the rest of a corpus leans on most, as text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlm_rag.indexes.requests import RepoMapRequest, TextResult

if TYPE_CHECKING:
    from rlm_rag.indexes.leaning import Ranked


def repo_map(paths: Sequence[str], ranked: Sequence[Ranked], request: RepoMapRequest) -> TextResult:
    """Return signatures by file, the file of the heaviest first, as many as the budget holds.

    A member whose class is not among them has the name of it before its signature.
    """
    if not ranked:
        where = "" if request.focus is None else f" that bears on {request.focus!r}"
        return TextResult("", note=f"no definition found{where}")
    chosen = _fitting(paths, ranked, request.budget_chars)
    by_document: dict[int, list[Ranked]] = defaultdict(list)
    for one in chosen:
        by_document[one.document].append(one)
    lines: list[str] = []
    for document, found in by_document.items():
        lines.append(f"{paths[document]}:")
        shown = {one.definition.name for one in found}
        for one in sorted(found, key=lambda one: one.definition.line):
            definition = one.definition
            inside = not definition.parents or definition.parents[-1] in shown
            indent = "  " * definition.depth if inside else ""
            head = "" if inside else f"{definition.parents[-1]}: "
            lines.append(f"  {definition.line}: {indent}{head}{definition.signature}")
    note = None
    if len(chosen) < len(ranked):
        note = f"{len(chosen)} of {len(ranked)} definitions fit in "
        note += f"budget_chars={request.budget_chars}"
    return TextResult("\n".join(lines), note=note)


def _fitting(paths: Sequence[str], ranked: Sequence[Ranked], budget: int) -> Sequence[Ranked]:
    used = 0
    documents: set[int] = set()
    for count, one in enumerate(ranked):
        definition = one.definition
        scope = max((len(name) + 2 for name in definition.parents[-1:]), default=0)
        cost = len(f"  {definition.line}: {definition.signature}\n") + max(
            scope, 2 * definition.depth
        )
        if one.document not in documents:
            cost += len(paths[one.document]) + 2
        if used + cost > budget + 1:
            return ranked[:count]
        used += cost
        documents.add(one.document)
    return ranked
