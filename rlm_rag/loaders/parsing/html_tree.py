"""HTML to a tree, as forgiving as browsers are: unclosed, misnested and endless tags included."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

MAX_DEPTH = 250
"""Deeper elements become siblings, as Chromium's parser has it from 512 on."""

_VOID = frozenset(
    re.findall(
        r"\w+",
        """
        area base br col embed hr img input link meta param source track wbr
        """,
    )
)
_CLOSES_PARAGRAPH = frozenset(
    re.findall(
        r"\w+",
        """
        address article aside blockquote details div dl fieldset figcaption figure footer form h1 h2
        h3 h4 h5 h6 header hr main menu nav ol p pre section table ul li dt dd
        """,
    )
)
# By tag: which open elements it ends, and at which the search for them stops.
_LIST_ENDS = frozenset(("ul", "ol", "menu"))
_TABLE_ENDS = frozenset(("table",))
_IMPLIED_ENDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "li": (frozenset(("li",)), _LIST_ENDS),
    "dt": (frozenset(("dt", "dd")), frozenset(("dl",))),
    "dd": (frozenset(("dt", "dd")), frozenset(("dl",))),
    "td": (frozenset(("td", "th")), frozenset(("tr", "table"))),
    "th": (frozenset(("td", "th")), frozenset(("tr", "table"))),
    "tr": (frozenset(("tr", "caption", "colgroup")), _TABLE_ENDS),
    "tbody": (frozenset(("thead", "tbody", "tfoot", "caption", "colgroup")), _TABLE_ENDS),
    "tfoot": (frozenset(("thead", "tbody", "caption", "colgroup")), _TABLE_ENDS),
    "option": (frozenset(("option",)), frozenset(("select", "datalist"))),
    "body": (frozenset(("head",)), frozenset()),
}
_SCOPES = frozenset(("table", "td", "th", "html", "template"))


@dataclass(slots=True)
class Node:
    """An element; `children` are elements and pieces of text."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        """Yield this element and all beneath it, in order."""
        pending = [self]
        while pending:
            node = pending.pop()
            yield node
            pending += [one for one in reversed(node.children) if isinstance(one, Node)]

    def text(self, *, line_break: str = "") -> str:
        """Return all text beneath it; `line_break` is what a `br` is."""
        pieces: list[str] = []
        pending: list[Node | str] = [self]
        while pending:
            one = pending.pop()
            if isinstance(one, str):
                pieces.append(one)
            elif one.tag == "br":
                pieces.append(line_break)
            else:
                pending += reversed(one.children)
        return "".join(pieces)


def parse_html(text: str) -> Node:
    """Return the tree of an HTML text; whatever it is, it has one."""
    builder = _Builder()
    # No tag ends after the last bracket; looking for its end from each one takes for ever.
    end = text.rfind(">") + 1
    builder.feed(text[:end] + text[end:].replace("<", "&lt;"))
    builder.close()
    return builder.root


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("")
        self._open = [self.root]
        # How many elements of a tag are open, since most of the time none is.
        self._counts: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _CLOSES_PARAGRAPH:
            self._end_open(frozenset(("p",)), _SCOPES | _LIST_ENDS)
        if tag in _IMPLIED_ENDS:
            self._end_open(*_IMPLIED_ENDS[tag])
        node = Node(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(node)
        if tag not in _VOID and len(self._open) < MAX_DEPTH:
            self._open.append(node)
            self._counts[tag] += 1

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        stops = _SCOPES - {tag} if tag not in ("table", "body", "html") else frozenset[str]()
        self._end_open(frozenset((tag,)), stops)

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    def unknown_decl(self, data: str) -> None:
        if data.startswith("CDATA["):
            self.handle_data(data.removeprefix("CDATA["))

    def _end_open(self, tags: frozenset[str], stops: frozenset[str]) -> None:
        """End the innermost open element of these tags, unless another ends the search."""
        if not any(map(self._counts.get, tags)):
            return
        for at in range(len(self._open) - 1, 0, -1):
            if self._open[at].tag in tags:
                self._counts.subtract(node.tag for node in self._open[at:])
                del self._open[at:]
                return
            if self._open[at].tag in stops:
                return
