"""Documents that real programs wrote come out word by word, in parts that can be cited."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rlm_rag.corpus import Skipped
from rlm_rag.loaders.documents import is_document, parse_document
from rlm_rag.loaders.parsing.parts import ParsedDocument
from tests.loaders.documents import text

FOLDER = Path(__file__).parent / "documents"
OUTLINE = re.compile(r"^(#+) (.*)$", re.MULTILINE)


def parsed(name: str) -> dict[str, str]:
    document = parse_document(name, (FOLDER / name).read_bytes())
    assert isinstance(document, ParsedDocument), document
    return {part.name: part.content for part in document.parts}


def words(markdown: str) -> list[str]:
    """The words of a text without what marks headings, items, cells, notes and links."""
    body = re.sub(r"\A---\n.*?\n---\n", "", markdown, flags=re.DOTALL)
    body = re.sub(r"\[([^\]]+)\]\(https?://[^)]+\)", r"\1", body)
    body = re.sub(r"\[\^\w+\]:?", "", body).replace("\\|", "\0")
    body = re.sub(r"^\|(?: --- \|)+$", "", body, flags=re.MULTILINE)
    body = re.sub(r"^ *(?:#+|-) |\|", " ", body, flags=re.MULTILINE)
    return body.replace("\0", "|").split()


def report_words(*, note: bool, link: bool) -> list[str]:
    rows = [cell for row in text.TABLE for cell in row]
    pieces = [text.HEADINGS[0], text.PARAGRAPHS[0], *text.ITEMS, text.HEADINGS[1], *rows]
    pieces += [text.PARAGRAPHS[1], text.LINK_TEXT * link, text.NOTE * note]
    return " ".join(pieces).split()


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("report.docx", False),
        ("office-report.docx", True),
        ("office-report.odt", True),
        ("office-report.rtf", True),
    ],
)
def test_a_report_has_every_word_that_was_written(name: str, full: bool) -> None:
    content = parsed(name)[""]
    assert words(content) == report_words(note=full, link=full)
    assert OUTLINE.findall(content) == [("#", text.HEADINGS[0]), ("##", text.HEADINGS[1])]
    assert content.startswith(f"---\nTitle: {text.TITLE}\nAuthor: {text.AUTHOR}\n---\n")
    assert "| Colony | Year | Pairs |\n| --- | --- | --- |\n| Cape Crozier | 2014 |" in content
    assert "14,300 \\| estimated |" in content
    assert "\n".join(f"- {item}" for item in text.ITEMS) in content
    if full:
        assert f"[{text.LINK_TEXT}]({text.LINK})" in content
        assert "sea ice[^1]; naïve" in content and f"[^1]: {text.NOTE}\n" in content


@pytest.mark.parametrize(
    ("name", "part"), [("office-report.html", ""), ("office-report.epub", "chapter=1")]
)
def test_a_page_or_chapter_has_every_word_that_was_written(name: str, part: str) -> None:
    # Of a note, these have only its number beside the text.
    numbered = {"ice;": "ice1;", "Only": "1Only"}
    expected = [numbered.get(word, word) for word in report_words(note=True, link=True)]
    assert words(parsed(name)[part].replace("^", "")) == expected


def test_a_pdf_has_every_word_of_each_page() -> None:
    pages = parsed("pages.pdf")
    for number, lines in enumerate(text.PAGES, start=1):
        expected = "".join(f"{line}\n" for line in lines) if isinstance(lines, tuple) else ""
        assert pages[f"page={number}"] == expected
    assert list(pages) == ["info=properties", "page=1", "page=2", "page=3", "page=4"]
    info = pages["info=properties"]
    assert info.startswith(f"Title: {text.TITLE}\nAuthor: {text.AUTHOR}\n") and "Pages: 4" in info
    assert "- Chapter 3 (page 3)\n" in info
    # The note's number stands above the line, which PDF knows nothing of.
    office = parsed("office-report.pdf")["page=1"].replace("ice1\n;", "ice;").replace("\n- ", "\n")
    assert office.replace("\n1 ", "\n").split() == report_words(note=True, link=True)


def test_empty_and_scanned_pages_are_said() -> None:
    document = parse_document("pages.pdf", (FOLDER / "pages.pdf").read_bytes())
    assert isinstance(document, ParsedDocument)
    assert document.warnings == (
        "no text, but a scanned image, on page 3; reading it needs OCR",
        "nothing to read on page 2",
    )


@pytest.mark.parametrize("name", ["deck.pptx", "office-deck.pptx", "office-deck.odp"])
def test_slides_have_titles_texts_and_notes(name: str) -> None:
    slides = parsed(name)
    for number, (title, lines, notes) in enumerate(text.SLIDES, start=1):
        shown, _, noted = slides[f"slide={number}"].partition("Notes:\n")
        assert words(shown) == " ".join((title, *lines)).split()
        assert noted.strip() == notes
    assert f"Title: {text.TITLE}\n" in slides["info=properties"]
    if name == "deck.pptx":
        assert slides["slide=1"].startswith(f"# {text.SLIDES[0][0]}\n\n- {text.SLIDES[0][1][0]}\n")
        assert slides["slide=3"].splitlines()[2:5] == [
            "| Colony | Year | Pairs |",
            "| --- | --- | --- |",
            "| Cape Crozier | 2014 | 1,325 |",
        ]


@pytest.mark.parametrize("name", ["book.xlsx", "office-book.xlsx", "office-book.ods"])
def test_sheets_are_tables_with_the_names_of_rows_and_columns(name: str) -> None:
    sheets = parsed(name)
    computed = text.FORMULA if name == "book.xlsx" else "15625.5"
    assert sheets["sheet=Colonies_2014"].splitlines() == [
        "| row | A | B | C | E |",
        "| --- | --- | --- | --- | --- |",
        "| 1 | Colony | Pairs | Counted |",
        "| 2 | Cape Crozier | 1325 | TRUE |",
        "| 4 | Halley Bay | 14300.5 | FALSE |",
        f"| 6 |  |  |  | {computed} |",
    ]
    assert sheets["sheet=Notes"].endswith("| 1 | Only \\| estimates |\n| 2 | Two lines |\n")


def test_a_message_has_headers_text_and_attachments() -> None:
    letter = parse_document("letter.eml", (FOLDER / "letter.eml").read_bytes())
    assert isinstance(letter, ParsedDocument)
    parts = {part.name: part.content for part in letter.parts}
    assert parts["message=1"].splitlines() == [
        "From: Ann Example <ann@example.org>",
        "To: bob@example.org",
        "Date: Mon, 01 Jan 2024 10:00:00 +0000",
        f"Subject: {text.SUBJECT}",
        "Attachments: the pages.pdf, data.csv, .env",
        "",
        *text.PARAGRAPHS,
    ]
    assert parts["attachment=the_pages.pdf#page=1"] == "\n".join((*text.PAGES[0], ""))
    assert parts["attachment=data.csv"] == "a,b\n1,2\n"
    assert letter.skipped == (("attachment=.env", "may hold secrets"),)


def test_a_message_without_attachments_is_one_document() -> None:
    data = b"From: a@example.org\nSubject: x\nContent-Type: text/html\n\n<h1>Hi</h1><p>there"
    message = parse_document("a.eml", data)
    assert isinstance(message, ParsedDocument)
    assert [(part.name, part.content) for part in message.parts] == [
        ("", "From: a@example.org\nSubject: x\n\n# Hi\n\nthere\n")
    ]


def test_a_notebook_comes_by_cell_with_bounded_outputs() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {
            "cell_type": "code",
            "source": "def area(r):\n    return 3 * r",
            "outputs": [
                {"output_type": "stream", "text": ["first\n", "x" * 50_000, "\nlast"]},
                {"output_type": "display_data", "data": {"image/png": "AAAA"}},
                {"output_type": "error", "traceback": ["\x1b[31mValueError\x1b[0m"]},
            ],
        },
    ]
    notebook = {"cells": cells, "metadata": {"language_info": {"name": "python"}}}
    document = parse_document("a.ipynb", json.dumps(notebook).encode())
    assert isinstance(document, ParsedDocument)
    title, code = document.parts
    assert (title.name, title.content) == ("cell=1", "# Title\ntext\n")
    assert code.content.startswith("```python\ndef area(r):\n    return 3 * r\n```\n\nOutput:\n")
    assert "first" in code.content and "[image/png]\nValueError" in code.content
    assert len(code.content) < 5_000


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.srt", "1\r\n00:00:01,500 --> 00:00:03,000\r\n<i>Two</i>\r\nlines\r\n\r\n2\r\n"
                  "01:02:03,000 --> 01:02:04,000\r\nmore\r\n"),
        ("a.vtt", "WEBVTT\n\nNOTE left out\n\n00:01.500 --> 00:03.000 align:start\nTwo\nlines\n\n"
                  "name\n01:02:03.000 --> 01:02:04.000\nmore\n"),
    ],
)  # fmt: skip
def test_subtitles_keep_their_times(name: str, source: str) -> None:
    document = parse_document(name, source.encode())
    assert isinstance(document, ParsedDocument)
    assert document.parts[0].content == "[00:00:01] Two lines\n[01:02:03] more\n"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.ipynb", b'{"cells": 3}'),
        ("a.eml", b"no header at all\n"),
        ("a.srt", b"no times\n"),
        ("a.rtf", b"no RTF\n"),
        ("graph.dot", b"digraph { a -> b }\n"),
        ("de.pot", b'msgid "a"\nmsgstr ""\n'),
        ("a.html", b"{% extends 'base.html' %}\n<html><body>" + b"<p>words</p>\n" * 200),
        ("a.html", b"<div>a fragment</div>\n"),
    ],
)
def test_what_is_no_document_stays_the_text_that_it_is(name: str, data: bytes) -> None:
    document = parse_document(name, data)
    assert isinstance(document, ParsedDocument)
    (part,) = document.parts
    assert (part.name, part.content, part.encoding) == ("", data.decode(), "utf-8")


@pytest.mark.parametrize(
    "name", sorted(one.name for one in FOLDER.iterdir() if is_document(one.name))
)
def test_the_same_bytes_make_the_same_parts(name: str) -> None:
    data = (FOLDER / name).read_bytes()
    first = parse_document(name, data)
    assert parse_document(f"elsewhere/{name.upper()}", data) == (
        Skipped(f"elsewhere/{name.upper()}", first.reason) if isinstance(first, Skipped) else first
    )
