"""Word documents (DOCX): headings, lists, tables, footnotes and comments as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from rlm_rag.loaders.parsing.container import (
    Container,
    attribute,
    child,
    descendants,
    local,
    number,
)
from rlm_rag.loaders.parsing.markdown import heading, one_line, raised, table
from rlm_rag.loaders.parsing.numbering import Numbering
from rlm_rag.loaders.parsing.office import (
    graphic_texts,
    main_part,
    office_properties,
    picture_text,
    without_fallbacks,
)
from rlm_rag.loaders.parsing.parts import ParsedDocument, single
from rlm_rag.loaders.parsing.word_styles import Styles

# Text that was deleted or moved away, field codes, and what other programs embed.
_SKIPPED = frozenset(("del", "moveFrom", "instrText", "delText", "object", "altChunk"))
_NOTES = {"footnoteReference": "", "endnoteReference": "e", "commentReference": "c"}
_PAGE_TEXTS = {"headerReference": "Header", "footerReference": "Footer"}
_NOTE_PARTS = {"footnotes": "", "endnotes": "e", "comments": "c"}


def parse(data: bytes) -> ParsedDocument:
    """Read the body, then the headers and footers of its pages once each, notes and comments.

    Raises:
        DocumentError: it is no DOCX, encrypted or damaged.
    """
    container = Container(data)
    return single(_Reader(container, main_part(container)).text())


class _Reader:
    def __init__(self, container: Container, main: str) -> None:
        self._container = container
        self._main = main
        self._relations = container.relations(main)
        parts = {one.kind: one.target for one in self._relations.values() if not one.external}
        self._parts = parts
        self._styles = Styles(container.optional_xml(parts.get("styles", "")))
        self._numbering = Numbering(container.optional_xml(parts.get("numbering", "")))
        # By the mark of a note, then its id, its number, counted as its reference is met.
        self._note_numbers: dict[str, dict[str, int]] = {}
        # What stands in a box, drawn at a paragraph, follows it.
        self._boxes: list[str] = []

    def text(self) -> str:
        body = child(self._container.xml(self._main), "body")
        blocks: list[str] = []
        if body is not None:
            blocks += self._blocks(body)
            blocks += self._page_texts(body)
        for kind, mark in _NOTE_PARTS.items():
            name = self._parts.get(kind, "")
            self._relations = self._container.relations(name)
            blocks += self._notes(self._container.optional_xml(name), mark)
        properties = office_properties(self._container)
        if properties:
            blocks.insert(0, f"---\n{properties}\n---")
        return "\n\n".join(block for block in blocks if block)

    def _page_texts(self, body: Element) -> Iterator[str]:
        """Yield what stands above and below its pages, section by section, a text once."""
        parts: dict[str, str] = {}
        for section in descendants(body, "sectPr"):
            for one in section:
                relation = self._relations.get(attribute(one, "id"))
                if local(one) in _PAGE_TEXTS and relation is not None and not relation.external:
                    parts.setdefault(relation.target, _PAGE_TEXTS[local(one)])
        told: set[str] = set()
        for name, where in parts.items():
            self._relations = self._container.relations(name)
            text = "\n\n".join(self._blocks(self._container.optional_xml(name)))
            said = f"{where}:\n\n{text}" if "\n" in text else f"{where}: {text}"
            if text and said not in told:
                told.add(said)
                yield said

    def _blocks(self, element: Element) -> Iterator[str]:
        items: list[str] = []
        for block, is_item in self._raw_blocks(element):
            if is_item:
                items.append(block)
                continue
            if items:
                yield "\n".join(items)
                items = []
            yield block
        if items:
            yield "\n".join(items)

    def _raw_blocks(self, element: Element) -> Iterator[tuple[str, bool]]:
        """Yield each block, and whether it is a list's item."""
        for one in without_fallbacks(element):
            name = local(one)
            if name == "p":
                block, is_item = self._paragraph(one)
                boxes, self._boxes = self._boxes, []
                if block.strip():
                    yield block, is_item
                yield from ((box, False) for box in boxes)
            elif name == "tbl":
                yield self._table(one), False
            elif name not in _SKIPPED and not name.endswith("Pr"):
                yield from self._raw_blocks(one)

    def _paragraph(self, element: Element) -> tuple[str, bool]:
        text = "".join(self._runs(element)).strip()
        style = self._styles.of(child(element, "pPr"))
        if not text:
            return "", False
        marker, depth = self._numbering.next(style.list_id, style.list_level)
        if style.heading:
            return heading(style.heading, f"{marker} {text}" if marker != "-" else text), False
        if marker:
            indent = "  " * depth
            return f"{indent}{marker} {text}".replace("\n", f"\n{indent}  "), True
        return text, False

    def _runs(self, element: Element) -> Iterator[str]:
        for one in without_fallbacks(element):
            name = local(one)
            if name == "t":
                yield one.text or ""
            elif name in ("tab", "ptab"):
                yield "\t"
            elif name in ("br", "cr"):
                yield "\n"
            elif name == "noBreakHyphen":
                yield "-"
            elif name in _NOTES:
                yield self._reference(_NOTES[name], attribute(one, "id"))
            elif name == "hyperlink":
                yield self._link(one)
            elif name == "r" and _is_raised(one):
                text = "".join(self._runs(one))
                yield text if text.startswith("[^") else raised(text)
            elif name in ("drawing", "pict"):
                yield self._drawing(one)
            elif name not in _SKIPPED and not name.endswith("Pr"):
                yield from self._runs(one)

    def _reference(self, mark: str, note_id: str) -> str:
        numbers = self._note_numbers.setdefault(mark, {})
        shown = numbers.setdefault(note_id, len(numbers) + 1)
        return f"[^{mark}{shown}]"

    def _link(self, element: Element) -> str:
        text = "".join(self._runs(element))
        relation = self._relations.get(attribute(element, "id"))
        if relation is None or not relation.external or relation.target in ("", text):
            return text
        return f"[{text}]({relation.target})"

    def _drawing(self, element: Element) -> str:
        for box in descendants(element, "txbxContent"):
            self._boxes += list(self._blocks(box))
        self._boxes += graphic_texts(element, self._relations, self._container)
        return picture_text(next(descendants(element, "docPr"), None))

    def _table(self, element: Element) -> str:
        rows = []
        for row in self._found(element, "tr"):
            cells: list[str] = []
            for cell in self._found(row, "tc"):
                properties = child(cell, "tcPr")
                merged = child(properties, "vMerge")
                continues = merged is not None and attribute(merged, "val") != "restart"
                cells.append("" if continues else one_line("\n".join(self._cell(cell))))
                span = child(properties, "gridSpan")
                if span is not None:
                    cells += [""] * (min(number(attribute(span, "val"), 1), 100) - 1)
            rows.append(cells)
        return table(rows)

    def _cell(self, element: Element) -> Iterator[str]:
        for one in without_fallbacks(element):
            if local(one) == "p":
                yield self._paragraph(one)[0].lstrip("# ")
                boxes, self._boxes = self._boxes, []
                yield from boxes
            elif local(one) == "tbl":
                rows = self._found(one, "tr")
                yield "; ".join(
                    ", ".join(
                        one_line(" ".join(self._cell(cell))) for cell in self._found(row, "tc")
                    )
                    for row in rows
                )
            elif local(one) not in _SKIPPED:
                yield from self._cell(one)

    def _found(self, element: Element, name: str) -> Iterator[Element]:
        """Yield rows or cells, also those within content controls and inserted ones."""
        for one in element:
            if local(one) == name:
                yield one
            elif local(one) in ("sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag"):
                yield from self._found(one, name)

    def _notes(self, root: Element, mark: str) -> Iterator[str]:
        notes = {attribute(note, "id"): note for note in root}
        for note_id in list(self._note_numbers.get(mark, ())):
            note = notes.get(note_id)
            if note is None:
                continue
            text, author = one_line(" ".join(self._blocks(note))), attribute(note, "author")
            shown = f"comment by {author}: {text}" if author else text
            yield f"{self._reference(mark, note_id)}: {shown}"


def _is_raised(run: Element) -> bool:
    aligned = child(run, "rPr", "vertAlign")
    return aligned is not None and attribute(aligned, "val") == "superscript"
