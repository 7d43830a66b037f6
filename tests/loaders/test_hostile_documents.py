"""A document that is broken, locked, huge or a bomb costs itself alone, and says why."""

from __future__ import annotations

import io
import os
import select
import signal
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.corpus import Skipped
from rlm_rag.errors import DocumentError
from rlm_rag.loaders.documents import parse_document
from rlm_rag.loaders.parsing import wire
from rlm_rag.loaders.parsing.parts import ParsedDocument, Part
from rlm_rag.loaders.parsing.pool import ParserPool

FOLDER = Path(__file__).parent / "documents"
SOURCE = "http://schemas.openxmlformats.org"
RELATIONS = (
    f'<Relationships xmlns="{SOURCE}/package/2006/relationships"><Relationship Id="r" '
    f'Type="{SOURCE}/officeDocument/2006/relationships/officeDocument" Target="d.xml"/>'
    "</Relationships>"
)


def docx(document: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_rels/.rels", RELATIONS)
        archive.writestr("d.xml", document)
    return made.getvalue()


def word(body: str, before: str = "") -> bytes:
    name_space = f"{SOURCE}/wordprocessingml/2006/main"
    return docx(
        f'{before}<w:document xmlns:w="{name_space}"><w:body>{body}</w:body></w:document>'.encode()
    )


def bomb() -> bytes:
    """A member that says, as it is, that it unpacks to 600 MiB; 0.6 MiB of zeros stand for it."""
    data = docx(b"\0" * (600 << 10))
    size = (600 << 10).to_bytes(4, "little")
    assert data.count(size) == 2
    return data.replace(size, (600 << 20).to_bytes(4, "little"))


def pdf(pages: int) -> bytes:
    """A PDF whose pages are one page again and again."""
    bodies = (
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Count {pages}/Kids[{'3 0 R ' * pages}]>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
    )
    objects = "".join(f"{number} 0 obj\n{body}\nendobj\n" for number, body in enumerate(bodies, 1))
    return f"%PDF-1.4\n{objects}trailer<</Root 1 0 R/Size 4>>\n%%EOF".encode()


LAUGHS = "<!DOCTYPE x [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'>]>"
NOT_OLD = "encrypted, or in the binary format of Office before 2007"
HOSTILE = {
    "empty.pdf": (b"", "empty"),
    "no.pdf": (b"%PDF-1.7\nnothing", "broken, or no PDF"),
    "long.pdf": (pdf(10_000), "more than 8,000 pages"),
    "blank.pdf": (pdf(3), "3 pages without text: nothing to read"),
    "no.docx": (b"PK\3\4 cut off", "broken, or not of the format that its name says"),
    "other.docx": (docx(b"<x/>")[:-30], "broken, or not of the format that its name says"),
    "ole.docx": (bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 99, NOT_OLD),
    "bomb.docx": (bomb(), "unpacks to 600 MiB, more than 512 MiB"),
    "laughs.docx": (word("<w:p/>", LAUGHS), "its d.xml declares XML entities"),
    "deep.docx": (word("<w:sdt>" * 9000 + "</w:sdt>" * 9000), "it is nested too deep"),
    "no.xlsx": (docx(b"<x/>"), "broken: "),
    "no.epub": (docx(b"<x/>"), "broken: its META-INF/container.xml is missing or damaged"),
    "no.odt": (b"text", "broken: its text is no XML"),
    "deep.rtf": (b"{\\rtf1" + b"{" * 99_999, "it is nested too deep"),
    "cells.fods": (
        b'<d xmlns:t="t"><t:body><t:spreadsheet><t:table>'
        b'<t:table-row t:number-rows-repeated="999999999">'
        b'<t:table-cell t:number-columns-repeated="999999"><t:p>a cell</t:p></t:table-cell>'
        b"</t:table-row></t:table></t:spreadsheet></t:body></d>",
        "its text is larger than 64 MiB",
    ),
    "old.doc": (bytes.fromhex("d0cf11e0a1b11ae1") * 9, "the binary format of Office before 2007"),
    "noise.eml": (bytes(range(256)) * 40, "binary"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_parsed_is_skipped_with_its_reason(name: str) -> None:
    data, reason = HOSTILE[name]
    found = parse_document(name, data)
    assert isinstance(found, Skipped), found
    assert found.path == name
    assert found.reason.startswith(f"not parsed: {reason}")


def test_a_locked_pdf_is_skipped_with_its_reason() -> None:
    found = parse_document("locked.pdf", (FOLDER / "locked.pdf").read_bytes())
    assert found == Skipped("locked.pdf", "not parsed: encrypted: it opens with a password only")


@pytest.mark.parametrize("tag", ["div", "b", "ul", "table><tr><td"])
def test_endless_nesting_of_html_loses_no_text(tag: str) -> None:
    words = "the words within " * 40
    found = parse_document("a.html", f"<html><body>{f'<{tag}>' * 2_000}{words}".encode())
    assert isinstance(found, ParsedDocument)
    assert found.parts[0].content.count("the words within") == 40


@given(data=st.data())
@settings(max_examples=25)
def test_a_damaged_document_is_parsed_or_skipped(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(one.name for one in FOLDER.glob("*.*[xtfbls]"))))
    whole = (FOLDER / name).read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    damage = data.draw(st.binary(max_size=20))
    cut = data.draw(st.integers(at, min(len(whole), at + 40)))
    found = parse_document(name, whole[:at] + damage + whole[cut:])
    assert isinstance(found, ParsedDocument) or found.reason


@pytest.fixture
def parsers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Parsers that do what a hostile document could make a real one do."""
    (tmp_path / "hostile_parsers.py").write_text(
        "import os, signal, time\n"
        "from rlm_rag.loaders.parsing.parts import single\n"
        "def parse(data):\n"
        "    exec(data.decode())\n"
        "    return single(f'{os.getpid()}')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return "hostile_parsers"


def parse(pool: ParserPool, module: str, code: str) -> str:
    return pool.parse(module, code.encode()).parts[0].content.strip()


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def gone(process: int, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while is_alive(process) and time.monotonic() < end:
        time.sleep(0.02)
    return not is_alive(process)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("while True: pass", "parsing took more than 0.2 s of processor time and was stopped"),
        ("x = bytearray(1 << 30)", "parsing it takes too much memory"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "its parser crashed (SIGSEGV)"),
        ("os._exit(3)", "its parser crashed (exit status 3)"),
        ("raise OSError('odd')", "broken: OSError: odd"),
        ("os.write(5, b'x' * 99); os._exit(0)", "its parser"),
    ],
)
def test_a_parser_that_fails_costs_its_document_alone(parsers: str, code: str, reason: str) -> None:
    pool = ParserPool(processor_seconds=0.2, wall_seconds=60, memory_bytes=256 << 20)
    before = parse(pool, parsers, "")
    with pytest.raises(DocumentError) as caught:
        pool.parse(parsers, code.encode())
    assert str(caught.value).startswith(reason)
    assert parse(pool, parsers, "")
    pool.close()
    assert gone(int(before))


def test_a_parser_that_waits_for_ever_is_stopped(parsers: str) -> None:
    pool = ParserPool(wall_seconds=0.5)
    with pytest.raises(DocumentError, match=r"longer than 0\.5 s and was stopped"):
        pool.parse(parsers, b"time.sleep(60)")
    pool.close()


def test_one_process_is_reused_and_two_work_side_by_side(parsers: str) -> None:
    pool = ParserPool()
    # What this process has, or had, is no measure of its children.
    large = bytearray(300 << 20)
    large[:: 1 << 12] = b"x" * len(large[:: 1 << 12])
    try:
        assert len({parse(pool, parsers, "") for _ in range(6)}) <= 2
        with ThreadPoolExecutor(8) as threads:
            code = ["time.sleep(0.05)"] * 8
            ids = set(threads.map(lambda one: parse(pool, parsers, one), code))
        assert 1 <= len(ids) <= min(os.cpu_count() or 1, 4)
    finally:
        pool.close()


def test_a_process_that_died_idle_is_replaced(parsers: str) -> None:
    pool = ParserPool()
    first = int(parse(pool, parsers, ""))
    os.kill(first, signal.SIGKILL)
    assert gone(first)
    assert int(parse(pool, parsers, "")) != first
    pool.close()


def test_no_key_reaches_a_parser_and_it_writes_no_file(
    parsers: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    pool = ParserPool()
    parse(pool, parsers, "assert 'OPENAI_API_KEY' not in os.environ")
    with pytest.raises(DocumentError, match=r"File too large|SIGXFSZ"):
        pool.parse(
            parsers,
            f"os.write(os.open({str(tmp_path / 'x')!r}, os.O_RDWR | os.O_CREAT), b'x')".encode(),
        )
    pool.close()


def test_no_parser_outlives_a_killed_parent(parsers: str, tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    os.mkfifo(noted)
    # A process may not write files, but a pipe is none.
    pipe = f"os.open({str(noted)!r}, os.O_WRONLY)"
    busy = f"os.write({pipe}, str(os.getpid()).encode())\nwhile True: pass"
    host = (
        "import sys, threading; sys.path.insert(0, sys.argv[1])\n"
        "from rlm_rag.loaders.parsing.pool import ParserPool\n"
        f"arguments = {parsers!r}, {busy!r}.encode()\n"
        "thread = threading.Thread(target=ParserPool().parse, args=arguments)\n"
        "thread.start(); thread.join()\n"
    )
    with subprocess.Popen([sys.executable, "-c", host, str(tmp_path)]) as parent:
        said = os.open(noted, os.O_RDWR)
        assert select.select([said], [], [], 30)[0]
        parser = int(os.read(said, 20))
        os.close(said)
        assert is_alive(parser)
        parent.kill()
    assert gone(parser)


@given(body=st.binary(max_size=60) | st.text('{}[]":,partsned=#1', max_size=60).map(str.encode))
def test_nothing_that_a_parser_says_is_taken_on_trust(body: bytes) -> None:
    try:
        decoded = wire.decode_reply(body)
    except DocumentError:
        return
    assert isinstance(decoded, (str, ParsedDocument))


@pytest.mark.parametrize("name", ["../x", "page=1\n", "page=", "page=a b", "x", "page=1#", "a=`"])
def test_a_part_of_a_name_that_could_mislead_is_refused(name: str) -> None:
    reply = wire.encode_reply(ParsedDocument((Part(name, "text"),)))
    with pytest.raises(DocumentError):
        wire.decode_reply(reply[8:])
