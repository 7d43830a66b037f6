"""What a Word paragraph is by its style: a heading of a level, an item of a list, or neither."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from rlm_rag.loaders.parsing.container import attribute, child, children, number

_HEADING_NAME = re.compile(r"(?:heading|überschrift|titre|título|titolo|kop) ?([1-9])", re.I)
_MAX_INHERITANCE = 20
_BODY_LEVEL = 9


@dataclass(frozen=True, slots=True)
class ParagraphStyle:
    """`heading` is its level, 0 for none; `list_id` the list it is an item of, or empty."""

    heading: int = 0
    list_id: str = ""
    list_level: int = 0


class Styles:
    """The styles of a document, by id."""

    def __init__(self, root: Element) -> None:
        self._elements = {attribute(one, "styleId"): one for one in children(root, "style")}
        self._known: dict[str, ParagraphStyle] = {}

    def of(self, properties: Element | None) -> ParagraphStyle:
        """Return what a paragraph of these properties is: what it says itself, then its style."""
        if properties is None:
            return ParagraphStyle()
        named = child(properties, "pStyle")
        style = self._named(attribute(named, "val")) if named is not None else ParagraphStyle()
        return _refined(style, properties)

    def _named(self, name: str) -> ParagraphStyle:
        if name not in self._known:
            self._known[name] = self._resolved(name)
        return self._known[name]

    def _resolved(self, name: str) -> ParagraphStyle:
        chain: list[Element] = []
        while name in self._elements and len(chain) < _MAX_INHERITANCE:
            chain.append(self._elements[name])
            base = child(chain[-1], "basedOn")
            name = attribute(base, "val") if base is not None else ""
        style = ParagraphStyle()
        for element in reversed(chain):
            named = child(element, "name")
            shown = attribute(named, "val") if named is not None else ""
            if found := _HEADING_NAME.fullmatch(shown):
                style = replace(style, heading=int(found[1]))
            elif shown.lower() == "title":
                style = replace(style, heading=1)
            properties = child(element, "pPr")
            if properties is not None:
                style = _refined(style, properties)
        return style


def _refined(style: ParagraphStyle, properties: Element) -> ParagraphStyle:
    outline = child(properties, "outlineLvl")
    if outline is not None:
        level = number(attribute(outline, "val"), _BODY_LEVEL)
        style = replace(style, heading=level + 1 if level < _BODY_LEVEL else 0)
    listed = child(properties, "numPr")
    if listed is None:
        return style
    list_id, level_found = child(listed, "numId"), child(listed, "ilvl")
    if list_id is not None:
        style = replace(style, list_id=attribute(list_id, "val"))
    if level_found is not None:
        style = replace(style, list_level=number(attribute(level_found, "val")))
    return style
