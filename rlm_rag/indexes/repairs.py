"""What is blanked of a text before its grammar reads it, so that the grammar can.

Whatever is blanked becomes spaces, so that all offsets and lines stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# A macro between the keyword and the name, as in `class EXPORT Name {`.
_MACRO = re.compile(
    rb"[ \t\n;](?:class|struct|union|enum)[ \t\n]+"
    rb"((?:[A-Z_][A-Z0-9_]{2,60}(?:\([^()\n]{0,100}\))?[ \t\n]+){1,3})"
    rb"(?=[A-Za-z_][\w:]{0,200}[ \t\n]*(?:final\b[ \t\n]*)?[:{<;])"
)
_BEFORE_MACROS = (b"class", b"struct", b"union", b"enum")
# What a compiler is told beside the language; begins with a literal, which is found fast.
_ATTRIBUTE = re.compile(
    rb"__(?:attribute__[ \t]*\(\([^\n]{0,200}?\)\)|declspec[ \t]*\([^()\n]{0,100}\)"
    rb"|(?:inline|inline__|restrict|extension__|cdecl|stdcall|fastcall|thread)\b)"
)
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
}


_BLANKS = bytes(byte if byte == ord("\n") else ord(" ") for byte in range(256))


def without_macros(text: bytes) -> bytes:
    """Blank what stands in declarations of C and C++ and is of a macro or a compiler."""
    found = list(_macros(text))
    if found:
        text = _blanked(text, found)
    return _ATTRIBUTE.sub(lambda match: match[0].translate(_BLANKS), text)


def _macros(text: bytes) -> Iterator[tuple[int, int]]:
    # A pattern would try each white space of the text, which takes three times as long.
    for keyword in _BEFORE_MACROS:
        at = text.find(keyword, 1)
        while at > 0:
            if match := _MACRO.match(text, at - 1):
                yield match.span(1)
            at = text.find(keyword, at + len(keyword))


def branches(text: bytes, language: str) -> tuple[bytes, list[tuple[int, int]]]:
    """Return a text with the first branch of each conditional alone, and where the others lie.

    Each of these starts with a line feed and ends with one. Of `#if 0`, and in `c` of what is
    for C++ alone, the first counts as another.
    """
    hidden: list[tuple[int, int]] = []
    others: list[tuple[int, int]] = []
    # Of each open conditional: whether its present branch is the first, and whether that came.
    stack: list[tuple[bool, bool]] = []
    at = 0
    # With the line feed before the text, a directive starts where its line does.
    for match in _DIRECTIVE.finditer(b"\n" + text):
        start, end = match.start(), match.end() - 1
        if not all(is_first for is_first, _ in stack):
            others.append((at, start))
        hidden.append((start, end))
        at = end
        _step(match, stack, _NEVER[language])
    if not all(is_first for is_first, _ in stack):
        others.append((at, len(text)))
    others = [(start, end) for start, end in others if not text[start:end].isspace()]
    return _blanked(text, hidden + others), others


def branch_end(text: bytes, at: int) -> int:
    """Return where the branch of a conditional ends in which an offset lies."""
    match = _DIRECTIVE.search(text, at)
    return match.start() + 1 if match else len(text)


def _blanked(text: bytes, spans: list[tuple[int, int]]) -> bytes:
    blanked = bytearray(text)
    for start, end in spans:
        blanked[start:end] = text[start:end].translate(_BLANKS)
    return bytes(blanked)


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
