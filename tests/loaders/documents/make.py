"""Makes the documents beside it with the programs that people write documents with.

Run by hand, with LibreOffice on the path and `pip install python-docx python-pptx openpyxl
reportlab`: python tests/loaders/documents/make.py. The tests read what it made, and need none of
these. `text.py` holds the words that are written here.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from email.message import EmailMessage
from pathlib import Path

import docx
import openpyxl
import pptx
import text
from pptx.util import Inches
from reportlab.lib import pdfencrypt
from reportlab.lib.pagesizes import A5
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

HERE = Path(__file__).parent
FLAT_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<office:document office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.{kind}"
 xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"
 xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"
 xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"
 xmlns:presentation="urn:oasis:names:tc:opendocument:xmlns:presentation:1.0"
 xmlns:meta="urn:oasis:names:tc:opendocument:xmlns:meta:1.0"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink">
<office:meta><dc:title>{title}</dc:title><meta:initial-creator>{author}</meta:initial-creator>
</office:meta>
"""


def main() -> None:
    """Write every document anew."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.fodt"
        report.write_text(flat_report(), "utf-8")
        for suffix in ("docx", "odt", "rtf", "pdf", "epub", "html"):
            convert(report, HERE / f"office-report.{suffix}")
        deck = Path(folder) / "deck.fodp"
        deck.write_text(flat_deck(), "utf-8")
        for suffix in ("pptx", "odp"):
            convert(deck, HERE / f"office-deck.{suffix}")
        write_book(HERE / "book.xlsx")
        for suffix in ("ods", "xlsx"):
            convert(HERE / "book.xlsx", HERE / f"office-book.{suffix}")
    write_report(HERE / "report.docx")
    write_deck(HERE / "deck.pptx")
    write_pages(HERE / "pages.pdf", encrypt=None)
    locked = pdfencrypt.StandardEncryption("secret", canPrint=0)
    write_pages(HERE / "locked.pdf", encrypt=locked)
    write_letter(HERE / "letter.eml")


def convert(source: Path, target: Path) -> None:
    """Let LibreOffice write `source` as another format."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                "soffice",
                "--headless",
                "--convert-to",
                target.suffix[1:],
                "--outdir",
                folder,
                source,
            ],
            check=True,
            capture_output=True,
        )
        made = Path(folder) / f"{source.stem}{target.suffix}"
        target.write_bytes(made.read_bytes())


def flat_report() -> str:
    rows = "".join(
        "<table:table-row>"
        + "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in row)
        + "</table:table-row>"
        for row in text.TABLE
    )
    items = "".join(
        f"<text:list-item><text:p>{item}</text:p></text:list-item>" for item in text.ITEMS
    )
    before, after = text.PARAGRAPHS[0].split(text.NOTE_AFTER)
    note = (
        '<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation>'
        f"<text:note-body><text:p>{text.NOTE}</text:p></text:note-body></text:note>"
    )
    first = f"{before}{text.NOTE_AFTER}{note}{after}"
    link = f'<text:a xlink:type="simple" xlink:href="{text.LINK}">{text.LINK_TEXT}</text:a>'
    return (
        FLAT_HEAD.format(kind="text", title=text.TITLE, author=text.AUTHOR)
        + "<office:body><office:text>"
        + f'<text:h text:outline-level="1">{text.HEADINGS[0]}</text:h><text:p>{first}</text:p>'
        + f"<text:list>{items}</text:list>"
        + f'<text:h text:outline-level="2">{text.HEADINGS[1]}</text:h>'
        + '<table:table table:name="T"><table:table-column table:number-columns-repeated="3"/>'
        + f"{rows}</table:table><text:p>{text.PARAGRAPHS[1]} {link}</text:p>"
        + "</office:text></office:body></office:document>"
    )


def flat_deck() -> str:
    pages = "".join(
        f'<draw:page draw:name="p{number}"><draw:frame presentation:class="title" svg:x="1cm"'
        f' svg:y="1cm" svg:width="20cm" svg:height="3cm"><draw:text-box><text:p>{title}</text:p>'
        '</draw:text-box></draw:frame><draw:frame svg:x="1cm" svg:y="5cm" svg:width="20cm"'
        f' svg:height="9cm"><draw:text-box>{"".join(f"<text:p>{line}</text:p>" for line in lines)}'
        "</draw:text-box></draw:frame><presentation:notes><draw:frame presentation:class="
        f'"notes" svg:x="2cm" svg:y="14cm" svg:width="16cm" svg:height="9cm"><draw:text-box>'
        f"<text:p>{notes}</text:p></draw:text-box></draw:frame></presentation:notes></draw:page>"
        for number, (title, lines, notes) in enumerate(text.SLIDES, start=1)
    )
    return (
        FLAT_HEAD.format(kind="presentation", title=text.TITLE, author=text.AUTHOR)
        + f"<office:body><office:presentation>{pages}</office:presentation></office:body>"
        + "</office:document>"
    )


def write_report(path: Path) -> None:
    document = docx.Document()
    document.core_properties.title = text.TITLE
    document.core_properties.author = text.AUTHOR
    document.add_heading(text.HEADINGS[0], 1)
    document.add_paragraph(text.PARAGRAPHS[0])
    for item in text.ITEMS:
        document.add_paragraph(item, style="List Bullet")
    document.add_heading(text.HEADINGS[1], 2)
    table = document.add_table(len(text.TABLE), len(text.TABLE[0]))
    for row, texts in zip(table.rows, text.TABLE, strict=True):
        for cell, value in zip(row.cells, texts, strict=True):
            cell.text = value
    document.add_paragraph(text.PARAGRAPHS[1])
    document.save(path)


def write_deck(path: Path) -> None:
    deck = pptx.Presentation()
    deck.core_properties.title = text.TITLE
    deck.core_properties.author = text.AUTHOR
    for title, lines, notes in text.SLIDES:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text_frame.text = "\n".join(lines)
        slide.notes_slide.notes_text_frame.text = notes
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = text.HEADINGS[1]
    size = (len(text.TABLE), len(text.TABLE[0]))
    shape = slide.shapes.add_table(*size, Inches(1), Inches(2), Inches(6), Inches(2))
    for row, texts in zip(shape.table.rows, text.TABLE, strict=True):
        for cell, value in zip(row.cells, texts, strict=True):
            cell.text = value
    deck.save(path)


def write_book(path: Path) -> None:
    book = openpyxl.Workbook()
    book.properties.title = text.TITLE
    book.properties.creator = text.AUTHOR
    book.remove(book.active)
    for name, rows in text.SHEETS.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book[next(iter(text.SHEETS))]["E6"] = text.FORMULA
    book.save(path)


def write_pages(path: Path, *, encrypt: object) -> None:
    canvas = Canvas(str(path), pagesize=A5, encrypt=encrypt, invariant=1)
    canvas.setTitle(text.TITLE)
    canvas.setAuthor(text.AUTHOR)
    for number, lines in enumerate(text.PAGES, start=1):
        if lines == text.SCANNED:
            canvas.drawImage(ImageReader(grey_picture()), 100, 100, 200, 200)
        for at, line in enumerate(lines if isinstance(lines, tuple) else ()):
            canvas.drawString(50, 500 - 20 * at, line)
        canvas.bookmarkPage(f"p{number}")
        canvas.addOutlineEntry(f"Chapter {number}", f"p{number}")
        canvas.showPage()
    canvas.save()


def grey_picture() -> object:
    from PIL import Image

    return Image.new("L", (8, 8), 128)


def write_letter(path: Path) -> None:
    letter = EmailMessage()
    letter["From"] = "Ann Example <ann@example.org>"
    letter["To"] = "bob@example.org"
    letter["Date"] = "Mon, 01 Jan 2024 10:00:00 +0000"
    letter["Subject"] = text.SUBJECT
    letter.set_content("\n".join(text.PARAGRAPHS))
    letter.add_alternative(f"<p>{text.PARAGRAPHS[0]}</p>", subtype="html")
    pdf = (HERE / "pages.pdf").read_bytes()
    letter.add_attachment(pdf, maintype="application", subtype="pdf", filename="the pages.pdf")
    letter.add_attachment("a,b\n1,2\n", subtype="csv", filename="data.csv")
    letter.add_attachment("TOKEN=1\n", filename=".env")
    letter.set_boundary("=-=")
    path.write_bytes(letter.as_bytes())


if __name__ == "__main__":
    sys.exit(main())
