"""Documents in a corpus: loaded beside text, searched by part, cited by page, slide or sheet."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag.errors import MissingExtraError, SourceError
from rlm_rag.loaders.options import LoadReport
from rlm_rag.loaders.parsing import formats
from rlm_rag.loaders.reading import read_bytes
from rlm_rag.loaders.source import load_corpus, load_sources

FOLDER = Path(__file__).parent / "documents"
NAMES = ("pages.pdf", "office-report.docx", "deck.pptx", "book.xlsx", "letter.eml", "locked.pdf")


@pytest.fixture
def heap(tmp_path: Path) -> Path:
    folder = tmp_path / "heap"
    folder.mkdir()
    for name in NAMES:
        shutil.copy(FOLDER / name, folder)
    (folder / "notes.txt").write_text("plain text\n")
    return folder


def test_a_folder_of_documents_is_a_corpus_of_their_parts(heap: Path) -> None:
    with load_corpus(heap) as corpus:
        paths = list(corpus.paths())
        assert paths[:3] == [
            "book.xlsx#info=properties",
            "book.xlsx#sheet=Colonies_2014",
            "book.xlsx#sheet=Notes",
        ]
        assert {"pages.pdf#page=4", "deck.pptx#slide=3", "office-report.docx", "notes.txt"} <= set(
            paths
        )
        assert "letter.eml#attachment=the_pages.pdf#page=4" in paths
        assert {(one.path, one.reason) for one in corpus.skipped} == {
            ("letter.eml#attachment=.env", "may hold secrets"),
            ("locked.pdf", "not parsed: encrypted: it opens with a password only"),
        }
        assert any(warning.startswith("locked.pdf: not parsed:") for warning in corpus.warnings)
        assert all("\r" not in document.content for document in corpus)


def test_globs_see_the_path_before_the_part(heap: Path) -> None:
    with load_corpus(heap, include="*.pdf") as corpus:
        assert {path.partition("#")[0] for path in corpus.paths()} == {"pages.pdf"}
    with load_sources([str(heap / "pages.pdf"), f"x={heap / 'notes.txt'}"]) as corpus:
        assert [path for path in corpus.paths() if "info" not in path][-2:] == [
            "pages.pdf#page=4",
            "x",
        ]
        assert corpus.warnings[-1] == "pages.pdf: nothing to read on page 2"


def test_parts_are_outlined_searched_and_read(heap: Path) -> None:
    with rlm_rag.load(heap) as corpus:
        assert corpus.outline("pages.pdf").splitlines()[1] == "pages.pdf#page=1 (2 lines)"
        within = corpus.outline("letter.eml#attachment=the_pages.pdf")
        assert within.splitlines()[-1] == "letter.eml#attachment=the_pages.pdf#page=4 (2 lines)"
        assert "2: A colony" not in corpus.outline("office-report.docx")
        assert "Figures for each colony" in corpus.outline("office-report.docx")
        (hit,) = corpus.search("ice broke up too early", k=1, path_glob="pages.pdf")
        assert (hit.path, hit.line) == ("pages.pdf#page=4", 1)
        assert "2: The ice broke up too early." in corpus.read("pages.pdf#page=4")


def test_a_cited_page_sheet_slide_or_attachment_is_verified(heap: Path, tmp_path: Path) -> None:
    answer = (
        'The colony failed: "A colony at Halley Bay failed in 2016." (pages.pdf#page=4:1-2). '
        'It had "| 4 | Halley Bay | 14300.5 | FALSE |" (book.xlsx#sheet=Colonies_2014:5); see '
        "the slide on krill, deck.pptx#slide=2, and the letter's copy, where "
        '"The ice broke up too early." (letter.eml#attachment=the_pages.pdf#page=4:2), but not '
        'in "The ice broke up too early." (pages.pdf#page=9:2).'
    )
    block = (
        "```repl\nhit = search('colony failed', k=1, path_glob='pages.pdf')[0]\n"
        f"print(hit['path'])\nFINAL({answer!r})\n```"
    )
    script = tmp_path / "script.json"
    script.write_text(json.dumps([block]))
    with rlm_rag.load(heap) as corpus:
        result = rlm_rag.ask(
            corpus, "When did it fail?", model=f"scripted:{script}", strategy="rlm", trace=False
        )
    found = {(one.path, one.line, one.end_line): one.status for one in result.citations}
    assert found == {
        ("pages.pdf#page=4", 1, 2): "verified",
        ("book.xlsx#sheet=Colonies_2014", 5, 5): "verified",
        ("deck.pptx#slide=2", 1, 8): "located",
        ("letter.eml#attachment=the_pages.pdf#page=4", 2, 2): "verified",
        ("pages.pdf#page=9", 2, 2): "false",
    }


def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    heap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        formats, "find_spec", lambda name: None if name == "pypdfium2" else find_spec(name)
    )
    with load_corpus(heap) as corpus:
        reasons = {one.path: one.reason for one in corpus.skipped}
        assert reasons["pages.pdf"] == "not parsed: PDF needs pip install 'rlm-rag[docs]'"
        assert "book.xlsx#sheet=Notes" in corpus
    with pytest.raises(MissingExtraError) as caught:
        load_corpus(heap / "pages.pdf")
    assert caught.value.hint == "pip install 'rlm-rag[docs]'"


def test_a_document_asked_for_by_name_that_cannot_be_parsed_is_an_error(heap: Path) -> None:
    with pytest.raises(SourceError, match="encrypted: it opens with a password only") as caught:
        load_corpus(heap / "locked.pdf")
    assert caught.value.hint


def test_what_stands_for_a_document_that_is_kept_elsewhere_is_text(tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    (tmp_path / "a.pdf").write_text(pointer)
    with load_corpus(tmp_path) as corpus:
        assert corpus["a.pdf"].content == pointer


def test_the_charset_that_a_carrier_names_holds_for_pages_too() -> None:
    report = LoadReport()
    page = "<!DOCTYPE html><html><meta charset=utf-8><main><p>" + "Всего пингвинов. " * 30
    (entry,) = read_bytes(
        "a.html", page.encode("koi8-r"), report, max_file_bytes=1 << 20, charset="koi8-r"
    )
    assert str(entry.content).startswith("Всего пингвинов.")
