"""PDF by page, as `page=3`: the page that a viewer calls 3, whatever is printed on it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pypdfium2
from pypdfium2 import raw

from rlm_rag.errors import DocumentError
from rlm_rag.loaders.parsing.markdown import one_line
from rlm_rag.loaders.parsing.parts import ParsedDocument, Parts, check_count
from rlm_rag.loaders.parsing.properties import properties_text

_PROPERTIES = ("Title", "Author", "Subject", "Keywords")
_MAX_BOOKMARKS = 2_000
_MAX_BOOKMARK_DEPTH = 8
_MAX_SHOWN_RANGES = 30
# A bullet of a symbol font, which has no code of its own.
_BULLET = re.compile("^[ \t]*[\ue000-\uf8ff\u2022][ \t]+", re.MULTILINE)
# What PDFium writes for a hyphen that only breaks a word at a line's end.
_BROKEN_WORD = re.compile("[\ufffe\x02]\r?\n?(\\S*)[ \t]*")


def parse(data: bytes) -> ParsedDocument:
    """Read the text of every page; pages without any are parts too, and warned of.

    Raises:
        DocumentError: it is encrypted, broken, too long, or no page has text.
    """
    if not data:
        raise DocumentError("empty")
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        raise DocumentError(_refusal(str(error))) from error
    count = len(document)
    check_count(count, what="pages")
    parts = Parts()
    _add_properties(document, count, parts)
    blank: list[int] = []
    scanned: list[int] = []
    for number in range(1, count + 1):
        try:
            text, image = _page(document, number)
        except pypdfium2.PdfiumError:
            parts.skip(f"page={number}", "broken page")
            continue
        parts.add(f"page={number}", text)
        if not text.strip():
            (scanned if image else blank).append(number)
    if len(scanned) + len(blank) == count:
        what = "scanned images, which need OCR" if scanned else "nothing to read"
        raise DocumentError(f"{count} page{'s' * (count != 1)} without text: {what}")
    if scanned:
        parts.warn(f"no text, but a scanned image, on {_pages(scanned)}; reading it needs OCR")
    if blank:
        parts.warn(f"nothing to read on {_pages(blank)}")
    return parts.done()


def _page(document: pypdfium2.PdfDocument, number: int) -> tuple[str, bool]:
    """Return a page's text, and, where it has none, whether it has an image."""
    page = document[number - 1]
    textpage = page.get_textpage()
    text = _BROKEN_WORD.sub("\\1\n", textpage.get_text_range())
    text = _BULLET.sub("- ", text.replace("\r\n", "\n"))
    image = False
    if not text.strip():
        images = page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=4)
        image = next(images, None) is not None
    textpage.close()
    page.close()
    return text, image


def _add_properties(document: pypdfium2.PdfDocument, count: int, parts: Parts) -> None:
    found = [(key, document.get_metadata_value(key)) for key in _PROPERTIES]
    bookmarks = list(_bookmarks(document))
    text = properties_text(found, [("Pages", str(count))])
    if bookmarks:
        text = "\n".join((text or f"Pages: {count}", "", "# Contents", "", *bookmarks))
    if text:
        parts.add("info=properties", text)


def _bookmarks(document: pypdfium2.PdfDocument) -> Iterator[str]:
    for number, bookmark in enumerate(document.get_toc(max_depth=_MAX_BOOKMARK_DEPTH)):
        if number == _MAX_BOOKMARKS:
            return
        target = bookmark.get_dest()
        index = target.get_index() if target else None
        where = f" (page {index + 1})" if index is not None else ""
        title = one_line(bookmark.get_title())
        yield f"{'  ' * bookmark.level}- {title}{where}"


def _refusal(said: str) -> str:
    lowered = said.lower()
    if "password" in lowered:
        return "encrypted: it opens with a password only"
    if "security" in lowered:
        return "encrypted in a way that is not supported"
    return "broken, or no PDF"


def _pages(numbers: list[int]) -> str:
    """Write page numbers as ranges: `pages 2, 5-7`."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    shown = [f"{a}-{b}" if a < b else str(a) for a, b in ranges[:_MAX_SHOWN_RANGES]]
    more = " and more" if len(ranges) > _MAX_SHOWN_RANGES else ""
    return f"page{'s' * (len(numbers) != 1)} {', '.join(shown)}{more}"
