"""Lines of documents that match a regular expression."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from rlm_rag.indexes.blocks import as_one_text
from rlm_rag.indexes.patterns import LinePattern
from rlm_rag.indexes.requests import MAX_LINE_CHARS, GrepHit, GrepRequest
from rlm_rag.packed import PackedCorpus

_KEPT_BEFORE_CHARS = 100
_WORTH_NUMPY_BYTES = 16 << 20


@dataclass(slots=True)
class Found:
    """The first matching lines, and how many each document has."""

    hits: list[GrepHit] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


def search_documents(
    corpus: PackedCorpus,
    pattern: LinePattern,
    request: GrepRequest,
    documents: Sequence[int],
    found: Found,
) -> None:
    """Add what the documents of these numbers hold, in this order, up to `request.k` hits."""
    if pattern.runs and corpus.total_bytes >= _WORTH_NUMPY_BYTES:
        # Not before: numpy takes a tenth of a second to import.
        from rlm_rag.indexes.screened import screened

        for one in screened(corpus, pattern.runs, documents):
            path = corpus.path(one.number)
            if one.places is None:
                _search_data(path, one.data, pattern, request, found)
            elif one.is_sure and pattern.is_runs_alone and len(found.hits) >= request.k:
                found.counts[path] = _line_count(one.data, one.places.tolist())
            else:
                text = one.data.decode("utf-8", "surrogatepass")
                next_place = partial(_next_of, one.characters())
                _search_text(path, text, pattern, request, found, next_place)
        return
    if len(pattern.needed) == 1 and not pattern.folded:
        documents = _holding(corpus, pattern.needed[0], documents)
    for number in documents:
        data = bytes(corpus.content_bytes(number))
        _search_data(corpus.path(number), data, pattern, request, found)


def _holding(corpus: PackedCorpus, literal: bytes, documents: Sequence[int]) -> list[int]:
    """Return those of the documents that hold a literal, found in all of them as in one text."""
    block, starts = as_one_text(corpus, documents)
    search = re.compile(re.escape(literal)).search
    holding: list[int] = []
    found = search(block)
    while found is not None:
        place = bisect_right(starts, found.start())
        holding.append(documents[place - 1])
        if place == len(starts):
            break
        found = search(block, starts[place])
    return holding


def _search_data(
    path: str, data: bytes, pattern: LinePattern, request: GrepRequest, found: Found
) -> None:
    # Beyond ASCII, letters that differ can be the same in other capitals.
    known = bool(pattern.needed) and (not pattern.folded or data.isascii())
    if known:
        looked_at = data.lower() if pattern.folded else data
        if not any(literal in looked_at for literal in pattern.needed):
            return
    text = _with_line_feeds(data.decode("utf-8", "surrogatepass"))
    places = _literal_places(text, pattern) if known else None
    _search_text(path, text, pattern, request, found, places)


def _search_text(
    path: str,
    text: str,
    pattern: LinePattern,
    request: GrepRequest,
    found: Found,
    places: Callable[[int], int] | None,
) -> None:
    line, counted_to = 1, 0
    once = None if pattern.runs and places is not None else pattern.once
    lines = _matching_lines(text, pattern, places)
    for match, start, end in lines:
        if len(found.hits) >= request.k:
            left = lines if once is None else once.finditer(text, end)
            found.counts[path] = found.counts.get(path, 0) + 1 + sum(1 for _ in left)
            return
        found.counts[path] = found.counts.get(path, 0) + 1
        line += text.count("\n", counted_to, start)
        counted_to = start
        found.hits.append(
            GrepHit(
                path,
                line,
                _around(text[start:end], match[0] - start, match[1] - start),
                _before(text, start, line, request.before),
                _after(text, end, line, request.after),
            )
        )


def _line_count(data: bytes, places: Sequence[int]) -> int:
    """Return in how many lines ascending places lie."""
    count, end = 0, -1
    for place in places:
        if place > end:
            count += 1
            end = data.find(b"\n", place)
            if end < 0:
                break
    return count


def _with_line_feeds(text: str) -> str:
    """End every line with a line feed, and nothing else with one."""
    if "\r" not in text:
        return text
    return text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")


def _next_of(places: Sequence[int], at: int) -> int:
    """Return the first of ascending places at or after one, or -1."""
    found = bisect_left(places, at)
    return places[found] if found < len(places) else -1


def _literal_places(text: str, pattern: LinePattern) -> Callable[[int], int]:
    """Return what finds the next of a pattern's literals at or after a place, or -1."""
    tail = pattern.tail
    if tail is not None:
        return lambda at: found.start() if (found := tail.search(text, at)) else -1
    looked_at = text.lower() if pattern.folded else text
    if len(pattern.literals) == 1:
        return partial(looked_at.find, pattern.literals[0])
    upcoming = dict.fromkeys(pattern.literals, -1)

    def next_place(at: int) -> int:
        for literal, place in tuple(upcoming.items()):
            if place < at:
                upcoming[literal] = place = looked_at.find(literal, at)
                if place < 0:
                    del upcoming[literal]
        return min(upcoming.values(), default=-1)

    return next_place


def _matching_lines(
    text: str, pattern: LinePattern, next_place: Callable[[int], int] | None
) -> Iterator[tuple[tuple[int, int], int, int]]:
    """Yield each matching line: the first match's span, the line's start and its end.

    `next_place` finds the places at which a match may be near, where that is known.
    """
    size = len(text)
    at = 0
    while at < size:
        if next_place is not None:
            place = next_place(at)
        elif pattern.spans_no_line:
            match = pattern.whole.search(text, at)
            place = match.start() if match else -1
        else:
            place = at
        if place < 0 or place >= size + (text[-1] != "\n"):
            return
        start = text.rfind("\n", 0, place) + 1
        end = text.find("\n", place)
        end = size if end < 0 else end
        # Searched in a copy of the line, so that look-arounds and \Z see nothing beyond it.
        match = pattern.by_line.search(text[start:end])
        if match:
            yield (start + match.start(), start + match.end()), start, end
        at = end + 1


def _around(line: str, first: int, last: int) -> str:
    """Return at most 400 characters of a line, with the match in them; `…` where it was cut."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    start = max(0, min(first - _KEPT_BEFORE_CHARS, len(line) - MAX_LINE_CHARS))
    if last <= MAX_LINE_CHARS - 1:
        start = 0
    head = "…" if start else ""
    room = MAX_LINE_CHARS - len(head)
    if start + len(head) + room >= len(line):
        return head + line[len(line) - room :]
    return head + line[start + len(head) : start + len(head) + room - 1] + "…"


def _before(text: str, start: int, line: int, wanted: int) -> tuple[tuple[int, str], ...]:
    lines: list[tuple[int, str]] = []
    while start > 0 and len(lines) < wanted:
        end = start - 1
        start = text.rfind("\n", 0, end) + 1
        line -= 1
        lines.append((line, _around(text[start:end], 0, 0)))
    return tuple(reversed(lines))


def _after(text: str, end: int, line: int, wanted: int) -> tuple[tuple[int, str], ...]:
    lines: list[tuple[int, str]] = []
    while end + 1 < len(text) and len(lines) < wanted:
        start = end + 1
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line += 1
        lines.append((line, _around(text[start:end], 0, 0)))
    return tuple(lines)
