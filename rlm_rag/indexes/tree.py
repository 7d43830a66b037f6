"""The definitions of a document by its grammar. Runs where a crash costs nothing else."""

from __future__ import annotations

import importlib
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tree_sitter import Language, Node, Parser, Query, QueryCursor

from rlm_rag.errors import MissingExtraError
from rlm_rag.indexes.grammars import EXTRA, Grammar
from rlm_rag.indexes.repairs import branch_end, branches, without_macros
from rlm_rag.indexes.signatures import doc_above, doc_inside, signature
from rlm_rag.indexes.skeleton import Definition
from rlm_rag.lines import line_starts

MAX_DEFINITIONS = 50_000
MAX_NAME_CHARS = 200
# Nodes looked at for what could not be read: more, and the text is of another language.
_MOST_BROKEN = 5_000

_QUERIES = Path(__file__).with_name("queries")
_RUNS_CODE = frozenset(("function", "method", "macro"))
_HOLDS_METHODS = frozenset(
    (
        *("class", "struct", "interface", "trait", "impl", "object", "enum", "record", "protocol"),
        "extension",
    )
)
_STATE = frozenset(("variable", "constant", "field", "property"))
_SMALL = _STATE | {"enumerator"}
# Of these the name is the signature: several share what they stand for.
_NAMED_ALONE = frozenset(("rule",))
# Inside a function these are its own affair.
_LOCAL = frozenset(("variable", "constant", "property", "declaration"))
_MEMBERS = {"function": "method", "declaration": "method", "variable": "field"}
_UNNAMED = {"companion": "Companion"}
_UNDOCUMENTED = frozenset(("variable", "field", "enumerator", "heading", "key"))
_QUALIFIED = frozenset(("function", "method", "class", "struct", "variable", "constant", "type"))
_QUALIFIER = re.compile(r"(?P<scope>.+?)(?:::|\.|:)(?P<name>operator\b.*|~?\w+[?!=]?)", re.DOTALL)


@dataclass(slots=True)
class _Found:
    start: int
    end: int
    row: int
    first_row: int
    end_row: int
    kind: str
    name: str
    name_end: int
    scope: str
    body: int
    parameters: int = -1


@dataclass(frozen=True, slots=True)
class _Loaded:
    parser: Parser
    cursor: QueryCursor


def parsed(data: bytes, grammar: Grammar) -> list[Definition]:
    """Return the definitions of a text, in its order; at most 50,000.

    What a grammar cannot read is scanned lexically for the definitions in it.

    Raises:
        MissingExtraError: the grammar is not installed.
    """
    text = data.replace(b"\r", b"\n") if b"\r" in data and b"\n" not in data else data
    loaded = _loaded(grammar)
    starts = line_starts(text)
    if grammar.preprocessed:
        first, others = branches(without_macros(text), grammar.name)
        found, broken = _read(loaded, first, starts)
        if others is not None:
            found = _joined(found, _within_branches(_read(loaded, others, starts)[0], text))
    else:
        found, broken = _read(loaded, text, starts)
    if broken:
        found = _joined(found, _scanned(text, broken, starts, grammar))
    found.sort(key=lambda one: (one.start, -one.end))
    if grammar.clauses:
        found = _without_clauses(found)
    return list(_nested(found, text, grammar))[:MAX_DEFINITIONS]


def _read(loaded: _Loaded, text: bytes, starts: Sequence[int]) -> tuple[list[_Found], set[int]]:
    """Return what the grammar finds, and the rows that it could not read."""
    root = loaded.parser.parse(text).root_node
    broken: set[int] = set()
    waiting = [root] if root.has_error else []
    for _ in range(_MOST_BROKEN):
        if not waiting:
            break
        node = waiting.pop()
        if node.is_error or node.is_missing:
            broken.update(range(node.start_point[0], node.end_point[0] + 1))
        else:
            waiting.extend(child for child in node.children if child.has_error)
    return list(_found(loaded.cursor, root, text, starts)), broken


def _within_branches(found: list[_Found], text: bytes) -> list[_Found]:
    """End each definition with its branch: what closes it may stand in another."""
    for one in found:
        end = branch_end(text, one.name_end)
        if end < one.end:
            one.end = end
            one.end_row = one.row + text.count(b"\n", one.name_end, end - 1)
    return found


def _joined(found: list[_Found], others: list[_Found]) -> list[_Found]:
    """Return what was found, and of the others what stands on a line where that name is not."""
    known = {(one.row, one.name) for one in found}
    return found + [one for one in others if (one.row, one.name) not in known]


def _scanned(text: bytes, rows: set[int], starts: Sequence[int], grammar: Grammar) -> list[_Found]:
    """Return the definitions that a lexical scan finds on some rows."""
    # Not before it is needed: its patterns take a while to compile.
    from rlm_rag.indexes.definitions import definitions

    lines = text.split(b"\n")
    only = b"\n".join(line if row in rows else b"" for row, line in enumerate(lines))
    found = []
    for one in definitions(f"a{grammar.suffixes[0]}", only):
        if one.kind in _STATE or one.kind == "definition":
            continue
        start = starts[one.line - 1]
        if grammar.preprocessed and text[start : start + 1] in (b" ", b"\t"):
            # Where braces were lost, what is indented may as well be a call.
            continue
        end = starts[one.line] - 1 if one.line < len(starts) else len(text)
        name_end = text.find(one.name.encode(), start) + len(one.name.encode())
        row = one.line - 1
        found.append(
            _Found(start, end, row, row, row, one.kind, one.name, max(start, name_end), "", -1)
        )
    return found


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
    source = (_QUERIES / f"{grammar.query or grammar.name}.scm").read_text("utf-8")
    return _Loaded(Parser(language), QueryCursor(Query(language, source)))


def why_not(grammar: Grammar) -> str | None:
    """Return why a grammar cannot be used here, None where it can."""
    try:
        _loaded(grammar)
    except (MissingExtraError, ValueError, AttributeError, OSError) as error:
        # ValueError: a grammar of another tree-sitter, or one that its query does not fit.
        return str(error)
    return None


def _found(cursor: QueryCursor, root: Node, text: bytes, starts: Sequence[int]) -> Iterator[_Found]:
    """Yield each named place once: where patterns agree on it, the first of the file counts."""
    first: dict[int, tuple[int, dict[str, list[Node]]]] = {}
    for number, captures in cursor.matches(root):
        named = captures.get("name")
        if not named:
            continue
        at = named[0].start_byte
        known = first.get(at)
        if known is None or number < known[0]:
            first[at] = (number, captures)
    for at, (_, captures) in first.items():
        yield _one(captures, at, text, starts)


def _one(
    captures: dict[str, list[Node]], name_start: int, text: bytes, starts: Sequence[int]
) -> _Found:
    name = captures["name"][0]
    name_end = name.end_byte
    kind = next(key for key in captures if key != "name" and key[0] != "_")
    written = text[name_start : min(name_end, name_start + 4 * MAX_NAME_CHARS)]
    named = written.decode("utf-8", "replace")
    if not named.isidentifier() or named in _UNNAMED:
        named = _UNNAMED.get(name.type) or _shown(named, name.type)
    node = captures[kind][0]
    start, end = node.start_byte, node.end_byte
    body = captures.get("_body")
    inside = body[0] if body else _body_of(node)
    body_start = -1 if inside is None else inside.start_byte
    if body:
        # Some grammars have the body beside the definition.
        end = max(end, body[0].end_byte)
    scope = captures.get("_scope")
    row = bisect_right(starts, name_start) - 1
    # Points of the tree would tell rows as well, and take three times as long to make.
    return _Found(
        start,
        end,
        row,
        row if start == name_start else bisect_right(starts, start, 0, row + 1) - 1,
        bisect_right(starts, max(end - 1, name_start), row) - 1,
        kind,
        named.removesuffix("=")[:MAX_NAME_CHARS] if kind == "alias" else named[:MAX_NAME_CHARS],
        name_end,
        _text(scope[0]) if scope else "",
        body_start if body_start >= name_end else -1,
        captures["_parameters"][0].named_child_count if "_parameters" in captures else -1,
    )


def _body_of(node: Node) -> Node | None:
    """Return the body of a definition: what its grammar calls so, or its last part if named so."""
    body = node.child_by_field_name("body")
    if body is not None or not node.named_child_count:
        return body
    last = node.named_child(node.named_child_count - 1)
    return last if last is not None and last.type.endswith(("body", "block")) else None


def _text(node: Node) -> str:
    return _shown((node.text or b"")[: 4 * MAX_NAME_CHARS].decode("utf-8", "replace"), node.type)


def _shown(text: str, kind: str) -> str:
    """Return a name without what stands around it, from the text of a node of that kind."""
    if text.isidentifier():
        return text[:MAX_NAME_CHARS]
    if kind == "operator_cast":
        # Its node holds the parameters as well.
        text = text.partition("(")[0]
    shown = " ".join(text.split()).strip("\"'`: ")
    if shown[:1] + shown[-1:] in ("()", "{}") and len(shown) > 2:
        shown = shown[1:-1].strip()
    return shown[:MAX_NAME_CHARS]


def _without_clauses(found: Sequence[_Found]) -> list[_Found]:
    """Join the clauses of a function, which follow each other, to the first of them."""
    kept: list[_Found] = []
    for one in found:
        last = kept[-1] if kept else None
        same = last and _identity(last) == _identity(one)
        if last and same and last.end <= one.start:
            last.end, last.end_row = one.end, one.end_row
        else:
            kept.append(one)
    return kept


def _identity(one: _Found) -> tuple[str, str, int]:
    return one.kind, one.name, one.parameters


def _nested(found: Sequence[_Found], text: bytes, grammar: Grammar) -> Iterator[Definition]:
    lines = text.split(b"\n")
    enclosing: list[_Found] = []
    stated: set[tuple[int, str]] = set()
    for one in found:
        while enclosing and (enclosing[-1].end <= one.start or _same(enclosing[-1], one)):
            enclosing.pop()
        if not one.name:
            continue
        if one.kind in _LOCAL and enclosing and enclosing[-1].kind in _RUNS_CODE:
            continue
        if one.kind in _STATE:
            # Set again, it is still the same.
            place = (enclosing[-1].start if enclosing else -1, one.name)
            if place in stated:
                continue
            stated.add(place)
        _qualify(one, grammar)
        inside = bool(enclosing) and enclosing[-1].kind in _HOLDS_METHODS
        kind = _MEMBERS.get(one.kind, one.kind) if inside or one.scope else one.kind
        last = max(one.end, one.name_end) if kind in _SMALL else -1
        parents = [outer.name for outer in enclosing]
        if one.scope:
            parents += [part for part in re.split(r"::|\.|:", one.scope) if part]
        yield Definition(
            one.row + 1,
            kind,
            one.name,
            one.name
            if kind in _NAMED_ALONE
            else signature(text, one.start, one.name_end, one.body, last=last),
            tuple(parents),
            len(enclosing),
            one.end_row + 1,
            "" if kind in _UNDOCUMENTED else _doc(one, text, lines, grammar),
        )
        enclosing.append(one)


def _same(one: _Found, other: _Found) -> bool:
    """Whether both are named by one declaration, as `a` and `b` of `let a, b`."""
    return (one.start, one.end) == (other.start, other.end)


def _qualify(one: _Found, grammar: Grammar) -> None:
    if grammar.dotted or one.name.isidentifier() or one.kind not in _QUALIFIED:
        return
    if match := _QUALIFIER.fullmatch(one.name):
        one.scope = ".".join(part for part in (one.scope, match["scope"]) if part)
        one.name = match["name"]


def _doc(one: _Found, text: bytes, lines: Sequence[bytes], grammar: Grammar) -> str:
    if grammar.inside:
        return doc_inside(text, one.body) if one.body >= 0 else ""
    return doc_above(lines, one.first_row, grammar.comment)
