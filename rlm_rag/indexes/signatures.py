"""What a definition says of itself: its signature as written, its documentation's first line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from rlm_rag.indexes.skeleton import MAX_DOC_CHARS, MAX_SIGNATURE_CHARS

_SIGNATURE_BYTES = 1000
_DOC_BYTES = 2000
_DOC_LINES = 60

_BRACKETS = re.compile(rb"[()]|\"(?:[^\"\\\n]|\\.){0,400}\"|'(?:[^'\\\n]|\\.){0,400}'")
_MODIFIERS = re.compile(rb"[ \t]*(?:[\w@$]+[ \t]+)*")
_ATTRIBUTE = re.compile(rb"\s*(?:@(?!interface\b)[\w.:]+|#?!?\[)")
_STRING = re.compile(rb"\s*[rRuUbB]{0,2}(\"\"\"|'''|\"|')[ \t]*(?:\\\n)?\s*([^\n]*)")
_IN_MODULE = re.compile(rb"do\s+@moduledoc[ \t]+(?:~[sS])?" + _STRING.pattern)
# What may stand before and behind the words of a comment's line.
_MARKS_BEFORE, _MARKS_BEHIND = "/*#;%!-|( ", " */)=-#"
_WORD = re.compile(r"\w")
_ATTRIBUTE_LINE = re.compile(rb"@|#!?\[|\[|\)")
# What a tag of documentation names is a word of its text.
_NAMING_TAG = re.compile(rb"<\w{1,20}\s[^<>\"]{0,40}\"(?:\w:)?([^<>\"\n]{1,200})\"\s*/>")
_TAG = re.compile(rb"</?[a-z]\w{0,20}(?:\s[^<>\n]{0,200})?/?>")
# Behind one of these another definition begins on the same line, or ends.
_SAME_LINE = re.compile(rb"[{;]")
_BEHIND = re.compile(rb"[ \t]*(?:(;)|\})")


def signature(
    text: bytes, start: int, name_end: int, body: int, *, end: int = -1, last: int = -1
) -> str:
    """Return what stands from a definition's start to its body, on one line, at most 200 long.

    `body` is where it begins, or -1: then the signature ends with the line, or with the list of
    parameters that opens in it; or at the latest at `last`, where that is given. Where a definition
    that ends at `end` is followed by a semicolon or a closing brace, it ends there.
    """
    line = text.rfind(b"\n", 0, start) + 1
    # Blanks are no part of it, and most have nothing else before them.
    if line < start and not text[line:start].isspace() and _MODIFIERS.fullmatch(text, line, start):
        start = line
    before = text[start : min(name_end, start + _SIGNATURE_BYTES)]
    if b"@" in before or b"[" in before:
        start = _after_attributes(text, start, name_end)
    if body < 0:
        body = _line_end(text, name_end, last)
        if name_end < end < body:
            body = _behind(text, end, body)
    written = text[start : min(body, start + _SIGNATURE_BYTES)].decode("utf-8", "replace")
    shown = " ".join(written.split()).removesuffix("{").rstrip()
    return shown if len(shown) <= MAX_SIGNATURE_CHARS else shown[: MAX_SIGNATURE_CHARS - 1] + "…"


def _after_attributes(text: bytes, start: int, name_end: int) -> int:
    """Return where the decorators, annotations and attributes of a definition end."""
    while match := _ATTRIBUTE.match(text, start, name_end):
        end = match.end()
        if text.startswith(b"(", end):
            end = _closing(text, end)
        elif text.startswith(b"[", end - 1):
            end = text.find(b"]", end) + 1
            end += text.startswith(b"]", end)
        if not start < end < name_end or len(text[end:name_end].split()) < 2:
            # It marks nothing: it is the definition, as `@type t` in Elixir.
            return start
        start = end
    return start


def _closing(text: bytes, opening: int) -> int:
    """Return the offset after the parenthesis that closes the one at `opening`, or -1."""
    depth = 0
    for match in _BRACKETS.finditer(text, opening, opening + _SIGNATURE_BYTES):
        depth += (match[0] == b"(") - (match[0] == b")")
        if depth == 0:
            return match.end()
    return -1


def _line_end(text: bytes, at: int, last: int) -> int:
    end = text.find(b"\n", at)
    end = end if end >= 0 else len(text)
    if last >= 0:
        return min(end, last)
    opening = text.find(b"(", at, end)
    closing = _closing(text, opening) if opening >= 0 else -1
    if closing <= end:
        return end
    after = text.find(b"\n", closing)
    return after if after >= 0 else len(text)


def _behind(text: bytes, end: int, line_end: int) -> int:
    """Return where a definition ends that ends before its line does, or where the line does."""
    if text.startswith(b";", end - 1):
        return end
    match = _BEHIND.match(text, end, line_end)
    if match is None:
        return line_end
    return match.end() if match[1] else end


def begins_line(text: bytes, line: int, start: int) -> bool:
    """Whether what starts there is no part of a definition that begins before it on its line.

    `line` is where that line starts.
    """
    if start - line > _SIGNATURE_BYTES:
        return False
    before = text[line:start]
    return not _SAME_LINE.search(before) and before.count(b"(") <= before.count(b")")


def doc_inside(text: bytes, body: int) -> str:
    """Return the first line of the string that a body begins with, or nothing."""
    return _doc_in(_STRING, text, body)


def doc_of_module(text: bytes, body: int) -> str:
    """Return the first line of what a module of Elixir says of itself where its body begins."""
    return _doc_in(_IN_MODULE, text, body)


def _doc_in(string: re.Pattern[bytes], text: bytes, body: int) -> str:
    match = string.match(text, body, body + _DOC_BYTES)
    if match is None:
        return ""
    quotes, line = match.groups()
    return _shown(line.partition(quotes)[0])


def doc_above(lines: Sequence[bytes], row: int, comment: bytes, *, tagged: bool = False) -> str:
    """Return the first line of the comment that ends right above a row, or nothing.

    Of a `tagged` one without its tags: the first that has words beside them.
    """
    above = lines[row - 1].strip() if row else b""
    begins = _comment(comment)
    # Most have code above them, which this tells in a third of the time.
    if not (_ATTRIBUTE_LINE.match(above) or above.endswith(b"*/") or begins.match(above)):
        return ""
    first, last = comment_rows(lines, row, comment)
    for line in lines[first:last]:
        match = begins.match(line)
        words = line[match.end() :] if match else line
        shown = _shown(_untagged(words[:_DOC_BYTES]) if tagged else words)
        if _WORD.search(shown):
            return shown
    return ""


def doc_quoted(lines: Sequence[bytes], row: int, opening: bytes) -> str:
    """Return the first line of the string that ends above a row, or attributes there, or nothing.

    `opening` matches what stands before it on its line.
    """
    begins = _quoted(opening)
    least = max(0, row - _DOC_LINES)
    last = row - 1
    while last >= least and lines[last].lstrip().startswith(b"@") and not begins.match(lines[last]):
        last -= 1
    if last < least or not lines[last].rstrip().endswith(b'"'):
        return ""
    at = last
    if lines[last].strip() == b'"""':
        at -= 1
        while at >= least and b'"""' not in lines[at]:
            at -= 1
    match = begins.match(lines[at]) if at >= least else None
    if match is None or (at < last and match[1] != b'"""'):
        return ""
    said = (match[2].rstrip().removesuffix(match[1]), *lines[at + 1 : last])
    shown = (_cut(_words(line)) for line in said)
    return next((text for text in shown if _WORD.search(text)), "")


def comment_text(lines: Sequence[bytes]) -> str:
    """Return the words of a comment, line by line, without its marks."""
    return "\n".join(map(_plain, lines))


def comment_rows(lines: Sequence[bytes], row: int, comment: bytes) -> tuple[int, int]:
    """Return the rows of the comment that ends right above a row, or above attributes there.

    The second is the row behind it; both are the same where there is none, or only one of more
    than 60 lines.
    """
    at = row - 1
    least = max(0, row - _DOC_LINES)
    while at >= least and _ATTRIBUTE_LINE.match(lines[at].lstrip()):
        at -= 1
    last = at + 1
    if at >= least and lines[at].rstrip().endswith(b"*/"):
        while at >= least:
            if lines[at].lstrip().startswith(b"/*"):
                return at, last
            at -= 1
        return last, last
    begins = _comment(comment)
    while at >= least and begins.match(lines[at]):
        at -= 1
    return at + 1, last


def _untagged(line: bytes) -> bytes:
    return _TAG.sub(b"", _NAMING_TAG.sub(rb"\1", line)) if b"<" in line else line


@cache
def _comment(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"[ \t]*(?:" + pattern + rb")")


@cache
def _quoted(opening: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"\s*(?:" + opening + rb")(\"\"\"|\")(.*)")


def _shown(line: bytes) -> str:
    return _cut(_plain(line))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_DOC_CHARS else text[: MAX_DOC_CHARS - 1] + "…"


def _plain(line: bytes) -> str:
    return _words(line).lstrip(_MARKS_BEFORE).rstrip(_MARKS_BEHIND)


def _words(line: bytes) -> str:
    return " ".join(line[:_DOC_BYTES].decode("utf-8", "replace").split())
