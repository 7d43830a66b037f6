"""What programs can put into a document, and what becomes of it in Markdown."""

from __future__ import annotations

import io
import zipfile

import pytest

from rlm_rag.loaders.documents import parse_document
from rlm_rag.loaders.parsing.parts import ParsedDocument

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
MC = "http://schemas.openxmlformats.org/markup-compatibility/2006"


def zipped(members: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return made.getvalue()


def _mode(target: str) -> str:
    return "External" if "://" in target else "Internal"


def relations(*found: tuple[str, str, str]) -> str:
    rows = "".join(
        f'<Relationship Id="{key}" Type="{OFFICE}/{kind.rstrip("2")}" Target="{target}"'
        f' TargetMode="{_mode(target)}"/>'
        for key, kind, target in found
    )
    return f'<Relationships xmlns="{PACKAGE}">{rows}</Relationships>'


def word(body: str, **members: str) -> str:
    root = f'xmlns:w="{W}" xmlns:r="{OFFICE}" xmlns:mc="{MC}"'
    kinds = [(f"p{kind}", kind, f"{kind}.xml") for kind in members]
    parts = {
        "_rels/.rels": relations(("m", "officeDocument", "main.xml")),
        "_rels/main.xml.rels": relations(("h", "hyperlink", "https://example.org/a"), *kinds),
        "main.xml": f"<w:document {root}><w:body>{body}</w:body></w:document>",
    }
    parts |= {
        f"{kind}.xml": f"<w:{kind} {root}>{inner}</w:{kind}>" for kind, inner in members.items()
    }
    return text_of("a.docx", zipped(parts))


def text_of(name: str, data: bytes | str) -> str:
    found = parse_document(name, data.encode() if isinstance(data, str) else data)
    assert isinstance(found, ParsedDocument), found
    assert len(found.parts) == 1
    return found.parts[0].content


def paragraph(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def test_of_tracked_changes_the_new_text_is_read() -> None:
    assert (
        word(
            "<w:p><w:r><w:t>kept </w:t></w:r><w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
            "<w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:moveFrom><w:r><w:t>gone</w:t></w:r>"
            "</w:moveFrom></w:p>"
        )
        == "kept new\n"
    )


def test_numbers_of_headings_and_items_are_those_that_word_shows() -> None:
    levels = "".join(
        f'<w:lvl w:ilvl="{level}"><w:start w:val="1"/><w:numFmt w:val="{form}"/>'
        f'<w:lvlText w:val="{shown}"/></w:lvl>'
        for level, form, shown in ((0, "decimal", "%1."), (1, "decimal", "%1.%2"))
    )
    lists = (
        f'<w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>'
        '<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:start w:val="3"/>'
        '<w:numFmt w:val="lowerRoman"/><w:lvlText w:val="(%1)"/></w:lvl></w:abstractNum>'
        '<w:num w:numId="7"><w:abstractNumId w:val="0"/></w:num>'
        '<w:num w:numId="8"><w:abstractNumId w:val="1"/></w:num>'
    )
    heading = (
        '<w:outlineLvl w:val="{0}"/><w:numPr><w:ilvl w:val="{0}"/><w:numId w:val="7"/></w:numPr>'
    )
    item = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="8"/></w:numPr>'
    body = "".join(
        paragraph(text, heading.format(level))
        for text, level in (("One", 0), ("Sub", 1), ("Sub", 1), ("Two", 0), ("Sub", 1))
    )
    made = word(body + paragraph("a", item) + paragraph("b", item), numbering=lists)
    assert made.split("\n\n") == [
        "# 1. One", "## 1.1 Sub", "## 1.2 Sub", "# 2. Two", "## 2.1 Sub", "(iii) a\n(iv) b\n",
    ]  # fmt: skip


def test_notes_comments_links_boxes_and_powers_are_kept_apart() -> None:
    box = f"<w:drawing><w:txbxContent>{paragraph('boxed')}</w:txbxContent></w:drawing>"
    body = (
        '<w:p><w:r><w:t>10</w:t></w:r><w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr>'
        '<w:t>6</w:t></w:r><w:r><w:footnoteReference w:id="9"/></w:r><w:r><w:t> of </w:t></w:r>'
        '<w:hyperlink r:id="h"><w:r><w:t>them</w:t></w:r></w:hyperlink>'
        '<w:r><w:commentReference w:id="0"/></w:r><w:r><mc:AlternateContent><mc:Choice>'
        f"{box}</mc:Choice><mc:Fallback><w:pict>{box}</w:pict></mc:Fallback>"
        "</mc:AlternateContent></w:r></w:p>"
    )
    made = word(
        body,
        footnotes=f'<w:footnote w:id="9">{paragraph("a note")}</w:footnote>',
        comments=f'<w:comment w:id="0" w:author="Ann">{paragraph("really?")}</w:comment>',
    )
    assert made.split("\n\n") == [
        "10^6[^1] of [them](https://example.org/a)[^c1]",
        "boxed",
        "[^1]: a note",
        "[^c1]: comment by Ann: really?\n",
    ]


def test_headers_and_footers_come_after_the_body_once_each_by_section() -> None:
    def section(*kinds: str) -> str:
        found = [f'<w:{kind[:6]}Reference w:type="x" r:id="p{kind}"/>' for kind in kinds]
        return f"<w:sectPr>{''.join(found)}</w:sectPr>"

    text = word(
        paragraph("One.", section("header", "footer")) + paragraph("Two.") + section("header2"),
        header2=paragraph("Secret"),
        header=paragraph("Draft") + paragraph("of May"),
        footer=paragraph("Page 3"),
        footer2=paragraph("never shown"),
    )
    said = ["One.", "Two.", "Header:", "Draft", "of May", "Footer: Page 3", "Header: Secret\n"]
    assert text.split("\n\n") == said
    same = word(
        paragraph("One.", section("header")) + section("header2"),
        header=paragraph("Draft"),
        header2=paragraph("Draft"),
    )
    assert same == "One.\n\nHeader: Draft\n"


def test_merged_and_nested_cells_keep_their_columns() -> None:
    def cell(text: str, properties: str = "") -> str:
        return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"

    inner = f"<w:tbl><w:tr>{cell('x')}{cell('y')}</w:tr></w:tbl>"
    rows = (
        cell("wide", '<w:gridSpan w:val="2"/>') + cell("tall", '<w:vMerge w:val="restart"/>'),
        cell("a") + f"<w:tc>{inner}</w:tc>" + cell("", "<w:vMerge/>"),
    )
    made = word(f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>")
    assert made == "| wide |  | tall |\n| --- | --- | --- |\n| a | x, y |\n"


def test_a_page_is_its_main_text_with_its_structure() -> None:
    page = """<!DOCTYPE html><html><head><title>A page</title><style>p {}</style></head><body>
    <nav><a href="/">Home</a></nav><div role="banner">Banner</div><main>
    <h1>Top <a href="#t">¶</a></h1>
    <p>Some <b>bold</b> words, a <a href="b.html">link</a>,<br>10<sup>6</sup> &amp;
    <code>code</code>.
    <p>An unclosed one<ul><li>one<li>two<ol><li>inner</ol></ul>
    <table><tr><th>A<th>B<tr><td>1|2<td><i>x</i></table><pre>  kept
    as is</pre><p hidden>hidden</p><p style="display:none">none</p><script>no()</script>
    <blockquote>quoted</blockquote></main><footer>Imprint</footer></body></html>"""
    assert text_of("a.html", page).split("\n\n") == [
        "---\nTitle: A page\n---",
        "# Top",
        "Some bold words, a [link](b.html),\n10^6 & `code`.",
        "An unclosed one",
        "- one\n- two\n  1. inner",
        "| A | B |\n| --- | --- |\n| 1\\|2 | x |",
        "```\n  kept\n    as is\n```",
        "> quoted\n",
    ]


def test_a_page_without_marks_loses_what_is_around() -> None:
    around = "<nav>Home</nav>", "<footer>Imprint</footer>"
    words = "<p>" + "words of the page " * 30 + "</p>"
    made = text_of("a.html", f"<html><body>{around[0]}{words}{around[1]}</body></html>")
    assert made.count("words of the page") == 30
    assert "Home" not in made and "Imprint" not in made


def test_a_short_page_is_read_as_a_long_one_is() -> None:
    page = "<html><head><title>Post</title></head><body><h1>Post</h1><p>14 days.</p></body></html>"
    assert text_of("a.html", page) == "---\nTitle: Post\n---\n\n# Post\n\n14 days.\n"


@pytest.mark.parametrize(
    "more",
    [
        "<div id=app></div><script src=app.js></script>",
        "<form action=/login><input name=user></form>",
        "<meta http-equiv='refresh' content='0; url=https://example.org/'>",
        "<iframe src=page.html></iframe>",
        "<app-root></app-root>",
        "<p>{{ user.name }}</p>",
    ],
)
def test_a_short_page_that_does_more_than_show_its_text_stays_as_it_is_written(more: str) -> None:
    page = f"<html><body><p>Please wait.</p>{more}</body></html>"
    assert text_of("a.html", page) == page
    assert text_of("a.html", "<html><body></body></html>") == "<html><body></body></html>"


def test_chapters_come_in_the_order_of_the_book() -> None:
    names = {"b": "One &mdash; first", "a": "Two"}
    items = "".join(
        f'<item id="{key}" href="{key}%20.xhtml" media-type="application/xhtml+xml"/>'
        for key in sorted(names)
    )
    spine = "".join(f'<itemref idref="{key}"/>' for key in names)
    members = {
        "META-INF/container.xml": '<c><rootfile full-path="in/book.opf"/></c>',
        "in/book.opf": (
            '<package xmlns:d="x"><metadata><d:title>Book</d:title></metadata>'
            f"<manifest>{items}</manifest><spine>{spine}</spine></package>"
        ),
    }
    for key, title in names.items():
        members[f"in/{key} .xhtml"] = f"<html><body><h1>{title}</h1><p>Text.</p></body></html>"
    book = parse_document("a.epub", zipped(members))
    assert isinstance(book, ParsedDocument)
    assert [(part.name, part.content) for part in book.parts] == [
        ("info=properties", "Title: Book\n"),
        ("chapter=1", "# One — first\n\nText.\n"),
        ("chapter=2", "# Two\n\nText.\n"),
    ]


def test_rtf_keeps_scripts_tables_and_fields_apart_from_codes() -> None:
    rtf = (
        r"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}{\f1\fcharset204 Cyr;}}"
        r"{\stylesheet{\s1 heading 2;}}{\*\generator x;}\pard\s1 Caf\'e9\par"
        r"\pard {\f1 \'cf\'f0} \u8364 ? \u-10179?\u-8704?"
        r"{\field{\*\fldinst{HYPERLINK "
        r'"https://example.org/x"}}{\fldrslt there}}{\footnote noted}\par'
        r"\trowd\intbl a|\cell b\cell\row\pard{\pict 0102}end\par}"
    )
    assert text_of("a.rtf", rtf).split("\n\n") == [
        "## Café",
        "Пр € \U0001f600[there](https://example.org/x)[^1]",
        "| a\\| | b |\n| --- | --- |",
        "end",
        "[^1]: noted\n",
    ]
