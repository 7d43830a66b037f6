"""Find the places that an answer cites, with the quotes and the sentence that go with each."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rlm_rag.engine.fences import find_fences

MAX_PLACES = 500
MAX_LOOKUPS = 20_000
MAX_PATH_CHARS = 4096
MAX_STARTS = 24
MAX_SENTENCE_CHARS = 1500
MAX_GAP_CHARS = 120
# The largest whole number that every reader of JSON has exactly.
MAX_LINE = 2**53 - 1
_MAX_LINE_DIGITS = 15

_LINES = re.compile(r"(?::L?|#L)(\d+)(?:[-–—]L?(\d+))?", re.ASCII)
_PART = re.compile(
    r"#(?:page|sheet|cell|slide|chapter|attachment|message|info)=[^\s`,;()\[\]{}\"']+"
)
_CODE_SPAN = re.compile(r"`([^`\n]+)`")
# After an opening mark, or where a script that writes no spaces turns to ASCII.
_PATH_START = re.compile(r"[\s(\[{<\"'“‘*_,;:=|>`：，、；（【《「]+|(?<=[^\x00-\x7f])(?=[!-~])")
_MARKED_START = re.compile(r"[\s(\[{<\"'“‘*_,;:=|>`]")
_FILE_NAME = re.compile(r"\.[A-Za-z]\w{0,9}(?:#\S+)?$")
_NO_FILE = re.compile(r"://|^[\d.:]+$|\.(?:com|org|net|local)$|^localhost$", re.IGNORECASE)
_QUOTE = re.compile(
    r"``(?P<double>[^\n]+?)``|`(?P<code>[^`\n]+)`|\"(?P<straight>[^\"\n]+)\""
    r"|“(?P<curly>[^“”]{1,2000})”|«(?P<angled>[^«»]{1,2000})»"
    r"|(?<!\w)'(?P<single>[^'\n]+)'(?!\w)"
)
# Between any two marks there may be a quotation over lines, or what stands between two others.
_OVER_LINES = re.compile(r"\"(?=([^\"]{1,2000})\")|`(?=([^`]{1,2000})`)")
_QUOTED_LINES = re.compile(r"(?:^[ \t]*>[^\n]*(?:\n|\Z))+", re.MULTILINE)
_GAP_AFTER = re.compile(
    r"[\W_]{0,12}(?:(?:says|reads|states|shows|has|contains|defines|that)[\W_]{1,4}){0,2}"
)
_GAP_BEFORE = re.compile(
    r"[\W_]{0,12}(?:(?:in|at|from|see|of|on|source|lines?|file|is|cf)[\W_]{1,4}){0,3}",
    re.IGNORECASE,
)
_PARAGRAPH = re.compile(r"\n[ \t]*\n|\n(?=[ \t]*(?:[-*+>#|]|\d{1,3}[.)]))")
_SENTENCE_END = re.compile(r"[.!?][\"')\]*_`]*\s+|[。！？]")
_NUMBERED = re.compile(r"[ \t]*\d+[ \t]*[:|→\t][ \t]?(.*)")


@dataclass(frozen=True, slots=True)
class Place:
    """A place that the answer names: `last` None means to the end (a part named alone).

    A line number of more digits than any document needs is MAX_LINE. `sentence` is the text
    that makes the claim, places left out. `over_lines` stands between two marks on different
    lines, and is a quotation only if the document holds it.
    """

    path: str
    first: int
    last: int | None
    quotes: tuple[str, ...]
    over_lines: tuple[str, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class _Found:
    path: str
    first: int
    last: int | None
    start: int
    end: int
    exists: bool


@dataclass(frozen=True, slots=True)
class _Quote:
    text: str
    start: int
    end: int
    block: bool
    over_lines: bool = False


def find_places(text: str, exists: Callable[[str], bool]) -> tuple[Place, ...]:
    """The first MAX_PLACES places in `text`, in order.

    `exists` says whether a path is one of the corpus; where several readings of a place are
    possible, the longest path that exists wins. A place whose path does not exist is returned
    where it looks like a file's.
    """
    text = text.replace("\r\n", "\n")
    found = _Finder(text, exists).find()
    starts = [place.start for place in found]
    owned: dict[int, list[str]] = {}
    over_lines: dict[int, list[str]] = {}
    for quote in _quotes(text, found):
        owner = _owner(text, quote, found, starts)
        if owner is not None and not exists(quote.text.strip()):
            into = over_lines if quote.over_lines else owned
            into.setdefault(owner, []).append(quote.text)
    blanked = _blanked(text, found)
    return tuple(
        Place(
            place.path,
            place.first,
            place.last,
            tuple(owned.get(number, ())),
            tuple(over_lines.get(number, ())),
            _sentence(blanked, place.start, place.end),
        )
        for number, place in enumerate(found)
    )


class _Finder:
    def __init__(self, text: str, exists: Callable[[str], bool]) -> None:
        self._text = text
        self._exists = exists
        self._lookups_left = MAX_LOOKUPS
        self._spans = [match.span(1) for match in _CODE_SPAN.finditer(text)]
        self._span_starts = [start for start, _ in self._spans]

    def find(self) -> list[_Found]:
        found = [*self._with_lines(), *self._parts()]
        real = _apart([place for place in found if place.exists])
        ends = [place.end for place in real]
        starts = [place.start for place in real]
        # What looks like a place within the name of a document is a part of that name.
        others = [
            place
            for place in found
            if not place.exists
            and bisect_right(ends, place.start) == bisect_left(starts, place.end)
        ]
        return _apart([*real, *others])[:MAX_PLACES]

    def _with_lines(self) -> Iterator[_Found]:
        matches = _LINES.finditer(self._text)
        pending = next(matches, None)
        count = 0
        while pending is not None and count < MAX_PLACES and self._lookups_left > 0:
            chain = [pending]
            pending = next(matches, None)
            while pending is not None and pending.start() == chain[-1].end():
                chain.append(pending)
                pending = next(matches, None)
            place = self._read_chain(chain)
            if place is not None:
                count += 1
                yield place

    def _read_chain(self, chain: Sequence[re.Match[str]]) -> _Found | None:
        """The place of `path:3`, or of `path:3:7`, where 7 is a column unless `path:3` exists."""
        for match in reversed(chain[:3]):
            known = self._path_before(match.start())
            if known is not None:
                at, path = known
                return _found(match, path, at, chain[-1].end(), exists=True)
        match = chain[0]
        at = self._start_of_unknown(match.start(), " `")
        path = self._text[at : match.start()]
        if not _looks_like_file(path):
            return None
        return _found(match, path, at, chain[-1].end(), exists=False)

    def _parts(self) -> Iterator[_Found]:
        for match in _PART.finditer(self._text):
            if self._lookups_left <= 0:
                return
            span_end = self._span_end(match.start())
            ends = [match.end(), match.start() + len(match[0].rstrip(".:!?*_"))]
            if span_end is not None:
                ends.insert(0, span_end)
            for end in ends:
                known = self._path_before(end)
                if known is not None and known[0] < match.start():
                    yield _Found(known[1], 1, None, known[0], end, True)
                    break
            else:
                if _LINES.match(self._text, ends[-1]) is None:
                    at = self._start_of_unknown(match.start(), "`")
                    yield _Found(self._text[at : ends[-1]], 1, None, at, ends[-1], False)

    def _path_before(self, end: int) -> tuple[int, str] | None:
        """The longest path that exists and ends at `end`, and where it begins."""
        marked = self._marked_path_before(end)
        if marked is not None:
            return marked
        low = self._low(end)
        token = self._text[low:end]
        offsets = [0, *(match.end() for match in _PATH_START.finditer(token))]
        if len(offsets) > MAX_STARTS:
            offsets = [0, *offsets[1 - MAX_STARTS :]]
        for offset in offsets:
            spelled = token[offset:]
            for path in dict.fromkeys((spelled, spelled.removeprefix("./"))):
                if path and self._lookups_left > 0:
                    self._lookups_left -= 1
                    if self._exists(path):
                        return low + offset, path
        return None

    def _marked_path_before(self, end: int) -> tuple[int, str] | None:
        """The longest path that exists, has a mark of code, and ends at `end`.

        What marks code around it cannot be told from what is in it, so that spaces do not end it.
        """
        low = max(0, end - MAX_PATH_CHARS, self._text.rfind("\n", 0, end) + 1)
        last = self._text.rfind("`", low, end)
        if last < 0:
            return None
        starts = [match.end() for match in _MARKED_START.finditer(self._text, low, last)]
        for start in [low, *starts][-MAX_STARTS:]:
            if self._lookups_left > 0:
                self._lookups_left -= 1
                if self._exists(self._text[start:end]):
                    return start, self._text[start:end]
        return None

    def _low(self, end: int) -> int:
        """The earliest offset at which a path that ends at `end` may begin."""
        low = max(0, end - MAX_PATH_CHARS)
        number = bisect_right(self._span_starts, end) - 1
        if number >= 0 and self._spans[number][0] <= end <= self._spans[number][1]:
            return max(low, self._spans[number][0])
        token = self._text[low:end]
        return low + max(token.rfind(mark) + 1 for mark in (" ", "\n", "\t", "\u3000"))

    def _start_of_unknown(self, end: int, marks: str) -> int:
        """Where a path that does not exist and ends at `end` is taken to begin, after `marks`."""
        low = self._low(end)
        token = self._text[low:end]
        at = low + max(token.rfind(mark) + 1 for mark in marks)
        opening = _PATH_START.match(self._text, at, end)
        return opening.end() if opening else at

    def _span_end(self, at: int) -> int | None:
        number = bisect_right(self._span_starts, at) - 1
        if number >= 0 and self._spans[number][0] <= at < self._spans[number][1]:
            return self._spans[number][1]
        return None


def _found(match: re.Match[str], path: str, start: int, end: int, *, exists: bool) -> _Found:
    first = _line_number(match[1])
    last = _line_number(match[2]) if match[2] else first
    return _Found(path, first, last, start, end, exists)


def _apart(found: Iterable[_Found]) -> list[_Found]:
    """Return the places in order, without those that begin in an earlier or longer one."""
    kept: list[_Found] = []
    for place in sorted(found, key=lambda place: (place.start, -place.end)):
        if not kept or place.start >= kept[-1].end:
            kept.append(place)
    return kept


def _line_number(digits: str) -> int:
    # Python refuses to read numbers of thousands of digits; no document has such a line.
    digits = digits.lstrip("0")
    return int(digits or "0") if len(digits) <= _MAX_LINE_DIGITS else MAX_LINE


def _looks_like_file(path: str) -> bool:
    if not path or _NO_FILE.search(path):
        return False
    return "/" in path.strip("/") or _FILE_NAME.search(path) is not None


def _quotes(text: str, found: Sequence[_Found]) -> Iterator[_Quote]:
    """Quotations in order of their kind: fences, quoted lines, marks within a line, over lines.

    One that holds a cited place is none.
    """
    starts = [place.start for place in found]

    def holds_place(start: int, end: int) -> bool:
        number = bisect_right(starts, start) - 1
        if number >= 0 and found[number].end > start:
            return True
        return number + 1 < len(found) and starts[number + 1] < end

    blocks: list[_Quote] = [
        _Quote(_without_numbers(fence.code), fence.start, fence.end, True)
        for fence in find_fences(text)
    ]
    fence_starts = [block.start for block in blocks]
    for match in _QUOTED_LINES.finditer(text):
        if not _inside(match.start(), blocks, fence_starts):
            lines = (line.lstrip(" \t>") for line in match[0].split("\n"))
            blocks.append(_Quote("\n".join(lines), match.start(), match.end(), True))
    blocks = sorted(
        (block for block in blocks if not holds_place(block.start, block.end)),
        key=lambda block: block.start,
    )
    yield from blocks
    block_starts = [block.start for block in blocks]
    for match in _QUOTE.finditer(text):
        content = next(group for group in match.groups() if group is not None)
        if _inside(match.start(), blocks, block_starts) or holds_place(*match.span()):
            continue
        yield _Quote(content, match.start(), match.end(), False)
    for match in _OVER_LINES.finditer(text):
        content = match[1] or match[2]
        end = match.end() + len(content) + 1
        is_apart = not _inside(match.start(), blocks, block_starts)
        if "\n" in content.strip() and is_apart and not holds_place(match.start(), end):
            yield _Quote(content, match.start(), end, False, over_lines=True)


def _inside(offset: int, blocks: Sequence[_Quote], starts: Sequence[int]) -> bool:
    number = bisect_right(starts, offset) - 1
    return 0 <= number < len(blocks) and offset < blocks[number].end


def _without_numbers(code: str) -> str:
    """Quoted lines without the line numbers that `read` shows, where each has one."""
    lines = [line for line in code.split("\n") if line.strip()]
    numbered = [_NUMBERED.fullmatch(line) for line in lines]
    if lines and all(numbered):
        return "\n".join(match[1] for match in numbered if match)
    return code


def _owner(text: str, quote: _Quote, found: Sequence[_Found], starts: Sequence[int]) -> int | None:
    """The place that a quotation stands beside; between two, the one it is bound to closer."""
    following = bisect_left(starts, quote.end)
    before = after = None
    if following > 0:
        gap = _gap(text, found[following - 1].end, quote.start)
        if gap is not None and _leads_to(gap, quote.block):
            before = gap
    if following < len(found):
        gap = _gap(text, quote.end, found[following].start)
        if gap is not None and _GAP_BEFORE.fullmatch(gap):
            after = gap
    if before is None:
        return None if after is None else following
    if after is not None and ":" not in before and ("(" in after or "[" in after):
        return following
    return following - 1


def _leads_to(gap: str, block: bool) -> bool:
    """Whether the text between a place and a quotation binds the two."""
    if block:
        line, _, rest = gap.partition("\n")
        ends = line.rstrip(" \t`*_")
        return not rest.strip() and (ends.endswith(":") or not re.search(r"\w", line))
    return "\n\n" not in gap and _GAP_AFTER.fullmatch(gap) is not None


def _gap(text: str, start: int, end: int) -> str | None:
    return text[start:end] if end - start <= MAX_GAP_CHARS else None


def _blanked(text: str, found: Sequence[_Found]) -> str:
    parts = []
    position = 0
    for place in found:
        parts.append(text[position : place.start])
        parts.append(" " * (place.end - place.start))
        position = place.end
    parts.append(text[position:])
    return "".join(parts)


def _sentence(text: str, start: int, end: int) -> str:
    """The sentence around `start`..`end`; the one before it where that one has no words."""
    before = text[max(0, start - MAX_SENTENCE_CHARS) : start]
    before = _PARAGRAPH.split(before)[-1]
    after = _PARAGRAPH.split(text[end : end + MAX_SENTENCE_CHARS], maxsplit=1)[0]
    after = _SENTENCE_END.split(after, maxsplit=1)[0]
    sentences = _SENTENCE_END.split(before)
    own = f"{sentences[-1]} {after}"
    if not re.search(r"\w\w", own) and len(sentences) > 1:
        return f"{sentences[-2]} {own}"
    return own
