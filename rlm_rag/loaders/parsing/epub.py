"""E-books (EPUB) by chapter, as `chapter=3`: the third file of the book's reading order."""

from __future__ import annotations

import posixpath
from xml.etree.ElementTree import Element

from rlm_rag.errors import DocumentError
from rlm_rag.loaders.parsing.container import (
    Container,
    child,
    children,
    descendants,
    local,
    member_name,
)
from rlm_rag.loaders.parsing.html_text import markdown_of
from rlm_rag.loaders.parsing.html_tree import parse_html
from rlm_rag.loaders.parsing.parts import ParsedDocument, Parts, check_count
from rlm_rag.loaders.parsing.properties import properties_text
from rlm_rag.loaders.text import decode_text

_PAGES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")
_PROPERTIES = (
    ("Title", "title"),
    ("Author", "creator"),
    ("Publisher", "publisher"),
    ("Date", "date"),
    ("Language", "language"),
)


def parse(data: bytes) -> ParsedDocument:
    """Read the chapters in the book's order; pages without text (covers) are left out.

    Raises:
        DocumentError: it is no EPUB, protected, damaged, or no chapter can be read.
    """
    container = Container(data)
    root = container.xml("META-INF/container.xml")
    package_name = next((one.get("full-path", "") for one in descendants(root, "rootfile")), "")
    package = container.xml(package_name)
    folder = posixpath.dirname(package_name)
    items = {one.get("id", ""): one for one in descendants(package, "item")}
    spine = child(package, "spine")
    chapters = [] if spine is None else list(children(spine, "itemref"))
    check_count(len(chapters), what="chapters")
    protected = _protected(container)
    parts = Parts()
    _add_properties(package, parts)
    read = 0
    for number, chapter in enumerate(chapters, start=1):
        item = items.get(chapter.get("idref", ""))
        if item is None or item.get("media-type") not in _PAGES:
            continue
        name = member_name(folder, item.get("href", ""))
        if name in protected:
            parts.skip(f"chapter={number}", "protected against copying")
            continue
        if name not in container:
            parts.skip(f"chapter={number}", "missing from the file")
            continue
        text = _chapter_text(container.read(name))
        if text:
            parts.add(f"chapter={number}", text)
            read += 1
    if not read:
        raise DocumentError("protected against copying" if protected else "no chapter with text")
    return parts.done()


def _add_properties(package: Element, parts: Parts) -> None:
    metadata = child(package, "metadata")
    found: dict[str, str] = {}
    for one in metadata if metadata is not None else ():
        if one.text and one.text.strip():
            name = local(one)
            found[name] = f"{found[name]}; {one.text}" if name in found else one.text
    text = properties_text((shown, found.get(name)) for shown, name in _PROPERTIES)
    if text:
        parts.add("info=properties", text)


def _chapter_text(data: bytes) -> str:
    decoded = decode_text(data)
    if decoded is None:
        raise DocumentError("broken: a chapter is no text")
    return markdown_of(parse_html(decoded.content))


def _protected(container: Container) -> set[str]:
    """Return the members that are encrypted; embedded fonts often are, which harms no text."""
    root = container.optional_xml("META-INF/encryption.xml")
    return {member_name("", one.get("URI", "")) for one in descendants(root, "CipherReference")}
