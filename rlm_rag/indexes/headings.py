"""The headings of a document in Markdown, reStructuredText, AsciiDoc, Org or plain text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rlm_rag.lines import split_lines_bytes

MAX_TITLE_CHARS = 200

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*")
_NOT_SETEXT_TITLE = re.compile(r"[ \t]*(?:[>*+|-]|\d+[.)]|    |#|<)")
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*")
_EQUALS = re.compile(r"(={1,6})[ \t]+(\S.*)")
_STARS = re.compile(r"(\*{1,8})[ \t]+(\S.*)")
_NUMBERED = re.compile(
    r"(?:(?:chapter|part|section|article|appendix|book)\s+[\divxlc]+\b.{0,80}"
    r"|(\d{1,3}(?:\.\d{1,3}){0,5})\.?[ \t]+[^\W\d_].{0,80})",
    re.IGNORECASE,
)
_MAX_CAPITALS_CHARS = 80


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; `parents` are the titles of the sections that hold it, outermost first."""

    line: int
    title: str
    parents: tuple[str, ...]


def headings(data: bytes, markup: str) -> list[Heading]:
    """Return the headings of a text, in order."""
    lines = [line.decode("utf-8", "replace") for line in split_lines_bytes(data)]
    found: list[Heading] = []
    enclosing: list[tuple[int, str]] = []
    for line, level, title in _FINDERS[markup](lines):
        while enclosing and enclosing[-1][0] >= level:
            enclosing.pop()
        shown = title.strip()[:MAX_TITLE_CHARS]
        found.append(Heading(line, shown, tuple(parent for _, parent in enclosing)))
        enclosing.append((level, shown))
    return found


def _markdown(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    fence = ""
    start = _front_matter_lines(lines)
    for at in range(start, len(lines)):
        line = lines[at]
        opened = _FENCE.fullmatch(line)
        if fence:
            closes = opened and opened[1].startswith(fence) and not opened[2].strip()
            fence = "" if closes else fence
            continue
        if opened and not (opened[1][0] == "`" and "`" in opened[2]):
            fence = opened[1]
            continue
        if (atx := _ATX.fullmatch(line)) and atx[2]:
            yield at + 1, len(atx[1]), atx[2]
        elif (under := _SETEXT.fullmatch(line)) and at > start:
            title = lines[at - 1]
            if title.strip() and not _NOT_SETEXT_TITLE.match(title):
                yield at, 1 if under[1][0] == "=" else 2, title


def _front_matter_lines(lines: list[str]) -> int:
    """Return how many lines a YAML block at the very start takes."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    for at in range(1, min(len(lines), 200)):
        if lines[at].rstrip() in ("---", "..."):
            return at + 1
    return 0


def _rest(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    """Levels come in the order in which the adornments first occur, as docutils has it."""
    levels: dict[tuple[str, bool], int] = {}
    for at in range(1, len(lines)):
        under = _ADORNMENT.fullmatch(lines[at])
        title = lines[at - 1]
        if under is None or not title.strip() or _ADORNMENT.fullmatch(title):
            continue
        over = at > 1 and _ADORNMENT.fullmatch(lines[at - 2])
        overlined = bool(over) and lines[at - 2][0] == lines[at][0]
        if title[0].isspace() and not overlined:
            continue
        if len(lines[at].rstrip()) < min(len(title.strip()), 4):
            continue
        style = (under[1], overlined)
        yield at, levels.setdefault(style, len(levels) + 1), title


def _marked(pattern: re.Pattern[str]) -> Callable[[list[str]], Iterator[tuple[int, int, str]]]:
    def find(lines: list[str]) -> Iterator[tuple[int, int, str]]:
        for at, line in enumerate(lines, start=1):
            if match := pattern.fullmatch(line):
                yield at, len(match[1]), match[2]

    return find


def _plain(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    """Numbered lines, lines of capitals, and underlined lines, alone between blank lines."""
    for at, line in enumerate(lines):
        title = line.strip()
        if not title or (at > 0 and lines[at - 1].strip()):
            continue
        following = lines[at + 1].strip() if at + 1 < len(lines) else ""
        if following and _ADORNMENT.fullmatch(following):
            yield at + 1, 1, title
        elif following:
            continue
        elif match := _NUMBERED.fullmatch(title):
            yield at + 1, 1 + (match[1] or "").count("."), title
        elif title.isupper() and len(title) <= _MAX_CAPITALS_CHARS:
            yield at + 1, 1, title


_FINDERS: dict[str, Callable[[list[str]], Iterator[tuple[int, int, str]]]] = {
    "markdown": _markdown,
    "rest": _rest,
    "asciidoc": _marked(_EQUALS),
    "org": _marked(_STARS),
    "plain": _plain,
}
