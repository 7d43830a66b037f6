"""What is changed of a text so that its grammar can read it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from rlm_rag.indexes.body_rows import SKIPPED_OF_KOTLIN
from rlm_rag.indexes.cuts import Cut
from rlm_rag.indexes.macros import blanked

# Begins with the line feed before it, which is found fast.
_DIRECTIVE = re.compile(
    rb"\n[ \t]*#[ \t]*(if|ifdef|ifndef|elif|elifdef|else|endif)\b(?:\\\n|[^\n])*"
)
# Where the first branch is not read: disabled text, and in C what is of C++.
_NEVER = {
    "c": re.compile(
        rb"\n[ \t]*#[ \t]*(?:if[ \t]+0\b|if(?:def)?[ \t(]+[^\n!]{0,40}\b__cplusplus)[^\n]*"
    ),
    "cpp": re.compile(rb"\n[ \t]*#[ \t]*if[ \t]+0\b[^\n]*"),
    "csharp": re.compile(rb"\n[ \t]*#[ \t]*if[ \t]+false\b[^\n]*"),
}
# What may follow a member of a class on its line, of another.
_NEXT_MEMBER = re.compile(
    rb"[ \t]++(?:fun|va[lr]|class|interface|object|companion|init|constructor|override|open|private"
    rb"|public|internal|protected|abstract|data|enum|sealed|inner|suspend)\b"
)
_BEFORE_ACCESSOR = (
    rb"(;)(?=[ \t]*+(?:(?:private|protected|internal|public|inline|override)[ \t]++){0,3}[gs]et\b)"
)
# A type of another module, behind which a grammar reads no arguments of the type.
_OF_MODULE = re.compile(rb"import\((?:\"[^\"\n]{1,300}\"|'[^'\n]{1,300}')\)\.(?=[A-Z_$])")
_BEFORE_END_BYTES = 100
# What stands before a brace that ends a line, or nothing.
_NO_MEMBER = (b"{", b";", b"\n", b"")


@dataclass(frozen=True, slots=True)
class _Open:
    """A conditional, whether its present branch is the first, and whether that came."""

    since: int
    is_first: bool
    came: bool


@dataclass(frozen=True, slots=True)
class Branch:
    """A part of a conditional's branch other than its first, with line feeds at both ends.

    What starts from `since` to before it belongs to other branches, and holds nothing of it.
    """

    start: int
    end: int
    since: int


def branches(text: bytes, language: str) -> tuple[bytes, list[Branch]]:
    """Return a text with the first branch of each conditional alone, and the others.

    Of `#if 0`, and in `c` of what is for C++ alone, the first counts as another. What the first
    branch opens, and all share, holds what is in the others.
    """
    hidden, others = _conditionals(text, language)
    others = [replace(one, since=one.start) for one in others]
    return blanked(text, hidden + [(one.start, one.end) for one in others]), others


def _conditionals(text: bytes, language: str) -> tuple[list[tuple[int, int]], list[Branch]]:
    """Return where the directives lie, and the branches other than the first."""
    hidden: list[tuple[int, int]] = []
    others: list[Branch] = []
    stack: list[_Open] = []
    at = 0
    # With the line feed before the text, a directive starts where its line does.
    for match in _DIRECTIVE.finditer(b"\n" + text):
        start, end = match.start(), match.end() - 1
        others += _another(text, at, start, stack)
        hidden.append((start, end))
        at = end
        _step(match, stack, _NEVER[language])
    return hidden, others + _another(text, at, len(text), stack)


def _another(text: bytes, start: int, end: int, stack: Sequence[_Open]) -> list[Branch]:
    since = next((one.since for one in stack if not one.is_first), None)
    return [] if since is None or text[start:end].isspace() else [Branch(start, end, since)]


def readable(text: bytes, language: str) -> bytes:
    """Return a text with blanks for what its grammar cannot read, and no definition needs."""
    if language not in ("typescript", "tsx") or b"import(" not in text:
        return text
    return blanked(text, (match.span() for match in _OF_MODULE.finditer(text)))


def repaired(text: bytes, language: str) -> tuple[Cut, list[Branch]] | None:
    """Return what a grammar may read where it cannot read the text itself; None where that is all.

    In C# each conditional has its first branch alone, where two may open what ends once; the other
    branches are returned beside it. In Kotlin members of a class that share a line are parted, and
    a property is not from its accessors.
    """
    if language == "csharp":
        hidden, others = _conditionals(text, language)
        spans = sorted([*hidden, *((one.start, one.end) for one in others)])
        return (Cut(text, spans), others) if others else None
    if language == "kotlin":
        spans = list(_between_members(text))
        return (Cut(text, spans, b"\n"), []) if spans else None
    return None


def _between_members(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield what a line feed should stand for: the ends of members whose line goes on."""
    for match in _ends_in_kotlin().finditer(text):
        if match.lastindex is None:
            continue
        start, end = match.span()
        if match[0] == b";":
            yield start, end
            continue
        if text[max(0, start - _BEFORE_END_BYTES) : start].rstrip(b" \t")[-1:] not in _NO_MEMBER:
            yield start, start
        if _NEXT_MEMBER.match(text, end):
            yield end, end


@cache
def _ends_in_kotlin() -> re.Pattern[bytes]:
    return re.compile(b"|".join((*SKIPPED_OF_KOTLIN, rb"(\})", _BEFORE_ACCESSOR)))


def _step(directive: re.Match[bytes], stack: list[_Open], never: re.Pattern[bytes]) -> None:
    word = directive[1]
    if word.startswith(b"if"):
        is_first = never.fullmatch(directive[0]) is None
        stack.append(_Open(directive.start(), is_first, is_first))
    elif stack and word == b"endif":
        stack.pop()
    elif stack:
        last = stack[-1]
        stack[-1] = _Open(last.since, not last.came, True)
