"""Where a name is defined, or used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

from rlm_rag.indexes.definitions import MAX_SIGNATURE_CHARS, Definition, definitions
from rlm_rag.indexes.requests import Symbol, SymbolsRequest, SymbolsResult
from rlm_rag.lines import split_lines_bytes
from rlm_rag.packed import PackedCorpus

MAX_SYMBOLS = 500

_QUALIFIERS = re.compile(r"\.|::|#|->|\\")


def symbols(
    corpus: PackedCorpus, request: SymbolsRequest, allowed: Callable[[str], bool] | None
) -> SymbolsResult:
    """Return the definitions of a name, in the corpus's order; with `references`, its uses too.

    `Class.method` (or `Class::method`) asks for the method of that class. Where no name is
    spelled so, other capitals are tried, and the note says it. At most 500.
    """
    qualifiers, name = _split(request.name.strip())
    find = _uses if request.references else _defined
    for case in (re.NOFLAG, re.IGNORECASE):
        found = tuple(islice(find(corpus, qualifiers, name, case, allowed), MAX_SYMBOLS + 1))
        if found:
            notes = []
            if case:
                notes.append(f"no {request.name!r} is spelled so: these differ in capitals")
            if len(found) > MAX_SYMBOLS:
                notes.append(f"only the first {MAX_SYMBOLS} are shown; narrow path_glob")
            return SymbolsResult(found[:MAX_SYMBOLS], "; ".join(notes) or None)
    what = "use" if request.references else "definition"
    return SymbolsResult((), f"no {what} of {request.name!r} found; search or grep may find it")


def _split(name: str) -> tuple[tuple[str, ...], str]:
    """Split `a.B.c` into its qualifiers and the name itself; what has spaces is one name."""
    if re.search(r"\s", name):
        return (), name
    pieces = [piece for piece in _QUALIFIERS.split(name.removesuffix("()")) if piece]
    return (tuple(pieces[:-1]), pieces[-1]) if pieces else ((), name)


def _documents(
    corpus: PackedCorpus, name: str, case: int, allowed: Callable[[str], bool] | None
) -> Iterator[tuple[str, bytes]]:
    """Yield the documents in which the name occurs at all."""
    encoded = name.encode("utf-8", "surrogatepass")
    occurs = re.compile(re.escape(encoded), case) if case else None
    for number in range(len(corpus)):
        data = bytes(corpus.content_bytes(number))
        if not (occurs.search(data) if occurs else encoded in data):
            continue
        path = corpus.path(number)
        if allowed is None or allowed(path):
            yield path, data


def _defined(
    corpus: PackedCorpus,
    qualifiers: tuple[str, ...],
    name: str,
    case: int,
    allowed: Callable[[str], bool] | None,
) -> Iterator[Symbol]:
    wanted = name.casefold() if case else name
    for path, data in _documents(corpus, name, case, allowed):
        for one in definitions(path, data):
            spelled = one.name.casefold() if case else one.name
            if spelled == wanted and _is_within(one, path, qualifiers):
                yield Symbol(path, one.line, one.kind, one.name, one.signature)


def _is_within(one: Definition, path: str, qualifiers: tuple[str, ...]) -> bool:
    """Say whether a definition lies in what qualifies it: a class, a receiver, or a module."""
    if not qualifiers:
        return True
    last = qualifiers[-1]
    before, _, _ = one.signature.partition(one.name + "(")
    if any(re.search(rf"(?:^|\W){re.escape(last)}(?:\W|$)", parent) for parent in one.parents):
        return True
    if re.search(rf"(?<!\w){re.escape(last)}(?!\w)", before):
        return True
    stem = path.rpartition("/")[2].partition(".")[0]
    module = path.rpartition("/")[0].rpartition("/")[2]
    return not one.parents and last in (stem, module)


def _uses(
    corpus: PackedCorpus,
    qualifiers: tuple[str, ...],
    name: str,
    case: int,
    allowed: Callable[[str], bool] | None,
) -> Iterator[Symbol]:
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", case)
    for path, data in _documents(corpus, name, case, allowed):
        defined = {one.line: one for one in definitions(path, data)}
        for number, line in enumerate(split_lines_bytes(data), start=1):
            text = line.decode("utf-8", "surrogatepass")
            match = word.search(text)
            if match is None:
                continue
            one = defined.get(number)
            kind = one.kind if one is not None and word.fullmatch(one.name) else "reference"
            shown = text.strip()[:MAX_SIGNATURE_CHARS]
            yield Symbol(path, number, kind, match[0], shown)
