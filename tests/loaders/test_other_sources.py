"""Globs, and what packages of others teach `load` to read."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_rag.errors import EmptyCorpusError, SourceError
from rlm_rag.loaders.source import load_corpus, load_sources

LOADER = """
def read(source, options):
    if source.endswith("/fail"):
        raise RuntimeError("out of order")
    yield "a.txt", "text of " + source
    yield "b.txt", "é".encode("utf-16")
    yield ".env", b"K=1"
    yield "c.bin", b"\\0"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("src/a.py", "src/x/b.py", "src/c.md", "docs/d.py", "[odd].txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def paths(source: str) -> list[str]:
    with load_corpus(source) as corpus:
        return list(corpus.paths())


def test_a_glob_names_files_of_the_folder_before_it(folder: Path) -> None:
    assert paths("src/**/*.py") == ["a.py", "x/b.py"]
    assert paths(f"{folder}/src/*.py") == ["a.py"]
    assert paths("*/*.py") == ["docs/d.py", "src/a.py"]
    assert paths("src/[ac].*") == ["a.py", "c.md"]
    assert paths("[odd].txt") == ["[odd].txt"]
    with load_corpus("src/*.py") as corpus:
        assert corpus.skipped == ()
        assert str(corpus.origin) == f"'{folder}/src/*.py'"
    with load_sources(["src/*.py", "docs/*.py"]) as corpus:
        assert list(corpus.paths()) == ["src/a.py", "docs/d.py"]


def test_a_glob_that_matches_nothing_is_an_error_that_names_it(folder: Path) -> None:
    (folder / "src" / ".hidden").write_text("what the glob does not name\n")
    with pytest.raises(EmptyCorpusError, match=r"There is no document in src/\*\.rs"):
        paths("src/*.rs")
    (folder / "src" / ".hidden.rs").write_text("what it names\n")
    with pytest.raises(EmptyCorpusError, match=r"Skipped: 1 hidden\."):
        paths("src/*.rs")
    with pytest.raises(SourceError, match="No such file"):
        paths("nowhere/*.rs")


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = tmp_path / "wiki_loader-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: wiki-loader\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[rlm_rag.loaders]\nwiki = wiki_loader:read\n")
    (tmp_path / "wiki_loader.py").write_text(LOADER)
    monkeypatch.syspath_prepend(tmp_path)


def test_a_package_of_others_loads_what_has_its_scheme(plugin: None) -> None:
    with load_corpus("wiki://host/pages") as corpus:
        found = {one.path: (one.content, one.encoding) for one in corpus}
        assert found == {"a.txt": ("text of wiki://host/pages", None), "b.txt": ("é", "utf-16")}
        assert {one.path: one.reason for one in corpus.skipped} == {
            ".env": "may hold secrets", "c.bin": "binary"
        }  # fmt: skip
    with load_sources(["wiki:pages", "x=wiki://host/pages"]) as corpus:
        assert list(corpus.paths())[::2] == ["pages/a.txt", "x/a.txt"]


def test_a_loader_of_others_that_fails_is_named(plugin: None) -> None:
    with pytest.raises(SourceError, match=r"wiki_loader:read.*out of order"):
        paths("wiki://host/fail")


def test_a_scheme_that_nobody_loads_is_an_error_that_says_which_are_known() -> None:
    with pytest.raises(SourceError, match="no loader is known") as caught:
        paths("gopher://host/x")
    assert "https" in str(caught.value.hint)
