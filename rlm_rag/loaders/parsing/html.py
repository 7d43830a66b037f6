"""HTML pages: the main text as Markdown, with headings, lists, tables and links."""

from __future__ import annotations

import re

from rlm_rag.loaders.parsing.html_text import markdown_of
from rlm_rag.loaders.parsing.html_tree import Node, parse_html
from rlm_rag.loaders.parsing.markdown import one_line
from rlm_rag.loaders.parsing.parts import ParsedDocument, Parts, as_written, clean, decoded_text
from rlm_rag.loaders.parsing.properties import properties_text

# Below this what is marked as the page's main text is passed over for all that it shows.
_MIN_MAIN_CHARS = 40
# A page that does more than show its text is, below this, a shell for that: its source says more.
# So does one with elements of its own, which scripts fill, or with places for values.
_MIN_SHELL_CHARS = 400
_DOES_MORE = re.compile(
    r"<(?:script|template|form|i?frame|frameset|canvas|svg|math|object|embed|video|audio)\b"
    r"|<[a-z]\w{0,50}-\w|\{\{|http-equiv\s*=\s*[\"']?\s*refresh\b",
    re.IGNORECASE,
)

_PAGE = re.compile(r"<(?:!doctype\s+html|html|body)\b", re.IGNORECASE)
_TEMPLATE = re.compile(r"^[ \t]*\{%|<\?(?:php|=)|<%|<[a-zA-Z][^<>]{0,500}\{[{%]", re.MULTILINE)
_HEAD_CHARS = 20_000
_AROUND = frozenset(("nav", "footer", "aside", "header", "form", "dialog"))
_AROUND_ROLES = frozenset(("navigation", "banner", "contentinfo", "search", "complementary"))


def parse(data: bytes) -> ParsedDocument:
    """Read a page's main text; a template, a fragment or a shell for scripts stays as written.

    Raises:
        DocumentError: its bytes are no text.
    """
    decoded = decoded_text(data)
    text = page_text(decoded.content)
    if text is None:
        return as_written(decoded)
    parts = Parts()
    parts.add("", text)
    if decoded.warning is not None:
        parts.warn(decoded.warning)
    return parts.done()


def page_text(source: str) -> str | None:
    """Return a whole page's main text, its title before it; None where it is rather source."""
    if not _PAGE.search(source[:_HEAD_CHARS]) or _TEMPLATE.search(source):
        return None
    root = parse_html(source)
    text = main_text(root, least_chars=_MIN_SHELL_CHARS if _DOES_MORE.search(source) else 1)
    if text is None:
        return None
    properties = _properties(root)
    return f"---\n{properties}\n---\n\n{text}" if properties else text


def main_text(root: Node, *, least_chars: int) -> str | None:
    """Return what a page is about, as Markdown: without navigation, asides and footers.

    The element `main`, or the articles, where there are any; else all but what is around. None
    where that has less than so many characters.
    """
    for chosen in (_mains(root), _articles(root)):
        text = "\n\n".join(clean(markdown_of(node)).strip("\n") for node in chosen)
        if len(text) >= _MIN_MAIN_CHARS:
            return text
    within = clean(markdown_of(root, leave_out=_is_around))
    text = within if len(within) >= _MIN_MAIN_CHARS else clean(markdown_of(root))
    return text if len(text.strip()) >= least_chars else None


def _mains(root: Node) -> list[Node]:
    for node in root.walk():
        if node.tag == "main" or _role(node) == "main":
            return [node]
    return []


def _articles(root: Node) -> list[Node]:
    found: list[Node] = []
    pending = [root]
    while pending:
        node = pending.pop()
        if node.tag == "article":
            found.append(node)
        else:
            pending += [one for one in reversed(node.children) if isinstance(one, Node)]
    return found


def _is_around(node: Node) -> bool:
    if node.tag == "header":
        return not any(one.tag == "h1" for one in node.walk())
    return node.tag in _AROUND or _role(node) in _AROUND_ROLES


def _role(node: Node) -> str:
    return node.attributes.get("role", "").strip().lower()


def _properties(root: Node) -> str:
    found: dict[str, str] = {}
    for node in root.walk():
        if node.tag == "title" and "title" not in found:
            found["title"] = one_line(node.text())
        elif node.tag == "meta":
            name = node.attributes.get("name", "").lower()
            found.setdefault(name, node.attributes.get("content", ""))
        elif node.tag == "link" and node.attributes.get("rel", "").lower() == "canonical":
            found["url"] = node.attributes.get("href", "")
        elif node.tag == "body":
            break
    names = (("Title", "title"), ("Author", "author"), ("Address", "url"))
    return properties_text((shown, found.get(name)) for shown, name in names)
