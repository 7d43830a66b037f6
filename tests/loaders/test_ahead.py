"""Documents are parsed ahead of their turn, and nothing but the time of a load depends on it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rlm_rag.loaders import documents
from rlm_rag.loaders.ahead import parsing_ahead
from rlm_rag.loaders.source import load_corpus

FOLDER = Path(__file__).parent / "documents"


@pytest.fixture
def heap(tmp_path: Path) -> Path:
    for number in range(5):
        shutil.copy(FOLDER / "pages.pdf", tmp_path / f"{number}.pdf")
        shutil.copy(FOLDER / "office-report.odt", tmp_path / f"{number}.odt")
        (tmp_path / f"{number}.txt").write_text(f"{number}\n")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    return tmp_path


def wanted(folder: Path) -> list[tuple[str, str]]:
    return [(one.name, str(one)) for one in sorted(folder.iterdir())]


def test_a_load_is_as_if_each_file_had_been_loaded_alone(heap: Path) -> None:
    alone: list[tuple[str, str]] = []
    for path, location in wanted(heap):
        if path != "broken.pdf":
            with load_corpus(location) as corpus:
                alone += [(document.path, document.content) for document in corpus]
    with load_corpus(heap) as corpus:
        assert [(document.path, document.content) for document in corpus] == alone
        assert [one.path for one in corpus.skipped] == ["broken.pdf"]
    assert documents._EXPECTED == {}


def test_documents_are_begun_before_their_turn_and_files_that_are_known_are_not(
    heap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    monkeypatch.setattr(
        "rlm_rag.loaders.ahead.expect_document", lambda path, data: begun.append(len(data))
    )
    files = parsing_ahead(wanted(heap), lambda path, _: path != "0.odt", max_file_bytes=1 << 20)
    assert next(files)[0] == "0.odt"
    sizes = {one.name: one.stat().st_size for one in heap.iterdir()}
    assert begun[:2] == [sizes["0.pdf"], sizes["1.odt"]]
    assert [path for path, _ in files] == sorted(sizes)[1:]


def test_an_abandoned_load_forgets_what_it_began(heap: Path) -> None:
    files = parsing_ahead(wanted(heap), lambda *_: True, max_file_bytes=1 << 20)
    next(files)
    assert documents._EXPECTED
    files.close()
    assert documents._EXPECTED == {}
