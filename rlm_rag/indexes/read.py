"""Numbered lines of a document."""

from __future__ import annotations

from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.paths import resolve
from rlm_rag.indexes.requests import ReadRequest, TextResult
from rlm_rag.lines import split_lines
from rlm_rag.packed import PackedCorpus

MAX_READ_LINES = 400
MAX_READ_CHARS = 20_000


def read(corpus: PackedCorpus, request: ReadRequest) -> TextResult:
    """Return the lines `start` to `end` (default: as many as fit), each as `number: text`.

    At most 400 lines and 20,000 characters; the note then says how to go on.

    Raises:
        RetrievalError: no such document, or no such lines in it.
    """
    number = resolve(corpus, request.path)
    path = corpus.path(number)
    lines = split_lines(corpus.content(number))
    start, end = request.start, request.end
    if not lines:
        return TextResult("", path, note=f"{path} is empty: it has no lines")
    if start < 1:
        raise RetrievalError(f"start={start}: lines are counted from 1")
    if start > len(lines):
        raise RetrievalError(f"start={start} is beyond the end: {path} has {len(lines)} lines")
    if end is not None and end < start:
        raise RetrievalError(f"end={end} is before start={start}: give the smaller line first")
    last = min(len(lines), len(lines) if end is None else end)
    shown: list[str] = []
    left = MAX_READ_CHARS
    for at in range(start, min(last, start + MAX_READ_LINES - 1) + 1):
        text = f"{at}: {lines[at - 1]}"
        if len(text) + 1 > left and shown:
            break
        shown.append(text[:left])
        left -= len(text) + 1
    reached = start + len(shown) - 1
    return TextResult(
        "\n".join(shown), path, start, reached, note=_note(lines, reached, last, left)
    )


def _note(lines: list[str], reached: int, last: int, left: int) -> str | None:
    if left < -1:
        return (
            f"line {reached} has {len(lines[reached - 1]):,} characters, of which the first "
            f"{MAX_READ_CHARS:,} are shown; for the rest, grep for a part of it, or slice its text "
            "from context in a block"
        )
    if reached < last:
        return (
            f"stopped at line {reached} of {len(lines)} (at most {MAX_READ_LINES} lines and "
            f"{MAX_READ_CHARS:,} characters a call); go on with start={reached + 1}"
        )
    return None
