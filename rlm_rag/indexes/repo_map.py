"""The definitions that the rest of a corpus leans on most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlm_rag.indexes.definitions import definitions
from rlm_rag.indexes.kinds import Kind, kind_of
from rlm_rag.indexes.languages import language_of
from rlm_rag.indexes.requests import RepoMapRequest, TextResult
from rlm_rag.indexes.skeleton import Definition
from rlm_rag.indexes.terms import word_terms
from rlm_rag.packed import PackedCorpus

if TYPE_CHECKING:
    from rlm_rag.indexes.index import SearchIndex

_MIN_NAME_CHARS = 3
_LEFT_OUT = frozenset(("variable", "constant", "heading", "namespace", "declaration"))
# A name with many definitions says little about each of them.
_MAX_DEFINITIONS = 10
# A plain lower-case word occurs in prose as well; a member mostly within its class.
_PLAIN_WORD = 0.2
_MEMBER = 0.5


@dataclass(frozen=True, slots=True)
class _Ranked:
    weight: float
    document: int
    definition: Definition


def repo_map(
    corpus: PackedCorpus,
    index: SearchIndex,
    request: RepoMapRequest,
    focused: Sequence[str] | None,
) -> TextResult:
    """Return signatures, by file, of the definitions whose names most other files use.

    `focused` are the paths to keep to, or None for all. Test files define nothing here.
    """
    kept = None if focused is None else set(focused)
    ranked = sorted(
        _ranked(corpus, index, kept),
        key=lambda one: (-one.weight, index.paths[one.document], one.definition.line),
    )
    text, shown = _fitting(index.paths, ranked, request.budget_chars)
    note = None
    if not ranked:
        where = "" if request.focus is None else f" that bears on {request.focus!r}"
        note = f"no definition found{where}"
    elif shown < len(ranked):
        note = f"{shown} of {len(ranked)} definitions fit in budget_chars={request.budget_chars}"
    return TextResult(text, note=note)


def _ranked(corpus: PackedCorpus, index: SearchIndex, kept: set[str] | None) -> Iterable[_Ranked]:
    for number, path in enumerate(index.paths):
        if kind_of(path) is Kind.TEST or language_of(path) is None:
            continue
        if kept is not None and path not in kept:
            continue
        for one in definitions(path, bytes(corpus.content_bytes(number))):
            if one.kind in _LEFT_OUT or one.name.startswith("_"):
                continue
            if len(one.name) < _MIN_NAME_CHARS or one.depth > 1:
                continue
            homes = len(_windows_defining(index, one.name))
            if homes <= _MAX_DEFINITIONS:
                yield _Ranked(_weight(index, one) / max(1, homes), number, one)


def _weight(index: SearchIndex, one: Definition) -> float:
    """Return how many documents use a name, words of plain language counting less."""
    documents = index.postings.window_documents
    used = len({documents[window] for window in index.postings.windows_of_word(one.name.encode())})
    plain = one.name.isalpha() and one.name.islower()
    return used * (_PLAIN_WORD if plain else 1.0) * (_MEMBER if one.depth else 1.0)


def _windows_defining(index: SearchIndex, name: str) -> Sequence[int]:
    joined = word_terms(name.encode())[:1]
    return index.defined.get(joined[0], ()) if joined else ()


def _fitting(paths: Sequence[str], ranked: Sequence[_Ranked], budget: int) -> tuple[str, int]:
    """Take the best that fit, and show them by file: best file first, then by line."""
    used = 0
    chosen: dict[int, list[Definition]] = {}
    for one in ranked:
        cost = len(_entry(one.definition)) + 1
        if one.document not in chosen:
            cost += len(paths[one.document]) + 2
        if used + cost > budget + 1:
            break
        used += cost
        chosen.setdefault(one.document, []).append(one.definition)
    lines: list[str] = []
    for document, found in chosen.items():
        lines.append(f"{paths[document]}:")
        lines.extend(_entry(one) for one in sorted(found, key=lambda one: one.line))
    return "\n".join(lines), sum(map(len, chosen.values()))


def _entry(definition: Definition) -> str:
    return f"  {definition.line}: {definition.signature}"
