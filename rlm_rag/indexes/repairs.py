"""What is blanked of a text before its grammar reads it, so that the grammar can.

Whatever is blanked becomes spaces, so that all offsets and lines stay as they are.
"""

from __future__ import annotations

import re

_NOT_LINE_FEED = re.compile(rb"[^\n]+")
# A macro between the keyword and the name, as in `class EXPORT Name {`.
_MACRO = re.compile(
    rb"[ \t\n;](?:class|struct|union|enum)[ \t\n]+"
    rb"((?:[A-Z_][A-Z0-9_]{2,60}(?:\([^()\n]{0,100}\))?[ \t\n]+){1,3})"
    rb"(?=[A-Za-z_][\w:]{0,200}[ \t\n]*(?:final\b[ \t\n]*)?[:{<;])"
)
# What a compiler is told beside the language; begins with a literal, which is found fast.
_ATTRIBUTE = re.compile(
    rb"__(?:attribute__[ \t]*\(\([^\n]{0,200}?\)\)|declspec[ \t]*\([^()\n]{0,100}\)"
    rb"|(?:inline|inline__|restrict|extension__|cdecl|stdcall|fastcall|thread)\b)"
)
_DIRECTIVE = re.compile(
    rb"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|elifdef|else|endif)\b(?:\\\n|[^\n])*", re.MULTILINE
)
# Where the first branch is not read: disabled text, and in C what is of C++.
_NEVER = {
    "c": re.compile(
        rb"[ \t]*#[ \t]*(?:if[ \t]+0\b|if(?:def)?[ \t(]+[^\n!]{0,40}\b__cplusplus)[^\n]*"
    ),
    "cpp": re.compile(rb"[ \t]*#[ \t]*if[ \t]+0\b[^\n]*"),
}


def without_macros(text: bytes) -> bytes:
    """Blank what stands in declarations of C and C++ and is of a macro or a compiler."""
    text = _MACRO.sub(lambda match: match[0].replace(match[1], _blank(match[1])), text)
    return _ATTRIBUTE.sub(lambda match: _blank(match[0]), text)


def branches(text: bytes, language: str) -> tuple[bytes, bytes | None]:
    """Return a text with the first branch of each conditional, and one with only the others.

    The second is None where no conditional has another. Of `#if 0`, and in `c` of what is for C++
    alone, the first counts as another.
    """
    first: list[bytes] = []
    others: list[bytes] = []
    # Of each open conditional: whether its present branch is the first, and whether that came.
    stack: list[tuple[bool, bool]] = []
    at = 0
    is_split = False
    for match in _DIRECTIVE.finditer(text):
        is_split |= _divide(text[at : match.start()], stack, first, others)
        blank = _blank(match[0])
        first.append(blank)
        others.append(blank)
        at = match.end()
        _step(match, stack, _NEVER[language])
    if at == 0:
        return text, None
    is_split |= _divide(text[at:], stack, first, others)
    return b"".join(first), b"".join(others) if is_split else None


def branch_end(text: bytes, at: int) -> int:
    """Return where the branch of a conditional ends in which an offset lies."""
    match = _DIRECTIVE.search(text, at)
    return match.start() if match else len(text)


def _divide(
    piece: bytes, stack: list[tuple[bool, bool]], first: list[bytes], others: list[bytes]
) -> bool:
    """Append a piece to where it is shown, blanked to the other; return if to the others."""
    shown = all(is_first for is_first, _ in stack)
    first.append(piece if shown else _blank(piece))
    others.append(_blank(piece) if shown else piece)
    return not shown


def _step(
    directive: re.Match[bytes], stack: list[tuple[bool, bool]], never: re.Pattern[bytes]
) -> None:
    word = directive[1]
    if word.startswith(b"if"):
        is_first = never.fullmatch(directive[0]) is None
        stack.append((is_first, is_first))
    elif stack and word == b"endif":
        stack.pop()
    elif stack:
        _, came = stack[-1]
        stack[-1] = (not came, True)


def _blank(text: bytes) -> bytes:
    return _NOT_LINE_FEED.sub(lambda run: b" " * len(run[0]), text)
