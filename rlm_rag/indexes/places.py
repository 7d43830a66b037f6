"""The places that a grammar's query takes for definitions. Runs where a crash costs nothing else.

A query is run for all documents of its language, and takes as long as the parser: so nothing is
asked of a node that its definition does not need.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tree_sitter import Language, Node, Query, QueryCursor

MAX_NAME_CHARS = 200

_NAME_BYTES = 4 * MAX_NAME_CHARS
_UNNAMED = {"companion": "Companion"}
_WORD = re.compile(r"[\w:~]+")
_KIND = re.compile(r"@(?!name\b)([a-z]\w*)")

Captures = dict[str, list[Node]]


@dataclass(eq=False, slots=True)
class Place:
    """Where a definition is, in bytes of its text.

    What its nodes tell beside that is read by `told`, of those places alone that count. What
    starts from the first of `apart` to before the second holds nothing of it.
    """

    start: int
    end: int
    name_start: int
    name_end: int
    kind: str
    nodes: Captures | None
    name: str = ""
    scope: str = ""
    body: int = -1
    parameters: int = -1
    apart: tuple[int, int] | None = None


class PlaceQuery:
    """Finds the places that the query of a language names.

    Raises:
        ValueError: the query does not fit the grammar, or a pattern names no kind.
    """

    def __init__(self, language: Language, source: str, root: str) -> None:
        anywhere = Query(language, source)
        written = source.encode()
        self._kinds: list[str] = []
        rooted: dict[int, str] = {}
        # A property, which the library's stub calls a method.
        for number in range(anywhere.pattern_count):  # type: ignore[call-overload]
            first = anywhere.start_byte_for_pattern(number)
            last = anywhere.end_byte_for_pattern(number)
            pattern = written[first:last].decode()
            kinds = set(_KIND.findall(pattern))
            if len(kinds) != 1:
                raise ValueError(f"a pattern names one kind, not {sorted(kinds)}: {pattern}")
            self._kinds += kinds
            if re.match(rf"\(+{root}\b", pattern):
                rooted[number] = pattern
                anywhere.disable_pattern(number)
        # Each cursor with the numbers of its patterns. To compile all of them twice would take as
        # long as to start the process.
        self._cursors: list[tuple[QueryCursor, Sequence[int]]] = [
            (QueryCursor(anywhere), range(len(self._kinds)))
        ]
        if rooted:
            at_root = QueryCursor(Query(language, "\n".join(rooted.values())))
            # A pattern that begins at the root is tried at every node of the text while it waits
            # for its next match; of these alone the rest of the tree is left out.
            at_root.set_max_start_depth(0)
            self._cursors.append((at_root, list(rooted)))

    def places(self, root: Node) -> list[Place]:
        """Return each named place once: where patterns agree on it, the first of the file counts.

        They are in no order.
        """
        first: dict[int, tuple[int, Captures]] = {}
        for cursor, numbers in self._cursors:
            for own, nodes in cursor.matches(root):
                number = numbers[own]
                named = nodes.get("name")
                if not named:
                    continue
                at = named[0].start_byte
                known = first.get(at)
                if known is None or number < known[0]:
                    first[at] = (number, nodes)
        kinds = self._kinds
        return [_place(at, kinds[number], nodes) for at, (number, nodes) in first.items()]


def _place(name_start: int, kind: str, nodes: Captures) -> Place:
    node = nodes[kind][0]
    end = node.end_byte
    body = nodes.get("_body")
    if body:
        # Some grammars have the body beside the definition.
        end = max(end, body[0].end_byte)
    return Place(node.start_byte, end, name_start, nodes["name"][0].end_byte, kind, nodes)


def told(place: Place, text: bytes) -> Place:
    """Read the name of a place and its parts from its nodes, once, and return it."""
    nodes = place.nodes
    if nodes is None:
        return place
    place.nodes = None
    start, end = place.name_start, place.name_end
    name = text[start : min(end, start + _NAME_BYTES)].decode("utf-8", "replace")
    if not name.isidentifier() or name in _UNNAMED:
        written = nodes["name"][0].type
        name = _UNNAMED.get(written) or _shown(name, written)
    place.name = (name.removesuffix("=") if place.kind == "alias" else name)[:MAX_NAME_CHARS]
    if "_scope" in nodes:
        scope = nodes["_scope"][0]
        cut = (scope.text or b"")[:_NAME_BYTES]
        place.scope = _shown(cut.decode("utf-8", "replace"), scope.type)
    body = nodes["_body"][0] if "_body" in nodes else _body_of(nodes[place.kind][0])
    if body is not None and body.start_byte >= end:
        place.body = body.start_byte
    if "_parameters" in nodes:
        place.parameters = nodes["_parameters"][0].named_child_count
    return place


def _body_of(node: Node) -> Node | None:
    """Return the body of a definition: what its grammar calls so, or its last part if named so."""
    body = node.child_by_field_name("body")
    if body is not None:
        return body
    count = node.named_child_count
    last = node.named_child(count - 1) if count else None
    return last if last is not None and last.type.endswith(("body", "block")) else None


def _shown(text: str, kind: str) -> str:
    """Return a name without what stands around it, from the text of a node of that kind."""
    if text.isidentifier():
        return text[:MAX_NAME_CHARS]
    if kind == "operator_cast":
        # Its node holds the parameters as well.
        text = text.partition("(")[0]
    if kind == "parenthesized_declarator" and (word := _WORD.search(text)):
        # As in `int (*name(int x))(int)`.
        text = word[0]
    name = " ".join(text.split()).strip("\"'`: ")
    if name[:1] + name[-1:] in ("()", "{}") and len(name) > 2:
        name = name[1:-1].strip()
    return name[:MAX_NAME_CHARS]
