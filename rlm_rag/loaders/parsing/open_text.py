"""The text of OpenDocument XML as Markdown: paragraphs, lists, tables, notes, boxes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from rlm_rag.loaders.parsing.container import (
    Container,
    attribute,
    child,
    children,
    descendants,
    local,
    member_name,
    number,
)
from rlm_rag.loaders.parsing.markdown import heading, one_line, raised, table

_MAX_SPACES = 1_000
_MAX_REPEATED = 200
_MAX_LIST_DEPTH = 20
# What was deleted, what only marks a place, and what is the same on every page.
_UNSEEN = frozenset(
    (
        "tracked-changes",
        "bookmark",
        "annotation-end",
        "soft-page-break",
        "ruby-text",
        "page-number",
    )
)
_HOLDERS = frozenset(
    ("section", "index-body", "table-of-content", "alphabetical-index", "index-title", "g")
)
_TITLE_STYLES = ("Title",)


class TextReader:
    """Reads texts, counting their notes; lists are told by what `root` and `styles` declare."""

    def __init__(self, root: Element, styles: Element, container: Container | None) -> None:
        self._container = container
        self._notes: list[str] = []
        # By their mark, how many notes there are.
        self._counts: Counter[str] = Counter()
        self._boxes: list[str] = []
        self._numbered = {
            (attribute(style, "name"), number(attribute(level, "level"), 1))
            for holder in (root, styles)
            for style in descendants(holder, "list-style")
            for level in children(style, "list-level-style-number")
            if attribute(level, "num-format")
        }
        self._raised = {
            attribute(style, "name")
            for holder in (root, styles)
            for style in descendants(holder, "style")
            for properties in children(style, "text-properties")
            if attribute(properties, "text-position").startswith("super")
        }
        self._parents = {
            attribute(style, "name"): attribute(style, "parent-style-name")
            for holder in (root, styles)
            for style in descendants(holder, "style")
        }

    def document(self, body: Element) -> list[str]:
        """Return the blocks of a text, its notes at the end."""
        blocks = [block for block in self._blocks(body) if block]
        return [*blocks, *self._notes]

    def shape(self, shape: Element) -> Iterator[str]:
        """Yield the blocks of a frame, a box or a group of them."""
        for one in shape:
            name = local(one)
            if name in ("p", "h", "list", "table"):
                yield from self._block(one)
            elif name == "image":
                yield _description(shape)
            elif name == "object":
                yield self._embedded(attribute(one, "href"))
            elif name not in ("desc", "title", "page-thumbnail", "glue-point", "enhanced-geometry"):
                yield from self.shape(one)

    def _embedded(self, reference: str) -> str:
        """Return the numbers that an embedded chart shows."""
        name = member_name("", f"{reference}/content.xml")
        if self._container is None or name not in self._container:
            return ""
        chart = child(self._container.xml(name), "body", "chart", "chart")
        found = next(descendants(chart, "table"), None) if chart is not None else None
        if found is None:
            return ""
        rows = table([self._row(row) for row in rows_of(found)])
        title = child(chart, "title", "p")
        shown = one_line(f"Chart: {self._inline(title)}" if title is not None else "Chart")
        return f"{shown}\n\n{rows}"

    def cell(self, cell: Element) -> str:
        """Return a cell's paragraphs on one line."""
        return one_line(" ".join(self._paragraphs(cell)))

    def _paragraphs(self, holder: Element) -> Iterator[str]:
        for one in holder:
            if local(one) in ("p", "h"):
                yield self._inline(one)
                boxes, self._boxes = self._boxes, []
                yield from boxes
            elif local(one) == "annotation":
                yield f"[comment: {self._annotation(one)}]"
            else:
                yield from self._paragraphs(one)

    def _blocks(self, holder: Element) -> Iterator[str]:
        for one in holder:
            yield from self._block(one)

    def _block(self, element: Element) -> Iterator[str]:
        name = local(element)
        if name in ("p", "h"):
            text = self._inline(element).strip()
            level = number(attribute(element, "outline-level"), 1) if name == "h" else 0
            style = attribute(element, "style-name")
            if style in _TITLE_STYLES or self._parents.get(style) in _TITLE_STYLES:
                level = 1
            yield heading(level, text) if level else text
            boxes, self._boxes = self._boxes, []
            yield from boxes
        elif name == "list":
            yield "\n".join(self._list(element, "", 1))
        elif name == "table":
            yield table([self._row(row) for row in rows_of(element)])
        elif name == "frame":
            yield from self.shape(element)
        elif name in _HOLDERS:
            yield from self._blocks(element)

    def _list(self, element: Element, style: str, depth: int) -> Iterator[str]:
        style = attribute(element, "style-name") or style
        numbered = (style, depth) in self._numbered
        indent = "  " * min(depth - 1, _MAX_LIST_DEPTH)
        count = 0
        for item in children(element, "list-item", "list-header"):
            start = attribute(item, "start-value")
            count = number(start) if start else count + 1
            marker = f"{count}. " if numbered else "- "
            for one in item:
                if local(one) == "list":
                    yield from self._list(one, style, depth + 1)
                    continue
                for block in self._block(one):
                    text = block.lstrip("# ").replace("\n", f"\n{indent}  ")
                    if text:
                        yield f"{indent}{marker}{text}"
                        marker = "  "

    def _row(self, row: Element) -> list[str]:
        cells: list[str] = []
        for cell in children(row, "table-cell", "covered-table-cell"):
            repeated = min(number(attribute(cell, "number-columns-repeated"), 1), _MAX_REPEATED)
            text = self.cell(cell) if local(cell) == "table-cell" else ""
            cells += [text] * max(repeated, 1)
        return cells

    def _inline(self, element: Element) -> str:
        pieces = [element.text or ""]
        for one in element:
            pieces.append(self._piece(one))
            pieces.append(one.tail or "")
        # Line breaks of the file mean a space; those of the text come as elements.
        return "".join(pieces)

    def _piece(self, one: Element) -> str:
        name = local(one)
        if name == "s":
            return " " * min(number(attribute(one, "c"), 1), _MAX_SPACES)
        if name == "tab":
            return "\t"
        if name == "line-break":
            return "\n"
        if name == "note":
            return self._note(one)
        if name == "annotation":
            return self._noted("c", f"comment: {self._annotation(one)}")
        if name in ("frame", "custom-shape", "text-box", "g"):
            self._boxes += [block for block in self.shape(one) if block]
            return ""
        if name == "a":
            return _link(self._inline(one), attribute(one, "href"))
        if name in _UNSEEN:
            return ""
        if name == "span" and attribute(one, "style-name") in self._raised:
            text = self._inline(one)
            return text if text.startswith("[^") else raised(text)
        return self._inline(one)

    def _note(self, note: Element) -> str:
        body = child(note, "note-body")
        text = one_line(" ".join(self._paragraphs(body))) if body is not None else ""
        return self._noted("e" if attribute(note, "note-class") == "endnote" else "", text)

    def _noted(self, mark: str, text: str) -> str:
        self._counts[mark] += 1
        reference = f"[^{mark}{self._counts[mark]}]"
        self._notes.append(f"{reference}: {text}")
        return reference

    def _annotation(self, element: Element) -> str:
        creator = child(element, "creator")
        texts = (self._inline(one) for one in descendants(element, "p"))
        author = creator.text if creator is not None and creator.text else ""
        return one_line(f"{author}: {' '.join(texts)}" if author else " ".join(texts))


def rows_of(element: Element) -> Iterator[Element]:
    """Yield a table's rows, also those in groups and heads."""
    for one in element:
        name = local(one)
        if name == "table-row":
            yield one
        elif name in ("table-header-rows", "table-rows", "table-row-group"):
            yield from rows_of(one)


def _link(text: str, target: str) -> str:
    external = target.startswith(("http://", "https://", "ftp://", "mailto:"))
    if not external or not text.strip() or text.strip() in (target, target.removeprefix("mailto:")):
        return text
    return f"[{text}]({target})"


def _description(frame: Element) -> str:
    found = child(frame, "desc")
    if found is None:
        found = child(frame, "title")
    text = one_line(found.text or "") if found is not None else ""
    return f"[image: {text}]" if text else ""
