"""Find the fenced blocks of a model's reply, whatever the code inside them holds.

A line that could close a fence may as well stand inside a string of the code. Where it does
is decided by lexing the code's strings, and confirmed by parsing; both have a budget for each
reply, so that a hostile reply costs linear time.
"""

from __future__ import annotations

import ast
import keyword
import re
import textwrap
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

LEX_BUDGET_CHARS = 8_000_000
PARSE_BUDGET_CHARS = 300_000
MAX_LATER_ENDS = 8
MAX_FENCES = 5_000
MAX_FENCE_LINES = 50_000

Kind = Literal["repl", "python", "untagged", "other"]


@dataclass(frozen=True, slots=True)
class Fence:
    """One fenced block: `start`..`end` are its offsets in the text, fences included.

    `line` is the 1-based line of the opening fence, `tag` what the model wrote after it.
    """

    kind: Kind
    tag: str
    code: str
    line: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _FenceLine:
    start: int
    end: int
    indent: str
    marks: str
    info: str
    midline: bool


@dataclass(frozen=True, slots=True)
class _End:
    """A place where a block may end: `code_end` ends its code, `resume` is where to go on."""

    index: int
    code_end: int
    resume: int
    what: Literal["closing", "opening", "text_end"]


_FENCE_LINE = re.compile(
    r"^(?P<indent>[ \t]*)(?P<marks>`{3,}|~{3,})(?P<info>[^\n]*)$"
    r"|(?P<midline>(?<=[^`~\n])(?:`{3,}|~{3,}))(?P<midtag>(?i:repl|python3?|py))[ \t]*$",
    re.MULTILINE,
)
_TAG = re.compile(r"\s*\{?\s*\.?([\w+#-]+(?:\.\d+)*)?\.?\}?")
_PYTHON_TAG = re.compile(r"(?:i?python|py)[\d.]*")
_ATTRIBUTE = re.compile(r"[\w.#-]+(?:=(?:\"[^\"]*\"|'[^']*'|[^\s\"'()]+))?|\{[^}]*\}?|[^{]*\}")
# Atomic groups, since a possessive repeat of a group overruns in CPython 3.11.2 (Debian 12's).
_STRING_OR_COMMENT = re.compile(
    r"#[^\n]*"
    r"|(?P<triple>\"\"\"|''')"
    r"|\"[^\"\\\n]*+(?>(?:\\.[^\"\\\n]*+)*)\"?"
    r"|'[^'\\\n]*+(?>(?:\\.[^'\\\n]*+)*)'?",
    re.DOTALL,
)
_TRIPLE_BODY = {
    '"""': re.compile(r'[^"\\]*+(?>(?:(?:\\.|"(?!""))[^"\\]*+)*)', re.DOTALL),
    "'''": re.compile(r"[^'\\]*+(?>(?:(?:\\.|'(?!''))[^'\\]*+)*)", re.DOTALL),
}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def parse_module(code: str) -> ast.Module | None:
    """The code's syntax tree, or None where it does not parse.

    Escapes that Python would warn about are taken as they are, without a warning.
    """

    def doubled(match: re.Match[str]) -> str:
        kept = match[1] in "\n\r\\'\""
        return match[0] if kept else "\\\\" + match[1]

    try:
        return ast.parse(_ESCAPE.sub(doubled, code))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def find_fences(text: str) -> list[Fence]:
    """The fenced blocks of `text` (line ends: LF), in order; an unclosed one ends with it.

    Only the first MAX_FENCES are found, within the first MAX_FENCE_LINES lines of marks.
    """
    return _Scanner(text).scan()


def kind_of(info: str) -> tuple[Kind, str]:
    """The kind of a block and its normalised tag, from the text after the opening fence."""
    match = _TAG.match(info)
    tag = (match[1] or "" if match else "").lower()
    if tag == "repl":
        return "repl", tag
    if _PYTHON_TAG.fullmatch(tag):
        return "python", "python"
    return ("other", tag or info.strip()[:20]) if info.strip() else ("untagged", "")


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [
            _fence_line(match) for match in islice(_FENCE_LINE.finditer(text), MAX_FENCE_LINES)
        ]
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self._lex_left = LEX_BUDGET_CHARS
        self._parse_left = PARSE_BUDGET_CHARS

    def scan(self) -> list[Fence]:
        fences: list[Fence] = []
        position = 0
        index = 0
        while index < len(self._lines) and len(fences) < MAX_FENCES:
            opening = self._lines[index]
            if opening.start < position or ("`" in opening.marks and "`" in opening.info):
                inline = self._inline(opening) if opening.start >= position else None
                if inline is not None:
                    fences.append(inline)
                    position = inline.end
                index += 1
                continue
            fence, index = self._block(index)
            fences.append(fence)
            position = fence.end
        return fences

    def _inline(self, opening: _FenceLine) -> Fence | None:
        """A whole block on one line, such as three backticks, `repl print(1)` and the closing."""
        info = opening.info.rstrip()
        kind, tag = kind_of(info)
        if kind not in ("repl", "python") or not info.endswith(opening.marks):
            return None
        words = info[: -len(opening.marks)].split(None, 1)
        if len(words) < 2 or opening.marks in words[1]:
            return None
        return Fence(kind, tag, words[1].strip(), self._line(opening), opening.start, opening.end)

    def _block(self, index: int) -> tuple[Fence, int]:
        opening = self._lines[index]
        kind, tag = kind_of(opening.info)
        first_line = _code_in_info(opening.info) if kind in ("repl", "python") else ""
        code_start = min(opening.end + 1, len(self._text))
        if kind == "other":
            end = next(self._ends(index, kind))
        else:
            end = self._choose_end(index, kind, code_start)
        code = _unindent(self._text[code_start : max(code_start, end.code_end)], opening.indent)
        if first_line:
            code = f"{first_line}\n{code}" if code else first_line
        if kind != "other":
            code = self._mended(code, opening.marks)
        line = self._line(opening)
        return Fence(kind, tag, code, line, opening.start, end.resume), end.index

    def _line(self, opening: _FenceLine) -> int:
        return bisect_right(self._newlines, opening.start - 1) + 1

    def _ends(self, index: int, kind: Kind) -> Iterator[_End]:
        """Where the block opened at `index` may end: closing fences, openings, the text's end.

        A line that opens another block cannot be Python, so it ends one that was left open.
        """
        opening = self._lines[index]
        for later in range(index + 1, len(self._lines)):
            line = self._lines[later]
            info = line.info.strip()
            if line.midline or "`" in info:
                continue
            if not info:
                if line.marks[0] == opening.marks[0] and len(line.marks) >= len(opening.marks):
                    yield _End(later + 1, line.start - 1, line.end, "closing")
            elif _opens_another(opening, line, kind):
                yield _End(later, line.start - 1, line.start, "opening")
        size = len(self._text)
        code_end = size - self._text.endswith("\n")
        yield _End(len(self._lines), code_end, size, "text_end")

    def _choose_end(self, index: int, kind: Kind, code_start: int) -> _End:
        ends = self._ends(index, kind)
        strings = self._multiline_strings(code_start)
        span = next(strings, None)
        first: _End | None = None
        for chosen in ends:
            first = first or chosen
            while span is not None and span[1] <= chosen.code_end:
                span = next(strings, None)
            if span is None or chosen.code_end < span[0] or chosen.what == "text_end":
                break
        assert first is not None
        if self._parses(code_start, chosen.code_end, index) is not False:
            return chosen
        for _, later in zip(range(MAX_LATER_ENDS), ends, strict=False):
            if later.what == "opening":
                break
            if self._parses(code_start, later.code_end, index):
                return later
        swallowed = any(
            kind_of(line.info)[0] in ("repl", "python")
            for line in self._lines[first.index : chosen.index]
        )
        return first if swallowed or chosen.what == "text_end" else chosen

    def _multiline_strings(self, start: int) -> Iterator[tuple[int, int]]:
        """Offsets of the strings of the code at `start` that hold a newline, as far as asked.

        Where the budget for lexing is spent there are none, so that the first end is taken.
        """
        position = start
        while self._lex_left > 0:
            limit = min(len(self._text), position + self._lex_left)
            match = _STRING_OR_COMMENT.search(self._text, position, limit)
            end = limit if match is None else match.end()
            if match is not None and match["triple"]:
                body = _TRIPLE_BODY[match["triple"]].match(self._text, end, limit)
                end = min(body.end() + 3, limit) if body else limit
            self._lex_left -= end - position
            if match is None:
                return
            if "\n" in self._text[match.start() : end]:
                yield match.start(), end
            position = end

    def _parses(self, start: int, end: int, index: int) -> bool | None:
        """Whether the code parses; None where the budget does not allow to find out."""
        if end - start > self._parse_left:
            return None
        self._parse_left -= max(0, end - start)
        code = _unindent(self._text[start:end], self._lines[index].indent)
        return parse_module(code) is not None

    def _mended(self, code: str, marks: str) -> str:
        """The code without what keeps it from parsing: an indentation, a fence at its end."""
        indented = code[:1] in " \t"
        closed = code.rstrip().endswith(marks)
        if not (indented or closed) or len(code) > self._parse_left:
            return code
        self._parse_left -= len(code)
        if parse_module(code) is not None:
            return code
        mended = code.rstrip().removesuffix(marks) if closed else code
        mended = textwrap.dedent(mended)
        return mended if parse_module(mended) is not None else code


def _fence_line(match: re.Match[str]) -> _FenceLine:
    if match["midline"]:
        return _FenceLine(match.start(), match.end(), "", match["midline"], match["midtag"], True)
    return _FenceLine(
        match.start(), match.end(), match["indent"], match["marks"], match["info"], False
    )


def _opens_another(opening: _FenceLine, line: _FenceLine, kind: Kind) -> bool:
    if kind == "other":
        return kind_of(line.info)[0] == "repl" and len(line.marks) >= len(opening.marks)
    # `~~~name` is an expression, so in a block of backticks only backticks open another.
    return opening.marks[0] == "~" or line.marks[0] == "`"


def _unindent(code: str, indent: str) -> str:
    first = next((line for line in code.split("\n") if line.strip()), "")
    if not indent or not first.startswith(indent):
        return code
    return "\n".join(_without(line, indent) for line in code.split("\n"))


def _without(line: str, indent: str) -> str:
    if line.startswith(indent):
        return line[len(indent) :]
    stripped = line.lstrip(" \t")
    return stripped if indent.startswith(line[: len(line) - len(stripped)]) else line


def _code_in_info(info: str) -> str:
    """Code that the model wrote on the line of the opening fence; attributes are none."""
    words = info.split(None, 1)
    if len(words) < 2 or words[0].startswith("{"):
        return ""
    rest = words[1].strip()
    if all(_ATTRIBUTE.fullmatch(word) for word in rest.split()):
        is_code = keyword.iskeyword(rest.split()[0])
    else:
        is_code = not rest.startswith("{")
    return rest if is_code else ""
