"""Where a name is defined, or used."""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice

from rlm_rag.indexes.catalogue import Catalogue
from rlm_rag.indexes.definition_cache import Outlined
from rlm_rag.indexes.likely import Likely
from rlm_rag.indexes.parsers import is_too_large
from rlm_rag.indexes.requests import Symbol, SymbolsRequest, SymbolsResult
from rlm_rag.indexes.skeleton import MAX_SIGNATURE_CHARS, Definition
from rlm_rag.lines import line_starts
from rlm_rag.packed import PackedCorpus

MAX_SYMBOLS = 500
# How long a look-up has documents parsed; what is left is parsed while nothing else is asked.
LOOKUP_SECONDS = 2.0

_MAX_SAID = 3
_CHUNK = 64
_QUALIFIERS = re.compile(r"\.|::|#|->|\\")

_Name = tuple[tuple[str, ...], str]
"""What qualifies a name, and the name."""


@dataclass(frozen=True, slots=True)
class LookedUp:
    """What was found of a name in one spelling, in the documents' order, 501 at most.

    `found` and `said` have the number of the document that each is of; `said` is of how the
    definitions were found. `late` tells that not all documents could be parsed in time. Where
    no spelling was found, `doubts` is, as `said`, of documents that hold the name all the same.
    """

    found: tuple[tuple[int, Symbol], ...]
    said: tuple[tuple[int, str], ...] = ()
    late: bool = False
    doubts: tuple[tuple[int, str], ...] = ()


class _Lookup:
    """One name looked up in one corpus; collects what must be said of the documents it met."""

    def __init__(
        self,
        corpus: PackedCorpus,
        catalogue: Catalogue,
        allowed: Callable[[str], bool] | None,
        name: _Name,
        ends: float,
    ) -> None:
        self._ends = ends
        self._corpus = corpus
        self._catalogue = catalogue
        self._allowed = allowed
        self._qualifiers, self._name = name
        self._said: dict[str, int] = {}
        self._late = False
        self._likely: set[int] = set()

    def result(
        self, found: Iterator[tuple[int, Symbol]], *, beside: Sequence[_Lookup] = ()
    ) -> LookedUp:
        """Return what is found, by this or by those `beside` it, and what must be said of it."""
        symbols = tuple(islice(found, MAX_SYMBOLS + 1))
        lookups = (self, *beside)
        said = [(at, text) for one in lookups for text, at in one._said.items()]
        late = any(one._late for one in lookups)
        return LookedUp(symbols, tuple(dict.fromkeys(said)), late)

    def doubts(self, case: int) -> tuple[tuple[int, str], ...]:
        """Return what is said of documents that hold the name, though none seems to define it."""
        doubted = self._catalogue.doubted()
        holding = self._holding(sorted(doubted), case)
        return tuple((number, doubted[number]) for number, _ in holding)

    def defined(self, case: int) -> Iterator[tuple[int, Symbol]]:
        """Yield the definitions of the name, in the documents' order."""
        found = self._catalogue.defining(self._name) if self._parsed(case) else self._hasty()
        for number in sorted(found):
            path = self._corpus.path(number)
            if self._allowed is not None and not self._allowed(path):
                continue
            for one in self._heard(number, found[number]):
                if self._is_named(one.name, case) and self._is_within(one, path):
                    yield number, _symbol(path, one)

    def _parsed(self, case: int) -> bool:
        """Have what may define the name parsed; say whether there was time for all of it."""
        likely = Likely(self._name, case)
        fresh: list[tuple[bool, int, int]] = []
        for number, data in self._holding(self._catalogue.unknown(), case):
            path = self._corpus.path(number)
            # What is only scanned for its size is said wherever the name stands in it.
            doubted = is_too_large(data) and likely.occurs(path, data)
            if doubted or likely.may_be_defined(path, data):
                fresh.append((not likely.is_defined(path, data), len(data), number))
        fresh.sort()
        self._likely = {number for unlikely, _, number in fresh if not unlikely}
        self._prepare([number for _, _, number in fresh])
        return not self._late

    def _hasty(self) -> dict[int, Outlined]:
        """Return what is known of the name, and what a scan finds of it where it likely is."""
        unknown = self._likely.intersection(self._catalogue.unknown())
        scanned = {number: self._catalogue.scanned(number) for number in sorted(unknown)}
        return scanned | self._catalogue.defining(self._name)

    def used(self, case: int) -> Iterator[tuple[int, Symbol]]:
        """Yield the lines with the name as a word, in the documents' order."""
        word = re.compile(rf"(?<!\w){re.escape(self._name)}(?!\w)", case)
        literal = re.compile(re.escape(_encoded(self._name)), case)
        holding = self._holding(range(len(self._corpus)), case)
        while chunk := list(islice(holding, _CHUNK)):
            found = ((number, _uses(data, literal, word)) for number, data in chunk)
            uses = [(number, lines) for number, lines in found if lines]
            self._prepare([number for number, _ in uses])
            for number, lines in uses:
                for symbol in self._uses_in(number, lines, case):
                    yield number, symbol

    def _uses_in(
        self, number: int, lines: Sequence[tuple[int, str, str]], case: int
    ) -> Iterator[Symbol]:
        path = self._corpus.path(number)
        found = self._definitions(number)
        for line, name, text in lines:
            own = [one for one in found if one.line == line and self._is_named(one.name, case)]
            if own:
                yield from (_symbol(path, one) for one in own)
                continue
            scope = _enclosing(found, line)
            shown = text[:MAX_SIGNATURE_CHARS]
            yield Symbol(path, line, "reference", name, shown, line, scope)

    def _holding(self, numbers: Sequence[int], case: int) -> Iterator[tuple[int, bytes]]:
        """Yield the allowed documents in which the name occurs at all."""
        encoded = _encoded(self._name)
        lowered = encoded.lower()
        for number in numbers:
            data = bytes(self._corpus.content_bytes(number))
            if not (lowered in data.lower() if case else encoded in data):
                continue
            if self._allowed is None or self._allowed(self._corpus.path(number)):
                yield number, data

    def _prepare(self, numbers: Sequence[int]) -> None:
        seconds = max(0.0, self._ends - time.monotonic())
        if not self._catalogue.prepare(numbers, seconds):
            self._late = True

    def _definitions(self, number: int) -> tuple[Definition, ...]:
        find = self._catalogue.scanned if self._late else self._catalogue.outlined
        return self._heard(number, find(number))

    def _heard(self, number: int, outlined: Outlined) -> tuple[Definition, ...]:
        """Note what is said of a document's definitions, and return them."""
        if outlined.said:
            self._said.setdefault(outlined.said, number)
        return outlined.definitions

    def _is_named(self, name: str, case: int) -> bool:
        return name.casefold() == self._name.casefold() if case else name == self._name

    def _is_within(self, one: Definition, path: str) -> bool:
        """Say whether a definition lies in what qualifies it: a class, a receiver, or a module."""
        if not self._qualifiers:
            return True
        last = re.escape(self._qualifiers[-1])
        if any(re.search(rf"(?<!\w){last}(?!\w)", parent) for parent in one.parents):
            return True
        before, _, _ = one.signature.partition(one.name + "(")
        if re.search(rf"(?<!\w){last}(?!\w)", before):
            return True
        stem = path.rpartition("/")[2].partition(".")[0]
        module = path.rpartition("/")[0].rpartition("/")[2]
        return not one.parents and self._qualifiers[-1] in (stem, module)


def look_up(
    corpus: PackedCorpus,
    catalogue: Catalogue,
    request: SymbolsRequest,
    allowed: Callable[[str], bool] | None,
    case: int,
    seconds: float,
) -> LookedUp:
    """Return the definitions of a name, or with `references` its uses, in one spelling.

    `case` is 0, or `re.IGNORECASE`. Documents are parsed for so many seconds.
    """
    ends = time.monotonic() + seconds
    lookups = [_Lookup(corpus, catalogue, allowed, one, ends) for one in _readings(request.name)]
    if request.references:
        return lookups[0].result(lookups[0].used(case))
    found = merge(*(one.defined(case) for one in lookups), key=_place)
    merged = lookups[0].result(found, beside=lookups[1:])
    # Of all spellings, after which no other is tried.
    return replace(merged, doubts=lookups[0].doubts(case)) if case and not merged.found else merged


def symbols(request: SymbolsRequest, looked_up: Callable[[int, float], LookedUp]) -> SymbolsResult:
    """Return the definitions of a name, in the corpus's order; with `references`, its uses too.

    `Class.method` (or `Class::method`) asks for the method of that class, or for what has a name
    with that dot in it. Where no name is
    spelled so, other capitals are tried, and the note says it. At most 500. Only documents that
    may define the name are parsed, first those that seem to, for at most 2 s; of the others a
    lexical scan tells, and the note says so. `looked_up` is `look_up` for a case and seconds.
    """
    ends = time.monotonic() + LOOKUP_SECONDS
    said: tuple[str, ...] = ()
    for case in (0, re.IGNORECASE):
        one = looked_up(case, max(0.0, ends - time.monotonic()))
        said = tuple(_said(one))
        if one.found:
            notes = []
            if case:
                notes.append(f"no {request.name!r} is spelled so: these differ in capitals")
            if len(one.found) > MAX_SYMBOLS:
                notes.append(f"only the first {MAX_SYMBOLS} are shown; narrow path_glob")
            notes.extend(said)
            found = tuple(symbol for _, symbol in one.found[:MAX_SYMBOLS])
            return SymbolsResult(found, "; ".join(notes) or None)
    what = "use" if request.references else "definition"
    none = f"no {what} of {request.name!r} found; search or grep may find it"
    return SymbolsResult((), "; ".join((none, *said)))


def _said(one: LookedUp) -> Iterator[str]:
    told = list(dict.fromkeys(text for _, text in (*one.said, *one.doubts)))
    yield from told[:_MAX_SAID]
    if len(told) > _MAX_SAID:
        yield f"and so for {len(told) - _MAX_SAID} more documents"
    if one.late:
        yield "not all documents are parsed yet: those left were scanned; ask again for better"


def _readings(name: str) -> list[_Name]:
    """Split `a.B.c` into its qualifiers and the name itself; what has spaces is one name.

    And take it whole: some languages have names such as `.box`, `print.shop` and `\\title`.
    """
    name = name.strip()
    if re.search(r"\s", name):
        return [((), name)]
    written = name.removesuffix("()")
    pieces = [piece for piece in _QUALIFIERS.split(written) if piece]
    if not pieces:
        return [((), name)]
    whole: list[_Name] = [] if pieces == [written] else [((), written)]
    return [(tuple(pieces[:-1]), pieces[-1]), *whole]


def _place(found: tuple[int, Symbol]) -> tuple[int, int]:
    number, symbol = found
    return number, symbol.line


def _symbol(path: str, one: Definition) -> Symbol:
    return Symbol(
        path,
        one.line,
        one.kind,
        one.name,
        one.signature,
        one.end_line,
        ".".join(one.parents),
        one.doc,
    )


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _uses(
    data: bytes, literal: re.Pattern[bytes], word: re.Pattern[str]
) -> list[tuple[int, str, str]]:
    """Return each line with the word: its number, the word as spelled there, and its text."""
    starts = line_starts(data)
    found: list[tuple[int, str, str]] = []
    at = 0
    while match := literal.search(data, at):
        line = bisect_right(starts, match.start())
        at = starts[line] if line < len(starts) else len(data)
        text = data[starts[line - 1] : at].decode("utf-8", "surrogatepass").strip()
        if spelled := word.search(text):
            found.append((line, spelled[0], text))
    return found


def _enclosing(found: Sequence[Definition], line: int) -> str:
    """Return the name of the innermost definition around a line, with what it belongs to."""
    around = [one for one in found if one.line <= line <= one.end_line]
    if not around:
        return ""
    inner = max(around, key=lambda one: (one.depth, one.line))
    return ".".join((*inner.parents, inner.name))
