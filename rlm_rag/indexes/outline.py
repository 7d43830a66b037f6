"""The skeleton of a document: its definitions or headings; of several, one line each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from rlm_rag.indexes.catalogue import Definitions
from rlm_rag.indexes.listing import fitting_count, listing
from rlm_rag.indexes.paths import candidates, gathered, parts, the_one
from rlm_rag.indexes.requests import OutlineRequest, TextResult, joined_notes
from rlm_rag.indexes.skeleton import MINOR_KINDS, Definition
from rlm_rag.lines import split_lines
from rlm_rag.packed import PackedCorpus

DEFAULT_BUDGET_CHARS = 20_000

_INDENT = "  "
_OPENING_CHARS = 100


def outline(corpus: PackedCorpus, definitions: Definitions, request: OutlineRequest) -> TextResult:
    """Return a document's skeleton, `line: text`, nesting shown by indentation.

    Within `budget_chars` (default 20,000) what does not fit is left out: first the words of
    documentation, then fields, variables and members of enumerations, then the deepest levels,
    then the end. `[+3]` ends a line that hides three, and the note says how many there are. Of
    a folder or a glob, one line a file; of a document of parts, its parts; of one without a
    definition or heading, the openings of its paragraphs.

    Raises:
        RetrievalError: no document, or several of one name, answer to the path.
    """
    budget = DEFAULT_BUDGET_CHARS if request.budget_chars is None else request.budget_chars
    found = candidates(corpus, request.path)
    pieces = parts(corpus, request.path, found)
    if pieces:
        lines = [f"{corpus.path(number)} ({corpus.line_count(number)} lines)" for number in pieces]
        text, note = _cut(lines, budget)
        return TextResult(text, note=note)
    several = gathered(corpus, request.path, found, request.within)
    if several:
        return listing(corpus, definitions, several, budget)
    number = the_one(corpus, request.path, found, request.within)
    path = corpus.path(number)
    outlined = definitions.outlined(number)
    if outlined.definitions:
        text, cut = _fitting(outlined.definitions, budget)
        return TextResult(text, path, note=joined_notes(outlined.said, cut))
    openings = _paragraph_openings(corpus.content(number))
    text, cut = _cut(openings, budget)
    said = f"no definition or heading found in {path}; these lines open its paragraphs"
    if not openings:
        said = f"{path} has no definition, heading or text"
    return TextResult(text, path, note=joined_notes(outlined.said, said, cut))


def _fitting(definitions: Sequence[Definition], budget: int) -> tuple[str, str | None]:
    """Return the most that fits, and what must be said of the rest."""
    total = len(definitions)
    plain = _plain_lengths(definitions)
    deepest = len(plain) - 1
    tries = [(deepest, True, True), (deepest, True, False)]
    if sum(_plain_length(one) for one in definitions) > budget:
        tries.clear()
    # A hostile text nests thousands of levels: those that cannot fit are not written out.
    tries += [(depth, False, False) for depth in range(deepest, 0, -1) if plain[depth] <= budget]
    lines: list[str] = []
    for depth, with_minor, with_docs in [*tries, (0, False, False)]:
        kept = [one.depth <= depth and (with_minor or not _is_minor(one)) for one in definitions]
        lines = list(_entries(definitions, kept, with_docs))
        if sum(map(len, lines)) + len(lines) - 1 <= budget and lines:
            return "\n".join(lines), _said(sum(kept), total, budget)
    text, _ = _cut(lines, budget)
    return text, _said(text.count("\n") + 1 if text else 0, total, budget)


def _plain_lengths(definitions: Sequence[Definition]) -> list[int]:
    """Return for each depth what its entries and those further out take, minor ones left out."""
    lengths = [0] * (max(one.depth for one in definitions) + 1)
    for one in definitions:
        if not _is_minor(one):
            lengths[one.depth] += _plain_length(one)
    return list(accumulate(lengths))


def _plain_length(one: Definition) -> int:
    return len(_INDENT) * one.depth + len(one.signature)


def _is_minor(one: Definition) -> bool:
    return one.kind in MINOR_KINDS


def _entries(
    definitions: Sequence[Definition], kept: Sequence[bool], with_docs: bool
) -> Iterator[str]:
    """Yield the line of each definition that is kept, with how many it hides."""
    at = 0
    while at < len(definitions):
        one = definitions[at]
        at += 1
        if not kept[at - 1]:
            continue
        hidden = 0
        below = at
        while below < len(definitions) and definitions[below].depth > one.depth:
            # What a kept line hides is told there, not again further out.
            if kept[below]:
                break
            hidden += 1
            below += 1
        entry = f"{one.line}: {_INDENT * one.depth}{one.signature}"
        if with_docs and one.doc:
            entry += f"  # {one.doc}"
        yield f"{entry} [+{hidden}]" if hidden else entry


def _cut(lines: Sequence[str], budget: int) -> tuple[str, str | None]:
    """Return the first lines that fit, and what must be said of the others."""
    count = fitting_count(lines, budget)
    return "\n".join(lines[:count]), _said(count, len(lines), budget)


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
