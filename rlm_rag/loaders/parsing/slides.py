"""PowerPoint files (PPTX) by slide, as `slide=3`, with what stands in the speaker's notes."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from rlm_rag.loaders.parsing.container import (
    Container,
    Relation,
    attribute,
    child,
    children,
    descendants,
    local,
    number,
)
from rlm_rag.loaders.parsing.markdown import heading, one_line, raised, table
from rlm_rag.loaders.parsing.office import (
    graphic_texts,
    main_part,
    office_properties,
    picture_text,
    without_fallbacks,
)
from rlm_rag.loaders.parsing.parts import ParsedDocument, Parts, check_count

_TITLES = ("title", "ctrTitle")
# Date, footer and number of a slide are the same on all.
_FURNITURE = ("dt", "ftr", "sldNum", "hdr", "sldImg")
_OUTLINED = ("", "body", "obj")


def parse(data: bytes) -> ParsedDocument:
    """Read the slides in the order in which they are shown.

    Raises:
        DocumentError: it is no PPTX, encrypted, damaged, or has too many slides.
    """
    container = Container(data)
    main = main_part(container)
    relations = container.relations(main)
    listed = child(container.xml(main), "sldIdLst")
    slides = [] if listed is None else list(listed)
    check_count(len(slides), what="slides")
    parts = Parts()
    properties = office_properties(container, ("Slides", str(len(slides))))
    if properties:
        parts.add("info=properties", properties)
    for position, slide in enumerate(slides, start=1):
        relation = _relation_of(slide, relations)
        if relation is None or relation.external or relation.target not in container:
            parts.skip(f"slide={position}", "missing from the file")
            continue
        parts.add(f"slide={position}", _slide_text(container, relation.target))
    return parts.done()


def _relation_of(slide: Element, relations: dict[str, Relation]) -> Relation | None:
    """Find a slide's relation; its attribute `id` without a name space is another thing."""
    ids = (value for key, value in slide.items() if key.endswith("}id"))
    return relations.get(next(ids, ""))


def _slide_text(container: Container, name: str) -> str:
    relations = container.relations(name)
    root = container.xml(name)
    blocks = list(_Shapes(container, relations).blocks(root))
    if root.get("show") == "0":
        blocks.insert(0, "(hidden slide)")
    for relation in relations.values():
        if relation.kind == "notesSlide" and relation.target in container:
            notes = container.xml(relation.target)
            reader = _Shapes(container, container.relations(relation.target), notes=True)
            found = [block for block in reader.blocks(notes) if block]
            if found:
                blocks += ["Notes:", *found]
    return "\n\n".join(block for block in blocks if block)


class _Shapes:
    """Reads the shapes of a slide, or of the page of its notes."""

    def __init__(
        self, container: Container, relations: dict[str, Relation], *, notes: bool = False
    ) -> None:
        self._container = container
        self._relations = relations
        self._notes = notes

    def blocks(self, root: Element) -> Iterator[str]:
        """Yield the texts of all shapes, from the bottom to the top as they were drawn."""
        tree = child(root, "cSld", "spTree")
        if tree is not None:
            yield from self._group(tree)

    def _group(self, group: Element) -> Iterator[str]:
        for shape in without_fallbacks(group):
            name = local(shape)
            if name == "sp":
                yield self._shape(shape)
            elif name == "grpSp":
                yield from self._group(shape)
            elif name == "pic":
                yield picture_text(child(shape, "nvPicPr", "cNvPr"))
            elif name == "graphicFrame":
                yield from self._frame(shape)

    def _shape(self, shape: Element) -> str:
        placeholder = child(shape, "nvSpPr", "nvPr", "ph")
        kind = None if placeholder is None else placeholder.get("type", "")
        body = child(shape, "txBody")
        if body is None or kind in _FURNITURE:
            return ""
        if kind in _TITLES:
            return heading(1, " ".join(self._text(one) for one in children(body, "p")))
        outlined = kind in _OUTLINED and not self._notes
        return "\n".join(filter(None, (self._paragraph(p, outlined) for p in children(body, "p"))))

    def _paragraph(self, paragraph: Element, outlined: bool) -> str:
        text = self._text(paragraph).strip()
        properties = child(paragraph, "pPr")
        level = number(properties.get("lvl")) if properties is not None else 0
        bulleted = properties is not None and any(children(properties, "buChar", "buAutoNum"))
        plain = properties is not None and any(children(properties, "buNone"))
        if not text or not (bulleted or (outlined and not plain) or level):
            return text
        indent = "  " * min(level, 8)
        return f"{indent}- {text}".replace("\n", f"\n{indent}  ")

    def _text(self, paragraph: Element) -> str:
        pieces = []
        for run in without_fallbacks(paragraph):
            name = local(run)
            if name == "br":
                pieces.append("\n")
            elif name in ("r", "fld", "m"):
                text = "".join(one.text or "" for one in descendants(run, "t"))
                properties = child(run, "rPr")
                if properties is not None and number(properties.get("baseline")) > 0:
                    text = raised(text)
                pieces.append(self._linked(run, text))
        return "".join(pieces).replace("\x0b", "\n")

    def _linked(self, run: Element, text: str) -> str:
        link = child(run, "rPr", "hlinkClick")
        relation = self._relations.get(attribute(link, "id")) if link is not None else None
        if relation is None or not relation.external or relation.target in ("", text):
            return text
        return f"[{text}]({relation.target})"

    def _frame(self, frame: Element) -> Iterator[str]:
        for found in descendants(frame, "tbl"):
            rows = []
            for row in children(found, "tr"):
                cells = children(row, "tc")
                rows.append([self._cell(cell) for cell in cells])
            yield table(rows)
        yield from graphic_texts(frame, self._relations, self._container)

    def _cell(self, cell: Element) -> str:
        return one_line(" ".join(self._text(one) for one in descendants(cell, "p")))
