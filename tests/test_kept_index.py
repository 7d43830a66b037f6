"""From a source to a stored index, as a caller meets it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag.kept import KeptSource, default_kept_folder, list_kept


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = default_kept_folder()
    assert root is not None
    yield root


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "a.py").write_text("def backoff(): pass\n")
    (folder / "b.md").write_text("about the delay\n")
    return folder


def searched(source: object, query: str, **options: str) -> list[str]:
    with rlm_rag.load(source, **options) as corpus:  # type: ignore[arg-type]
        return [hit.path for hit in corpus.search(query)]


def one(root: Path) -> KeptSource:
    (index,) = list_kept(root)
    return index


def test_the_index_of_a_folder_is_kept_and_follows_its_files(cache: Path, source: Path) -> None:
    assert searched(source, "backoff") == ["a.py"]
    first = one(cache)
    assert first.origin == str(source.resolve())
    assert searched(str(source) + "/.", "delay") == ["b.md"]
    assert one(cache).segments == first.segments == 1
    (source / "a.py").rename(source / "renamed.py")
    (source / "b.md").unlink()
    assert searched(source, "backoff") == ["renamed.py"]
    assert searched(source, "delay") == []


def test_other_options_are_another_index(cache: Path, source: Path) -> None:
    searched(source, "backoff")
    searched(source, "backoff", include="*.py")
    assert len(list_kept(cache)) == 2


@pytest.mark.parametrize("values", [{"a.py": "backoff\n"}, ["backoff\n"], "backoff\n"])
def test_what_is_no_file_is_not_written_down(cache: Path, values: object) -> None:
    assert len(searched(values, "backoff")) == 1
    assert list_kept(cache) == []


def test_a_search_without_a_cache_folder_that_can_be_made_still_finds(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))
    assert searched(source, "backoff") == ["a.py"]


def test_links_that_lead_nowhere_beside_what_is_kept_keep_no_index_from_it(
    cache: Path, source: Path
) -> None:
    for folder in (cache / "strange", cache):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "loop").symlink_to("loop")
    with rlm_rag.load(source) as corpus:
        assert [hit.path for hit in corpus.search("backoff")] == ["a.py"]
    assert str(source.resolve()) in [kept.origin for kept in list_kept(cache)]
