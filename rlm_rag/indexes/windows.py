"""The windows that a document is searched by: 40 lines, overlapping by 10."""

from __future__ import annotations

WINDOW_LINES = 40
OVERLAP_LINES = 10
STRIDE_LINES = WINDOW_LINES - OVERLAP_LINES


def window_count(line_count: int) -> int:
    """Return how many windows cover a document of that many lines; none for no lines."""
    if line_count <= 0:
        return 0
    return max(1, -((OVERLAP_LINES - line_count) // STRIDE_LINES))


def window_lines(number: int, line_count: int) -> tuple[int, int]:
    """Return the first and last line of a document's window, counted from 0."""
    first = number * STRIDE_LINES + 1
    return first, min(first + WINDOW_LINES - 1, line_count)


def stretch_first(first: int) -> int:
    """Return where a window's stretch begins: a definition that holds it may begin there."""
    return max(1, first - WINDOW_LINES + 1)


def windows_of_line(line: int, line_count: int) -> range:
    """Return the numbers of a document's windows that hold a line."""
    last = min((line - 1) // STRIDE_LINES, window_count(line_count) - 1)
    first = max(0, (line - WINDOW_LINES + STRIDE_LINES - 1) // STRIDE_LINES)
    return range(first, last + 1)


def window_borders(line_count: int, windows: range | None = None) -> list[int]:
    """Return the lines, counted from 0, between which all windows, or these, are three stretches.

    The first of them begins with stretch 0, the one after it with stretch 2; the last border is
    where the last one ends. Empty for no lines.
    """
    windows = range(window_count(line_count)) if windows is None else windows
    if not windows:
        return []
    borders: list[int] = []
    for first in range(
        windows.start * STRIDE_LINES, (windows.stop + 1) * STRIDE_LINES, STRIDE_LINES
    ):
        borders += (first, first + OVERLAP_LINES)
    return [min(line, line_count) for line in borders]
