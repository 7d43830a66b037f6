"""OpenDocument: texts (ODT), sheets (ODS, as `sheet=Q1`) and slides (ODP, as `slide=3`)."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from rlm_rag.errors import DocumentError
from rlm_rag.loaders.files import format_bytes
from rlm_rag.loaders.parsing.container import (
    Container,
    attribute,
    child,
    children,
    local,
    number,
    parse_xml,
)
from rlm_rag.loaders.parsing.markdown import MAX_COLUMNS, grid, one_line
from rlm_rag.loaders.parsing.open_text import TextReader, rows_of
from rlm_rag.loaders.parsing.parts import (
    MAX_TEXT_BYTES,
    ParsedDocument,
    Parts,
    check_count,
    label,
    single,
)
from rlm_rag.loaders.parsing.properties import properties_text

_MANIFEST = "META-INF/manifest.xml"
_ZIP_MAGIC = b"PK"
_PROPERTIES = (
    ("Title", "title"),
    ("Author", "initial-creator"),
    ("Author", "creator"),
    ("Subject", "subject"),
    ("Keywords", "keyword"),
)
_BODIES = ("text", "spreadsheet", "presentation", "drawing")


def parse(data: bytes) -> ParsedDocument:
    """Read a text as one, sheets and slides each as a part; flat files (FODT) too.

    Raises:
        DocumentError: it is no OpenDocument, encrypted, damaged, or too large.
    """
    if data.startswith(_ZIP_MAGIC):
        container = Container(data)
        # Not read as XML: old ones leave their name space to a definition that is elsewhere.
        if _MANIFEST in container and b"encryption-data" in container.read(_MANIFEST):
            raise DocumentError("encrypted: it opens with a password only")
        root = container.xml("content.xml")
        styles = container.optional_xml("styles.xml")
        meta = container.optional_xml("meta.xml")
    else:
        container = None
        root = styles = meta = parse_xml(data, "text")
    bodies = (child(root, "body", kind) for kind in _BODIES)
    body = next((found for found in bodies if found is not None), None)
    if body is None:
        raise DocumentError("broken: it has no body that can be read")
    reader = TextReader(root, styles, container)
    if local(body) == "text":
        properties = _properties(meta)
        blocks = [f"---\n{properties}\n---"] if properties else []
        return single("\n\n".join((*blocks, *reader.document(body))))
    read = _sheets if local(body) == "spreadsheet" else _slides
    return read(body, meta, reader)


def _properties(meta: Element, *beside: tuple[str, str]) -> str:
    holder = child(meta, "meta")
    if holder is None:
        return ""
    texts = {local(one): one.text for one in holder}
    if texts.get("initial-creator"):
        texts.pop("creator", None)
    return properties_text(((shown, texts.get(name)) for shown, name in _PROPERTIES), beside)


def _sheets(body: Element, meta: Element, reader: TextReader) -> ParsedDocument:
    sheets = list(children(body, "table"))
    check_count(len(sheets), what="sheets")
    parts = Parts()
    properties = _properties(meta, ("Sheets", str(len(sheets))))
    if properties:
        parts.add("info=properties", properties)
    for sheet in sheets:
        parts.add(
            label("sheet", attribute(sheet, "name")), grid(list(_numbered_rows(sheet, reader)))
        )
    return parts.done()


def _numbered_rows(sheet: Element, reader: TextReader) -> Iterator[tuple[int, list[str]]]:
    at = 1
    size = 0
    for row in rows_of(sheet):
        repeated = max(1, number(attribute(row, "number-rows-repeated"), 1))
        cells = _cells(reader, row)
        if any(cells):
            # Empty rows are repeated to the sheet's end; one with text seldom is.
            for copy in range(repeated):
                size += sum(map(len, cells)) + 1
                if size > MAX_TEXT_BYTES:
                    raise DocumentError(f"its text is larger than {format_bytes(MAX_TEXT_BYTES)}")
                yield at + copy, cells
        at += repeated


def _cells(reader: TextReader, row: Element) -> list[str]:
    cells: list[str] = []
    for cell in children(row, "table-cell", "covered-table-cell"):
        repeated = max(1, number(attribute(cell, "number-columns-repeated"), 1))
        text = reader.cell(cell) if local(cell) == "table-cell" else ""
        cells += [text] * min(repeated, MAX_COLUMNS - len(cells))
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _slides(body: Element, meta: Element, reader: TextReader) -> ParsedDocument:
    pages = list(children(body, "page"))
    check_count(len(pages), what="slides")
    parts = Parts()
    properties = _properties(meta, ("Slides", str(len(pages))))
    if properties:
        parts.add("info=properties", properties)
    for position, page in enumerate(pages, start=1):
        blocks: list[str] = []
        for shape in page:
            if local(shape) == "notes":
                notes = [block for block in reader.shape(shape) if block]
                blocks += ["Notes:", *notes] if notes else []
                continue
            title = attribute(shape, "class") == "title"
            found = [block for block in reader.shape(shape) if block]
            blocks += [f"# {one_line(' '.join(found))}"] if title and found else found
        parts.add(f"slide={position}", "\n\n".join(blocks))
    return parts.done()
