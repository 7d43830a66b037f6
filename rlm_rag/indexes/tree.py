"""The definitions of a document by its grammar. Runs where a crash costs nothing else."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tree_sitter import Language, Node, Parser, Query, QueryCursor

from rlm_rag.errors import MissingExtraError
from rlm_rag.indexes.grammars import EXTRA, Grammar
from rlm_rag.indexes.signatures import doc_above, doc_inside, signature
from rlm_rag.indexes.skeleton import Definition

MAX_DEFINITIONS = 50_000
MAX_NAME_CHARS = 200

_QUERIES = Path(__file__).with_name("queries")
_RUNS_CODE = frozenset(("function", "method", "macro"))
_HOLDS_METHODS = frozenset(
    ("class", "struct", "interface", "trait", "impl", "object", "enum", "record", "protocol")
)
# Inside a function these are its own affair.
_STATE = frozenset(("variable", "constant", "field", "property"))
_MEMBERS = {"function": "method", "variable": "field"}
_UNDOCUMENTED = frozenset(("variable", "field", "enumerator", "heading", "key"))
_QUALIFIED = frozenset(("function", "method", "class", "struct", "variable", "constant", "type"))
_QUALIFIER = re.compile(r"(?P<scope>.+?)(?:::|\.|:)(?P<name>operator\b.*|~?\w+[?!=]?)", re.DOTALL)
_SPACES = re.compile(r"\s+")


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


@dataclass(frozen=True, slots=True)
class _Loaded:
    parser: Parser
    cursor: QueryCursor


def parsed(data: bytes, grammar: Grammar) -> list[Definition]:
    """Return the definitions of a text, in its order; at most 50,000.

    Raises:
        MissingExtraError: the grammar is not installed.
    """
    text = data.replace(b"\r", b"\n") if b"\r" in data and b"\n" not in data else data
    loaded = _loaded(grammar)
    tree = loaded.parser.parse(text)
    found = sorted(_found(loaded.cursor, tree.root_node), key=lambda one: (one.start, -one.end))
    return list(_nested(found, text, grammar))[:MAX_DEFINITIONS]


@cache
def _loaded(grammar: Grammar) -> _Loaded:
    try:
        if grammar.wheel:
            module = importlib.import_module(grammar.wheel)
            language = Language(getattr(module, grammar.function)())
        else:
            pack = importlib.import_module("tree_sitter_language_pack")
            language = pack.get_language(grammar.pack or grammar.name)
    except ImportError as error:
        raise MissingExtraError(
            f"the grammar of {grammar.name} is not installed ({error})", hint=EXTRA
        ) from error
    source = (_QUERIES / f"{grammar.query or grammar.name}.scm").read_text("utf-8")
    return _Loaded(Parser(language), QueryCursor(Query(language, source)))


def _found(cursor: QueryCursor, root: Node) -> Iterator[_Found]:
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
    for _, captures in first.values():
        yield _one(captures)


def _one(captures: dict[str, list[Node]]) -> _Found:
    name = captures["name"][0]
    kind = next(key for key in captures if key != "name" and key[0] != "_")
    node = captures[kind][0]
    body = captures.get("_body")
    inside = body[0] if body else node.child_by_field_name("body")
    scope = captures.get("_scope")
    return _Found(
        node.start_byte,
        node.end_byte,
        name.start_point[0],
        node.start_point[0],
        node.end_point[0] - (node.end_point[1] == 0 and node.end_point[0] > name.start_point[0]),
        kind,
        _text(name),
        name.end_byte,
        _text(scope[0]) if scope else "",
        inside.start_byte if inside is not None and inside.start_byte >= name.end_byte else -1,
    )


def _text(node: Node) -> str:
    text = (node.text or b"")[: 4 * MAX_NAME_CHARS].decode("utf-8", "replace")
    return _SPACES.sub(" ", text).strip("\"'`: ")[:MAX_NAME_CHARS]


def _nested(found: Sequence[_Found], text: bytes, grammar: Grammar) -> Iterator[Definition]:
    lines = text.split(b"\n")
    enclosing: list[_Found] = []
    stated: set[tuple[int, str]] = set()
    for one in found:
        while enclosing and enclosing[-1].end <= one.start:
            enclosing.pop()
        if not one.name:
            continue
        if one.kind in _STATE:
            if any(outer.kind in _RUNS_CODE for outer in enclosing):
                continue
            # Set again, it is still the same.
            place = (enclosing[-1].start if enclosing else -1, one.name)
            if place in stated:
                continue
            stated.add(place)
        _qualify(one)
        inside = bool(enclosing) and enclosing[-1].kind in _HOLDS_METHODS
        kind = _MEMBERS.get(one.kind, one.kind) if inside or one.scope else one.kind
        parents = [outer.name for outer in enclosing]
        parents += [part for part in re.split(r"::|\.|:", one.scope) if part]
        yield Definition(
            one.row + 1,
            kind,
            one.name,
            signature(text, one.start, one.name_end, one.body, takes=kind not in _STATE),
            tuple(parents),
            len(enclosing),
            one.end_row + 1,
            "" if kind in _UNDOCUMENTED else _doc(one, text, lines, grammar),
        )
        enclosing.append(one)


def _qualify(one: _Found) -> None:
    if one.kind in _QUALIFIED and (match := _QUALIFIER.fullmatch(one.name)):
        one.scope = ".".join(part for part in (one.scope, match["scope"]) if part)
        one.name = match["name"]


def _doc(one: _Found, text: bytes, lines: Sequence[bytes], grammar: Grammar) -> str:
    if grammar.inside:
        return doc_inside(text, one.body) if one.body >= 0 else ""
    return doc_above(lines, one.first_row, grammar.comment)
