"""An HTML tree to Markdown: one block a paragraph, list, table or heading."""

from __future__ import annotations

import re
from collections.abc import Callable

from rlm_rag.loaders.parsing.html_tree import Node
from rlm_rag.loaders.parsing.markdown import fence_of, heading, one_line, raised, table

_SILENT = frozenset(
    re.findall(
        r"\w+",
        """
        script style noscript template head title svg canvas iframe object embed audio video select
        datalist button textarea input
        """,
    )
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(
    re.findall(
        r"\w+",
        """
        address article aside blockquote body center dd details dialog div dl dt fieldset figcaption
        figure footer form header hgroup hr html li main menu nav ol p pre section summary table
        tbody td tfoot th thead tr ul caption legend
        """,
    )
)
_LISTS = frozenset(("ul", "ol", "menu"))
_LINKS = re.compile(r"(?:https?|ftp|mailto):|[^:]*$", re.IGNORECASE)
# Links to a heading itself, which stand beside it.
_PERMALINKS = frozenset(("¶", "#", "§", "🔗"))
_SPACES = re.compile(r"[ \t\n\r\f]+")
_HIDING_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_MAX_SPAN = 100

LeaveOut = Callable[[Node], bool]


def markdown_of(node: Node, *, leave_out: LeaveOut = lambda node: False) -> str:
    """Return what an element shows; elements that are hidden, or `leave_out` names, are not."""
    return "\n\n".join(_Renderer(leave_out).blocks(node))


class _Renderer:
    def __init__(self, leave_out: LeaveOut) -> None:
        self._leave_out = leave_out

    def blocks(self, node: Node) -> list[str]:
        """Return the blocks that an element's children make."""
        blocks: list[str] = []
        inline: list[str] = []

        def flush() -> None:
            text = _folded("".join(inline))
            inline.clear()
            if text:
                blocks.append(text)

        for one in node.children:
            if isinstance(one, str):
                inline.append(_SPACES.sub(" ", one))
            elif self._is_silent(one):
                continue
            elif one.tag in _BLOCKS or one.tag in _HEADINGS or self._holds_blocks(one):
                flush()
                blocks += self._block(one)
            else:
                inline.append(self._inline(one))
        flush()
        return blocks

    def _block(self, node: Node) -> list[str]:
        if node.tag in _HEADINGS:
            title = one_line(self._inline(node))
            return [heading(_HEADINGS[node.tag], title)] if title else []
        if node.tag in _LISTS:
            items = self._list(node)
            return ["\n".join(items)] if items else []
        if node.tag == "pre":
            return _fenced(node.text(line_break="\n").strip("\n"))
        if node.tag == "table":
            return self._table(node)
        if node.tag == "blockquote":
            quoted = "\n\n".join(self.blocks(node))
            return [re.sub(r"^", "> ", quoted, flags=re.MULTILINE)] if quoted else []
        if node.tag == "dd":
            return [f": {block}" if not at else block for at, block in enumerate(self.blocks(node))]
        return self.blocks(node)

    def _inline(self, node: Node) -> str:
        if node.tag == "br":
            return "\n"
        if node.tag == "img":
            described = one_line(node.attributes.get("alt", ""))
            return f"[image: {described}]" if described else ""
        pieces = []
        for one in node.children:
            if isinstance(one, str):
                pieces.append(_SPACES.sub(" ", one))
            elif not self._is_silent(one):
                pieces.append(self._inline(one))
        text = "".join(pieces)
        if node.tag == "a":
            return _link(text, node.attributes.get("href", "").strip())
        if node.tag == "sup":
            return raised(text)
        return f"`{text}`" if node.tag in ("code", "kbd", "samp") and text.strip() else text

    def _list(self, node: Node) -> list[str]:
        lines: list[str] = []
        number = _integer(node.attributes.get("start"), 1)
        for item in node.children:
            if isinstance(item, str) or self._is_silent(item):
                continue
            if item.tag in _LISTS:
                lines += [f"  {line}" for line in self._list(item)]
                continue
            blocks = self.blocks(item)
            if not blocks:
                continue
            marker = f"{number}." if node.tag == "ol" else "-"
            number += 1
            lines.append(f"{marker} " + "\n".join(blocks).replace("\n", "\n  "))
        return lines

    def _table(self, node: Node) -> list[str]:
        rows = [row for row in _rows(node) if not self._is_silent(row)]
        caption = [text for one in _captions(node) for text in self.blocks(one)]
        if _is_layout(node, rows):
            return [*caption, *(block for row in rows for block in self.blocks(row))]
        made = table([self._cells(row) for row in rows])
        return [*caption, made] if made else caption

    def _cells(self, row: Node) -> list[str]:
        cells: list[str] = []
        for cell in row.children:
            if isinstance(cell, Node) and cell.tag in ("td", "th") and not self._is_silent(cell):
                cells.append(one_line(" ".join(self.blocks(cell))))
                span = min(_integer(cell.attributes.get("colspan"), 1), _MAX_SPAN)
                cells += [""] * (span - 1)
        return cells

    def _is_silent(self, node: Node) -> bool:
        attributes = node.attributes
        return (
            node.tag in _SILENT
            or "hidden" in attributes
            or attributes.get("aria-hidden") == "true"
            or ("style" in attributes and bool(_HIDING_STYLE.search(attributes["style"])))
            or self._leave_out(node)
        )

    def _holds_blocks(self, node: Node) -> bool:
        """Tell whether an inline element has a block in it, as custom elements and links may."""
        return any(
            isinstance(one, Node)
            and (one.tag in _BLOCKS or one.tag in _HEADINGS or self._holds_blocks(one))
            for one in node.children
        )


def _folded(text: str) -> str:
    lines = (" ".join(line.split(" ")).strip() for line in text.split("\n"))
    return re.sub(r" {2,}", " ", "\n".join(lines)).strip()


def _fenced(code: str) -> list[str]:
    if not code.strip():
        return []
    fence = fence_of(code)
    return [f"{fence}\n{code}\n{fence}"]


def _link(text: str, target: str) -> str:
    shown = one_line(text)
    if shown in _PERMALINKS:
        return ""
    if not shown or not target or target.startswith("#") or not _LINKS.match(target):
        return text
    if shown in (target, target.removeprefix("mailto:")):
        return text
    leading = " " if text[:1].isspace() else ""
    trailing = " " if text[-1:].isspace() else ""
    return f"{leading}[{shown}]({target}){trailing}"


def _rows(node: Node) -> list[Node]:
    rows: list[Node] = []
    for one in node.children:
        if isinstance(one, Node) and one.tag == "tr":
            rows.append(one)
        elif isinstance(one, Node) and one.tag in ("thead", "tbody", "tfoot"):
            rows += _rows(one)
    return rows


def _captions(node: Node) -> list[Node]:
    return [one for one in node.children if isinstance(one, Node) and one.tag == "caption"]


def _is_layout(node: Node, rows: list[Node]) -> bool:
    """Tell a table that only places things: nested tables, headings or one column."""
    if node.attributes.get("role") in ("presentation", "none"):
        return True
    if any(one.tag in ("table", *_HEADINGS) for row in rows for one in row.walk()):
        return True
    widths = (
        sum(isinstance(one, Node) and one.tag in ("td", "th") for one in row.children)
        for row in rows
    )
    return max(widths, default=0) < 2


def _integer(text: str | None, default: int) -> int:
    digits = (text or "").strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 7 else default
