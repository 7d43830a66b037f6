"""Check an answer's citations against the corpus."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, Literal

from rlm_rag.corpus import Corpus, Document
from rlm_rag.engine.places import Place, find_places
from rlm_rag.engine.quotes import end_of, fold, is_long, readings, spellings
from rlm_rag.errors import NotHeldError
from rlm_rag.shown import unescaped

MAX_VERIFIED_LINES = 60
MAX_NAME_WORDS = 2
NEAR_LINES = 30
MAX_OCCURRENCES = 200
MAX_TERM_CHARS = 20_000
MAX_TERM_LINES = 2_000
ADDED_PREFIX = "added:/"
_REMEMBERED = 4

Status = Literal["verified", "located", "false"]

_WORD = re.compile(r"[^\W_]+")
_SUBWORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_STOPWORDS = frozenset(
    re.findall(
        r"\w+",
        """
        the and for are was were that this with from has have had not its into which when where
        who what how why can will would should could there their they them then than also all any
        but one two you your our out see line lines file files code here does did been being each
        only such more most other some very just over under about between both while because
        """,
    )
)


@dataclass(frozen=True, slots=True)
class Citation:
    """A cited place and what the check made of it; lines are those that stand in the corpus.

    `verified` status: a quote of at least `MIN_QUOTE_CHARS`, or whole lines, stand in at most
    MAX_VERIFIED_LINES lines, which may be moved to where it stands. `located`: the lines exist,
    and no quote is given, or a short one that the document holds or that may be a mere name.
    `false`: anything else. The flag `verified` is true for the first two where a term of the
    sentence that cites the lines, or of its quote, stands there too.
    """

    path: str
    line: int
    end_line: int
    quote: str | None
    status: Status
    verified: bool

    def to_dict(self) -> dict[str, Any]:
        """The citation object of docs/design.md section 4.4."""
        return {
            "path": self.path,
            "line": self.line,
            "end_line": self.end_line,
            "quote": self.quote,
            "status": self.status,
            "verified": self.verified,
        }


def check_citations(text: str, corpus: Corpus) -> tuple[Citation, ...]:
    """Check every place that `text` cites, in order, each once.

    At most `places.MAX_PLACES` are looked at. What was added to a run is no part of the corpus
    and never verifies. A path that is the end of exactly one document's path, such as `retry.py`
    of `src/retry.py`, means that document.
    """

    places = _places(text, corpus)
    by_path: dict[str, list[int]] = {}
    for number, place in enumerate(places):
        by_path.setdefault(place.path, []).append(number)
    checked: dict[int, Citation] = {}
    for path, numbers in by_path.items():
        source = _source(path, corpus)
        for number in numbers:
            checked[number] = _check(places[number], source)
    return tuple(dict.fromkeys(checked[number] for number in range(len(places))))


def cited_paths(text: str, corpus: Corpus) -> tuple[str, ...]:
    """Return the paths of the documents that `text` cites, whose texts a check needs."""
    return tuple(dict.fromkeys(place.path for place in _places(text, corpus)))


class CitationCheck:
    """Checks the citations of texts against a corpus; those of the last texts are remembered.

    An answer is checked for doubts about it, and once more when it is accepted.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._check = lru_cache(maxsize=_REMEMBERED)(partial(check_citations, corpus=corpus))

    def __call__(self, text: str) -> tuple[Citation, ...]:
        return self._check(text)


def content_digest(content: str) -> str:
    """Return what a trace keeps of a cited document, to tell later whether it has changed."""
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _places(text: str, corpus: Corpus) -> Sequence[Place]:
    def exists(path: str) -> bool:
        return _meant(path, corpus) is not None

    return _resolved(find_places(text, exists), corpus)


def _meant(path: str, corpus: Corpus) -> str | None:
    """Return the path of a document that `path` is, or spells with the escapes of results.

    These stand for characters that would end a line or be hidden.
    """
    if _is_of(path, corpus):
        return path
    if "\\" in path and _is_of(plain := unescaped(path), corpus):
        return plain
    return None


def _is_of(path: str, corpus: Corpus) -> bool:
    return not path.startswith(ADDED_PREFIX) and corpus.__contains__(path)


def _source(path: str, corpus: Corpus) -> _Source | int | None:
    """Return a cited document, its lines alone where its text cannot be read, or None."""
    if not _is_of(path, corpus):
        return None
    try:
        return _Source(corpus[path])
    except NotHeldError:
        return corpus.lines_of(path)


def _resolved(places: Sequence[Place], corpus: Corpus) -> Sequence[Place]:
    """The places, each with the one path that it spells, or that its path is the end of."""
    meant = {path: _meant(path, corpus) for path in {place.path for place in places}}
    unknown = [path for path, known in meant.items() if known is None]
    ends = paths_that_end(unknown, corpus.paths())
    meant |= {path: found[0] for path, found in ends.items() if len(found) == 1}
    return [replace(place, path=meant[place.path] or place.path) for place in places]


def paths_that_end(ends: Collection[str], paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the paths that end in whole components with each of `ends`, in their order."""
    found: dict[str, list[str]] = {}
    if not ends:
        return found
    by_name: dict[str, list[str]] = {}
    for end in ends:
        by_name.setdefault(end.rpartition("/")[2], []).append(end)
    for path in paths:
        for end in by_name.get(path.rpartition("/")[2], ()):
            if path.endswith("/" + end):
                found.setdefault(end, []).append(path)
    return found


def _check(place: Place, source: _Source | int | None) -> Citation:
    quotes = [folded for folded in map(fold, place.quotes) if folded]
    long = [quote for quote in quotes if is_long(quote)]
    if not isinstance(source, _Source):
        last = place.first if place.last is None else place.last
        quote = next(iter(long or quotes), None)
        # Of one that lies where nobody answers all that is known is whether it has such lines.
        status: Status = "located" if 1 <= place.first <= last <= (source or 0) else "false"
        return Citation(place.path, place.first, last, quote, status, False)
    first = place.first
    last = source.line_count if place.last is None else place.last
    over_lines = [fold(quote) for quote in place.over_lines]
    quotes += [quote for quote in over_lines if quote and source.locate(quote, first) is not None]
    real = 1 <= first <= last <= source.line_count
    standing = [quote for quote in quotes if real and source.stands(quote, first, last)]
    for quote in standing:
        precise = last - first < MAX_VERIFIED_LINES
        if precise and (is_long(quote) or any(source.whole_lines(quote, first, last))):
            return source.citation(place, first, last, quote, "verified")
    if not any(is_long(quote) for quote in standing):
        for quote in quotes:
            moved = source.locate(quote, first)
            if moved is not None and moved[1] - moved[0] < MAX_VERIFIED_LINES:
                return source.citation(place, *moved, quote, "verified")
        if long:
            return Citation(place.path, first, last, long[0], "false", False)
    invented = bool(quotes) and not standing and all(map(source.lacks, quotes))
    if not real or invented:
        return Citation(place.path, first, last, next(iter(quotes), None), "false", False)
    return source.citation(place, first, last, next(iter(standing), None), "located")


@dataclass(slots=True)
class _Folded:
    """A document with its whitespace folded, and where each of its lines starts in that."""

    text: str
    starts: list[int] = field(default_factory=list)

    def line_at(self, offset: int) -> int:
        return bisect_right(self.starts, offset)

    def begins(self, offset: int) -> bool:
        """Tell whether a line begins there."""
        line = self.line_at(offset)
        return line > 0 and self.starts[line - 1] == offset

    def ends(self, offset: int) -> bool:
        """Tell whether a line ends there."""
        return offset == len(self.text) or self.begins(offset + 1)


class _Source:
    """A cited document; its folded form is made when the first quote is looked for."""

    def __init__(self, document: Document) -> None:
        self._path = document.path
        self._lines = document.lines()
        self._folded: _Folded | None = None
        self._uncased: str | None = None
        self.line_count = document.line_count

    def citation(
        self, place: Place, first: int, last: int, quote: str | None, status: Status
    ) -> Citation:
        claimed = _terms(f"{place.sentence} {quote or ''}") - _STOPWORDS
        shown = min(last, first + MAX_TERM_LINES)
        there = _terms("\n".join(self._lines[first - 1 : shown])[:MAX_TERM_CHARS])
        known = bool(claimed & there)
        return Citation(self._path, first, last, quote, status, known)

    def stands(self, quote: str, first: int, last: int) -> bool:
        """Whether the quote, or its pieces around ellipses in order, is in the lines."""
        text, (begin, end) = self._fold().text, self._offsets(first, last)
        return any(end_of(text, pieces, begin, end) is not None for pieces in readings(quote))

    def whole_lines(self, quote: str, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield which of the lines, one or some in a row, are the quote as a whole."""
        folded = self._fold()
        begin, end = self._offsets(first, last)
        for spelling in spellings(quote):
            at = folded.text.find(spelling, begin, end)
            while at >= 0:
                after = at + len(spelling)
                if folded.begins(at) and folded.ends(after):
                    yield folded.line_at(at), folded.line_at(after - 1)
                at = folded.text.find(spelling, at + 1, end)

    def lacks(self, quote: str) -> bool:
        """Whether it stands nowhere, in whatever case, and has too many words for a mere name."""
        if len(quote.split()) <= MAX_NAME_WORDS:
            return False
        if self._uncased is None:
            self._uncased = self._fold().text.casefold()
        size = len(self._uncased)
        ways = readings(quote.casefold())
        return all(end_of(self._uncased, pieces, 0, size) is None for pieces in ways)

    def locate(self, quote: str, near: int) -> tuple[int, int] | None:
        """The lines in which the quote stands, nearest to line `near`.

        A short quote is only found as whole lines, at most NEAR_LINES away.
        """
        if is_long(quote):
            return min(
                self._occurrences(quote), key=lambda lines: abs(lines[0] - near), default=None
            )
        low = max(1, near - NEAR_LINES)
        high = min(self.line_count, near + NEAR_LINES)
        if not _WORD.search(quote):
            return None
        found = self.whole_lines(quote, low, high) if low <= high else ()
        return min(found, key=lambda lines: abs(lines[0] - near), default=None)

    def _occurrences(self, quote: str) -> Iterator[tuple[int, int]]:
        folded = self._fold()
        for pieces in readings(quote):
            at = folded.text.find(pieces[0])
            count = 0
            while at >= 0 and count < MAX_OCCURRENCES:
                count += 1
                first = folded.line_at(at)
                beyond = first + MAX_VERIFIED_LINES - 1
                limit = folded.starts[beyond] if beyond < len(folded.starts) else len(folded.text)
                end = end_of(folded.text, pieces, at, limit)
                if end is not None:
                    yield first, folded.line_at(end - 1)
                at = folded.text.find(pieces[0], at + 1)

    def _offsets(self, first: int, last: int) -> tuple[int, int]:
        """Return where lines begin and end in the folded text."""
        folded = self._fold()
        end = folded.starts[last] if last < len(folded.starts) else len(folded.text)
        return folded.starts[first - 1], end

    def _fold(self) -> _Folded:
        if self._folded is None:
            parts: list[str] = []
            starts: list[int] = []
            size = 0
            for line in self._lines:
                starts.append(size)
                folded = fold(line)
                if folded:
                    parts.append(folded)
                    size += len(folded) + 1
            self._folded = _Folded(" ".join(parts), starts)
        return self._folded


def _terms(text: str) -> set[str]:
    """Words of three letters or more and their parts, folded; pairs of other scripts' letters."""
    terms: set[str] = set()
    for match in _WORD.finditer(text):
        word = match[0]
        if word.isascii():
            parts = {word, *_SUBWORD.findall(word)}
            terms.update(part.lower() for part in parts if len(part) > 2 or part.isdigit())
        else:
            folded = word.casefold()
            terms.add(folded)
            terms.update(folded[at : at + 2] for at in range(len(folded) - 1))
    return terms
