"""What Word, PowerPoint and Excel files have in common: their main part, properties, charts."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from rlm_rag.errors import DocumentError
from rlm_rag.loaders.parsing.container import (
    Container,
    Relation,
    child,
    children,
    descendants,
    local,
)
from rlm_rag.loaders.parsing.markdown import one_line, table
from rlm_rag.loaders.parsing.properties import properties_text

_PROPERTIES = {
    "title": "Title",
    "creator": "Author",
    "subject": "Subject",
    "keywords": "Keywords",
}


def main_part(container: Container) -> str:
    """Return the name of the member that everything else hangs on.

    Raises:
        DocumentError: there is none.
    """
    for relation in container.relations("").values():
        if relation.kind == "officeDocument":
            return relation.target
    raise DocumentError("broken: it names no main part")


def office_properties(container: Container, *beside: tuple[str, str]) -> str:
    """Return title, author and the like as lines; empty where there are none."""
    root = container.optional_xml("docProps/core.xml")
    found = {local(element): element.text for element in root}
    return properties_text(((shown, found.get(key)) for key, shown in _PROPERTIES.items()), beside)


def without_fallbacks(element: Element) -> Iterator[Element]:
    """Yield children; of contents that are given in several ways, those of the first way alone."""
    for one in element:
        if local(one) != "AlternateContent":
            yield one
            continue
        chosen = child(one, "Choice")
        if chosen is None:
            chosen = child(one, "Fallback")
        if chosen is not None:
            yield from without_fallbacks(chosen)


def picture_text(properties: Element | None) -> str:
    """Return what stands for a picture: its description."""
    described = one_line(properties.get("descr", "")) if properties is not None else ""
    return f"[image: {described}]" if described else ""


def graphic_texts(
    element: Element, relations: dict[str, Relation], container: Container
) -> Iterator[str]:
    """Yield the chart, or the texts of the diagram, that a drawing refers to."""
    for one in descendants(element, "chart", "relIds"):
        for key, value in one.items():
            relation = relations.get(value)
            if relation is None or relation.external or relation.target not in container:
                continue
            if relation.kind == "chart":
                yield _chart(container.xml(relation.target))
            elif relation.kind == "diagramData" and key.endswith("}dm"):
                yield from _diagram(container.xml(relation.target))


def _chart(root: Element) -> str:
    title = child(root, "chart", "title")
    texts = [] if title is None else [text.text or "" for text in descendants(title, "t")]
    series = [
        (_values(one, "tx"), _values(one, "cat", "xVal"), _values(one, "val", "yVal"))
        for one in descendants(root, "ser")
    ]
    categories = next((found for _, found, _ in series if found), [])
    length = max((len(values) for _, _, values in series), default=0)
    rows = [["", *(" ".join(name) for name, _, _ in series)]]
    for at in range(length):
        row = [categories[at] if at < len(categories) else str(at + 1)]
        row += [values[at] if at < len(values) else "" for _, _, values in series]
        rows.append(row)
    shown = f"Chart: {one_line(' '.join(texts))}".rstrip(" :")
    return f"{shown}\n\n{table(rows)}" if length else shown


def _values(series: Element, *names: str) -> list[str]:
    return [
        value.text or ""
        for holder in children(series, *names)
        for value in descendants(holder, "v")
    ]


def _diagram(root: Element) -> Iterator[str]:
    for point in descendants(root, "pt"):
        text = one_line("".join(run.text or "" for run in descendants(point, "t")))
        if text:
            yield f"- {text}"
