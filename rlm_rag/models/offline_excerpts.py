"""Which lines the offline policy reads, and which of them it shows."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rlm_rag.models.offline_clues import is_stop_word, stems_of
from rlm_rag.models.offline_evidence import Definition, Evidence, Mention, Window

MIN_EXCERPT_LINES = 6
MAX_EXCERPT_LINES = 14
MAX_EXCERPT_CHARS = 1200
MAX_LINE_CHARS = 400
# A quote shorter than this proves no place (docs/design.md, the citation check).
MIN_QUOTE_CHARS = 20
EXCERPTS_OF_FILES = (2, 1, 1)
# Of the files after the first, only those are shown that come near it.
STRONG_SHARE = 0.6
LINES_BEFORE_MATCH = 2
LINES_BEFORE_DEFINITION = 2
LINES_AFTER_DEFINITION = 37
LINES_AFTER_CALL = 3
# What one more line of an excerpt must be worth, as a share of a term seen once.
LINE_COST = 0.04

# In an answer, a quoted `a/b.py:3` would be checked as a place that the answer itself cites.
LIKE_CITATION = re.compile(r"[/.]\S*(?::L?|#L)\d|#(?:page|sheet|cell|slide)=")
_NUMBERED = re.compile(r"[ \t]*(\d+): ?(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """Lines of a document to read."""

    path: str
    line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a document as they stand there; only an excerpt of one line may be a part of it.

    `terms` are the stems of the question that it holds.
    """

    path: str
    line: int
    end_line: int
    text: str
    terms: frozenset[str]


def choose_places(evidence: Evidence, ranked: Mapping[str, float]) -> list[Place]:
    """Return what to read of the best files: definitions of the names asked for, best windows.

    `ranked` maps each path to its score, best first.
    """
    places: list[Place] = []
    best = max(ranked.values(), default=0.0)
    strong = [path for path, score in ranked.items() if score >= STRONG_SHARE * best]
    # Who calls it is told by nothing else.
    if calling := {found.path for found in evidence.definitions if found.called}:
        strong = [path for path in ranked if path in calling]
    for path, wanted in zip(strong, EXCERPTS_OF_FILES, strict=False):
        after = LINES_AFTER_CALL if calling else LINES_AFTER_DEFINITION
        found = [
            Place(path, max(1, line - LINES_BEFORE_DEFINITION), line + after)
            for line in _lines_of_names(evidence, path)
        ]
        windows = [window for window in evidence.windows if window.path == path]
        windows.sort(key=lambda window: (window.query, -window.score, window.line))
        found += [Place(path, window.line, window.end_line) for window in windows]
        places += _apart(found or [Place(path, 1, MAX_EXCERPT_LINES)])[:wanted]
    return places


def _lines_of_names(evidence: Evidence, path: str) -> list[int]:
    defined = [found.line for found in evidence.definitions if found.path == path]
    mentioned = [found.line for found in evidence.mentions if found.path == path]
    return defined or mentioned[:1]


def _apart(places: Sequence[Place]) -> list[Place]:
    """Return the places without those whose middle lies in an earlier one."""
    apart: list[Place] = []
    for place in places:
        middle = (place.line + place.end_line) // 2
        if not any(kept.line <= middle <= kept.end_line for kept in apart):
            apart.append(place)
    return apart


def choose_excerpts(
    evidence: Evidence, ranked: Mapping[str, float], terms: Mapping[str, str]
) -> list[Excerpt]:
    """Return the best excerpt of each place that was read, in the order of the files.

    Where reading failed, the lines that the search showed stand in for it.
    """
    weights = _weights(evidence, terms)
    excerpts: list[Excerpt] = []
    places = choose_places(evidence, ranked)
    for path in dict.fromkeys(place.path for place in places):
        of_file: list[Excerpt] = []
        for place in (place for place in places if place.path == path):
            excerpt = _best_excerpt(evidence, place, weights)
            if excerpt is not None and of_file and _has_call(evidence, place):
                excerpt = _behind(excerpt, of_file[-1].end_line)
            if excerpt is not None and not _overlaps(excerpt, of_file):
                of_file.append(excerpt)
        excerpts += of_file or _from_snippets(evidence, path, weights)
    return excerpts


def _has_call(evidence: Evidence, place: Place) -> bool:
    return any(found.called and found.path == place.path for found in evidence.definitions)


def _behind(excerpt: Excerpt, line: int) -> Excerpt | None:
    """Return the lines of an excerpt behind one that another shows: calls may stand close by."""
    lines = excerpt.text.split("\n")
    first = max(0, line + 1 - excerpt.line)
    while first < len(lines) and not lines[first].strip():
        first += 1
    if first >= len(lines):
        return None
    return replace(excerpt, line=excerpt.line + first, text="\n".join(lines[first:]))


def _overlaps(excerpt: Excerpt, others: Sequence[Excerpt]) -> bool:
    return any(
        excerpt.line <= other.end_line and other.line <= excerpt.end_line for other in others
    )


def _weights(evidence: Evidence, terms: Mapping[str, str]) -> dict[str, float]:
    """Return what each term is worth: the more, the fewer of the lines read hold it."""
    lines = [text for of_file in evidence.lines.values() for text in of_file.values()]
    holding = Counter(stem for text in lines for stem in stems_of(text) & terms.keys())
    return {stem: 1 + math.log((1 + len(lines)) / (1 + holding[stem])) for stem in terms}


def _best_excerpt(evidence: Evidence, place: Place, weights: Mapping[str, float]) -> Excerpt | None:
    read = evidence.lines.get(place.path, {})
    numbers = [number for number in range(place.line, place.end_line + 1) if number in read]
    found = {number: stems_of(read[number]) & weights.keys() for number in numbers}
    all_named: list[Definition | Mention] = [*evidence.definitions, *evidence.mentions]
    for named in all_named:
        # No stem of a line tells of it.
        if named.path == place.path and named.line in found and is_stop_word(named.name):
            found[named.line] |= {named.name} & weights.keys()
    best: tuple[float, int, int] | None = None
    for first in numbers:
        for last in _ends(read, first, place.end_line):
            terms = set().union(*(found[number] for number in range(first, last + 1)))
            worth = sum(weights[stem] for stem in terms) - LINE_COST * (last - first)
            if best is None or worth > best[0] + 1e-9:
                best = (worth, first, last)
    if best is None or not any(found[number] for number in range(best[1], best[2] + 1)):
        return None
    return _excerpt(place.path, read, *_widened(read, best[1], best[2]), weights)


def _ends(read: Mapping[int, str], first: int, limit: int) -> list[int]:
    """Return the lines that an excerpt from `first` may end at, within its bounds."""
    ends: list[int] = []
    chars = 0
    for number in range(first, min(limit, first + MAX_EXCERPT_LINES - 1) + 1):
        text = read.get(number)
        chars += 0 if text is None else len(text)
        if text is None or LIKE_CITATION.search(text):
            break
        if ends and (_is_cut(text) or chars > MAX_EXCERPT_CHARS):
            break
        ends.append(number)
        if _is_cut(text):
            break
    return ends


def _widened(read: Mapping[int, str], first: int, last: int) -> tuple[int, int]:
    """Return the lines with their neighbours, until they can be read and prove the place."""
    earliest = first - LINES_BEFORE_MATCH
    while last - first + 1 < MIN_EXCERPT_LINES or _chars(read, first, last) < MIN_QUOTE_CHARS:
        follows = last + 1 in _ends(read, first, last + 1)
        precedes = first - 1 in read and last in _ends(read, first - 1, last)
        if precedes and (first > earliest or not follows):
            first -= 1
        elif follows:
            last += 1
        else:
            break
    while first < last and not read[first].strip():
        first += 1
    while first < last and not read[last].strip():
        last -= 1
    return first, last


def _chars(read: Mapping[int, str], first: int, last: int) -> int:
    return len(" ".join(" ".join(read[number] for number in range(first, last + 1)).split()))


def _excerpt(
    path: str, read: Mapping[int, str], first: int, last: int, weights: Mapping[str, float]
) -> Excerpt:
    text = "\n".join(read[number] for number in range(first, last + 1))
    if first == last and _is_cut(text):
        text = _around_terms(text, weights)
    return Excerpt(path, first, last, text, frozenset(stems_of(text) & weights.keys()))


def _is_cut(text: str) -> bool:
    return len(text) >= MAX_LINE_CHARS


def _around_terms(text: str, weights: Mapping[str, float]) -> str:
    """Return a long line from the first word on that the question holds."""
    for word in re.finditer(r"\w+", text):
        if stems_of(word[0]) & weights.keys():
            return text[word.start() :] if len(text) - word.start() >= MAX_LINE_CHARS // 2 else text
    return text


def _from_snippets(evidence: Evidence, path: str, weights: Mapping[str, float]) -> list[Excerpt]:
    """Return the best line that the search showed of a document."""
    read: dict[int, str] = {}
    for window in evidence.windows:
        if window.path == path:
            read |= _snippet_lines(window)
    worth = {
        number: sum(weights[stem] for stem in stems_of(text) & weights.keys())
        for number, text in read.items()
        if len(" ".join(text.split())) >= MIN_QUOTE_CHARS
    }
    best = max(worth, key=lambda number: (worth[number], -number), default=None)
    return [] if best is None else [_excerpt(path, read, best, best, weights)]


def _snippet_lines(window: Window) -> dict[int, str]:
    matches = (_NUMBERED.fullmatch(line) for line in window.snippet.split("\n"))
    return {int(match[1]): match[2].strip("\u2026") for match in matches if match is not None}
