"""The definitions of a document by its grammar. Runs where a crash costs nothing else."""

from __future__ import annotations

import importlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

from tree_sitter import Language, Node, Parser, Range

from rlm_rag.errors import MissingExtraError
from rlm_rag.indexes.cuts import Cut, without_bodies
from rlm_rag.indexes.grammars import EXTRA, Grammar
from rlm_rag.indexes.macros import without_macros
from rlm_rag.indexes.nesting import STATE, Source, nested, starts_of, without_clauses
from rlm_rag.indexes.places import Place, PlaceQuery, told
from rlm_rag.indexes.repairs import Branch, branches, readable, repaired
from rlm_rag.indexes.skeleton import Definition, Row

MAX_DEFINITIONS = 50_000
# Nodes looked at for what could not be read: more, and the text is of another language.
_MOST_BROKEN = 5_000

# Where a grammar missed one of these, it may have taken parts of a text for others. A closing brace
# too many is one too many in the whole text as well.
_ENDS = re.compile(rb"\{|\bend\b")
_MISSING_ENDS = frozenset(("{", "}", "end"))

_QUERIES = Path(__file__).with_name("queries")


@dataclass(frozen=True, slots=True)
class _Loaded:
    parser: Parser
    query: PlaceQuery


def parsed(data: bytes, grammar: Grammar) -> list[Definition]:
    """Return the definitions of a text, in its order; at most 50,000.

    What a grammar cannot read is scanned lexically for the definitions in it.

    Raises:
        MissingExtraError: the grammar is not installed.
    """
    return [Definition(*row) for row in parsed_rows(data, grammar)]


def parsed_rows(data: bytes, grammar: Grammar) -> list[Row]:
    """Return what `parsed` does, as rows: to make definitions of them is for who needs them.

    Raises:
        MissingExtraError: the grammar is not installed.
    """
    text = data.replace(b"\r", b"\n") if b"\r" in data and b"\n" not in data else data
    loaded = _loaded(grammar)
    lines = text.split(b"\n")
    source = Source(text, lines, starts_of(lines), grammar)
    if grammar.preprocessed:
        found, broken = _preprocessed(loaded, source)
    else:
        found, broken = _read(loaded, text, source)
    if broken:
        found = _joined(found, _scanned(source, broken), source)
    found.sort(key=lambda one: (one.start, -one.end))
    if grammar.clauses:
        found = without_clauses(found, text)
    return list(islice(nested(found, source), MAX_DEFINITIONS))


def _read(loaded: _Loaded, text: bytes, source: Source) -> tuple[list[Place], set[int]]:
    """Return what the grammar finds in a text as long as the source, and the rows it cannot read.

    Bodies of functions that define nothing are not parsed, unless the rest cannot be read then.
    """
    text = readable(text, source.grammar.name)
    cut = without_bodies(text, source.grammar.name)
    if cut is not None:
        root = loaded.parser.parse(cut.text).root_node
        broken = _broken(root)
        if not any(_concerns(cut, node) for node in broken):
            return cut.restored(loaded.query.places(root)), _rows(broken, source, cut)
    root = loaded.parser.parse(text).root_node
    found, broken = loaded.query.places(root), _broken(root)
    other = repaired(text, source.grammar.name) if broken else None
    if other is not None:
        cut, apart = other
        root = loaded.parser.parse(cut.text).root_node
        left = _broken(root)
        if _unread(left) < _unread(broken):
            others = _of_branches(found, apart, text)
            found = _joined(cut.restored(loaded.query.places(root)), others, source)
            return found, _rows(left, source, cut)
    return found, _rows(broken, source)


def _broken(root: Node) -> list[Node]:
    broken: list[Node] = []
    waiting = [root] if root.has_error else []
    for _ in range(_MOST_BROKEN):
        if not waiting:
            break
        node = waiting.pop()
        if node.is_error or node.is_missing:
            broken.append(node)
        else:
            waiting.extend(child for child in node.children if child.has_error)
    return broken


def _unread(broken: Sequence[Node]) -> tuple[int, int]:
    """Return how many bytes could not be read, and in how many places; to be compared."""
    return sum(node.end_byte - node.start_byte for node in broken), len(broken)


def _concerns(cut: Cut, node: Node) -> bool:
    """Whether what could not be read may be so for what was left out, or for where it ends."""
    start, end = node.start_byte, node.end_byte
    ends = _ENDS.search(cut.text, start, end) or node.type in _MISSING_ENDS
    # Of a body that indents end too early, what is left shows further on.
    return bool(ends or cut.joint) or cut.is_cut(start, end)


def _rows(nodes: Iterable[Node], source: Source, cut: Cut | None = None) -> set[int]:
    rows: set[int] = set()
    for node in nodes:
        start, end = node.start_byte, node.end_byte
        if cut is not None:
            start, end = cut.offset(start), cut.offset(end)
        rows.update(range(source.row_at(start), source.row_at(end) + 1))
    return rows


def _preprocessed(loaded: _Loaded, source: Source) -> tuple[list[Place], set[int]]:
    """Do what `_read` does for the first branch of each conditional, and add the others."""
    text, starts = without_macros(source.text, source.grammar.name)
    first, others = branches(text, source.grammar.name)
    found, broken = _read(loaded, first, source)
    for one in found:
        told(one, first)
        if one.kind == "macro":
            # What is blanked behind it is not of it.
            one.end = one.start + len(first[one.start : one.end].rstrip())
    if others:
        parser = Parser(loaded.parser.language, included_ranges=_ranges(others, source))
        beside = loaded.query.places(parser.parse(text).root_node)
        found = _joined(found, _of_branches(beside, others, text), source)
    for one in found:
        one.start = starts.get(one.start, one.start)
    return found, broken


def _ranges(apart: Iterable[Branch], source: Source) -> list[Range]:
    bounds = ((one.start, one.end) for one in apart)
    return [Range(source.point(start), source.point(end), start, end) for start, end in bounds]


def _of_branches(places: Iterable[Place], apart: Sequence[Branch], text: bytes) -> Iterator[Place]:
    """Yield the places in branches, each ending there; `text` is what they were found in."""
    starts = [one.start for one in apart]
    for one in places:
        at = bisect_right(starts, one.name_start) - 1
        if at >= 0 and one.name_start < apart[at].end:
            told(one, text)
            # What closes it may stand in another branch.
            one.end = min(one.end, apart[at].end)
            one.apart = apart[at].since, apart[at].start
            yield one


def _joined(found: list[Place], others: Iterable[Place], source: Source) -> list[Place]:
    """Return what was found, and of the others what stands on a line where that name is not."""
    others = [told(one, source.text) for one in others]
    names = {one.name for one in others}
    # To look up the row of a place takes longer than its name.
    known = {
        (source.row_at(one.name_start), one.name)
        for one in found
        if told(one, source.text).name in names
    }
    return found + [one for one in others if (source.row_at(one.name_start), one.name) not in known]


def _scanned(source: Source, rows: set[int]) -> Iterator[Place]:
    """Yield the definitions that a lexical scan finds on some rows."""
    # Not before it is needed: its patterns take a while to compile.
    from rlm_rag.indexes.definitions import definitions

    text, starts = source.text, source.starts
    only: list[bytes] = []
    numbers: list[int] = []
    for number in sorted(rows):
        if numbers and number > numbers[-1] + 1:
            # What comes next does not go on with it.
            only.append(b"")
            numbers.append(number - 1)
        only.append(source.lines[number])
        numbers.append(number)
    scanned = b"\n".join(only) + b"\n"
    for one in definitions(f"a{source.grammar.suffixes[0]}", scanned):
        if one.kind in STATE or one.kind == "definition":
            continue
        row = numbers[one.line - 1]
        start = starts[row]
        if source.grammar.preprocessed and text[start : start + 1] in (b" ", b"\t"):
            # Where braces were lost, what is indented may as well be a call.
            continue
        end = starts[row + 1] - 1 if row + 1 < len(starts) else len(text)
        name_end = text.find(one.name.encode(), start) + len(one.name.encode())
        yield Place(start, end, start, max(start, name_end), one.kind, None, one.name)


@cache
def language_of(grammar: Grammar) -> Language:
    """Return what tree-sitter parses a language by.

    Raises:
        MissingExtraError: the grammar is not installed.
    """
    try:
        if grammar.wheel:
            module = importlib.import_module(grammar.wheel)
            return Language(getattr(module, grammar.function)())
        pack = importlib.import_module("tree_sitter_language_pack")
        language: Language = pack.get_language(grammar.pack or grammar.name)
        return language
    except ImportError as error:
        raise MissingExtraError(
            f"the grammar of {grammar.name} is not installed ({error})", hint=EXTRA
        ) from error


@cache
def _loaded(grammar: Grammar) -> _Loaded:
    language = language_of(grammar)
    written = (_QUERIES / f"{grammar.query or grammar.name}.scm").read_text("utf-8")
    parser = Parser(language)
    return _Loaded(parser, PlaceQuery(language, written, parser.parse(b"").root_node.type))


def why_not(grammar: Grammar) -> str | None:
    """Return why a grammar cannot be used here, None where it can."""
    try:
        _loaded(grammar)
    except (MissingExtraError, ValueError, AttributeError, OSError) as error:
        # ValueError: a grammar of another tree-sitter, or one that its query does not fit.
        return str(error)
    return None
