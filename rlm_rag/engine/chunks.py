"""A text in pieces that each fit a budget of tokens, cut where its structure allows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from rlm_rag.lines import line_starts
from rlm_rag.models.tokens import count_tokens

LEAST_BUDGET_TOKENS = 16
"""Below this a chunk could not hold one character of any script."""

# Depths of definitions and headings are smaller than these.
_PARAGRAPH = 1_000
_LINE = 2_000
# A cut is looked for in this last part of what fits, so that chunks stay large.
_SEARCHED_SHARE = 0.5
# Comments, decorators and headings that stand right above a definition belong to it.
_LEADS = ("@", "#", "//", "/*", "*", "--", ";;")
_MAX_LEAD_LINES = 30


@dataclass(frozen=True, slots=True)
class Chunk:
    """Part of a text; `line`..`end_line` (1-based, inclusive) are the lines it has part of."""

    line: int
    end_line: int
    text: str


def split(text: str, *, budget_tokens: int, borders: Sequence[tuple[int, int]] = ()) -> list[Chunk]:
    """Return consecutive chunks that together are `text`, each of at most `budget_tokens`.

    A chunk ends before the outermost of the `borders` (line, depth) in the second half of what
    would fit, else before a paragraph there, else before a line; a line that is too long alone
    is cut at a space, or anywhere.

    Raises:
        ValueError: `budget_tokens` below `LEAST_BUDGET_TOKENS`.
    """
    if budget_tokens < LEAST_BUDGET_TOKENS:
        raise ValueError(f"budget_tokens must be at least {LEAST_BUDGET_TOKENS}")
    if not text:
        return []
    starts = [*line_starts(text), len(text)]
    if count_tokens(text) <= budget_tokens:
        return [Chunk(1, len(starts) - 1, text)]
    lines = [text[begin:end] for begin, end in pairwise(starts)]
    sums = [0, *accumulate(map(count_tokens, lines))]
    ranks = _ranks(lines, borders)
    chunks: list[Chunk] = []
    first = 0
    while first < len(lines):
        fitting = bisect_right(sums, sums[first] + budget_tokens) - 1
        if fitting == first:
            pieces = _split_line(lines[first], budget_tokens)
            chunks += (Chunk(first + 1, first + 1, piece) for piece in pieces)
            first += 1
            continue
        after = _cut(ranks, sums, first, fitting)
        chunks.append(Chunk(first + 1, after, text[starts[first] : starts[after]]))
        first = after
    return chunks


def _cut(ranks: Sequence[int], sums: Sequence[int], first: int, fitting: int) -> int:
    """Return the line (from 0) that the next chunk begins with."""
    if fitting == len(ranks):
        return fitting
    half = sums[first] + (sums[fitting] - sums[first]) * _SEARCHED_SHARE
    lowest = max(first + 1, bisect_right(sums, half, first, fitting))
    return min(range(fitting, lowest - 1, -1), key=ranks.__getitem__)


def _ranks(lines: Sequence[str], borders: Sequence[tuple[int, int]]) -> list[int]:
    """Return for each line how well a text is cut before it, the best lowest."""
    ranks = [_LINE] * len(lines)
    for number in range(1, len(lines)):
        if lines[number].strip() and not lines[number - 1].strip():
            ranks[number] = _PARAGRAPH
    for line, depth in borders:
        if 1 <= line <= len(lines):
            place = _with_leads(lines, line - 1)
            ranks[place] = min(ranks[place], depth)
    return ranks


def _with_leads(lines: Sequence[str], place: int) -> int:
    for _ in range(_MAX_LEAD_LINES):
        if place == 0 or not lines[place - 1].strip().startswith(_LEADS):
            break
        place -= 1
    return place


def _split_line(line: str, budget_tokens: int) -> Iterator[str]:
    begin = 0
    while begin < len(line):
        end = _longest_fitting(line, begin, budget_tokens)
        if end < len(line):
            space = line.rfind(" ", begin + (end - begin) // 2, end)
            end = end if space < 0 else space + 1
        yield line[begin:end]
        begin = end


def _longest_fitting(line: str, begin: int, budget_tokens: int) -> int:
    """Return the largest end so that `line[begin:end]` fits; at least one character does."""
    low, high = begin + 1, min(len(line), begin + 2 * budget_tokens)
    while high < len(line) and count_tokens(line[begin:high]) <= budget_tokens:
        low, high = high, min(len(line), begin + 2 * (high - begin))
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(line[begin:middle]) <= budget_tokens:
            low = middle
        else:
            high = middle - 1
    return low
