from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from rlm_rag.errors import UsageError
from rlm_rag.loaders.located import paths_of
from rlm_rag.loaders.origins import file_of
from rlm_rag.loaders.source import load_sources


def test_a_file_has_the_path_that_its_document_has(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two=x"
    for folder in (one / "sub", two):
        folder.mkdir(parents=True)
        (folder / "a.md").write_text("text\n")
    for sources in ([one], [one, two], [f"{one}/**/*.md"], [f"named={one}"]):
        with load_sources([str(source) for source in sources]) as corpus:
            [path] = paths_of(one / "sub" / "a.md", corpus.origin)
            assert path in corpus.paths()
    (tmp_path / "link").symlink_to(one)
    assert paths_of(tmp_path / "link" / "new.md", shlex.join([str(one)])) == {"new.md"}


@pytest.mark.parametrize("names", [("one", "my notes"), ("a/repo", "b/repo"), ("one", "two=x")])
def test_what_several_sources_are_called_is_read_again(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    for name in names:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "a.md").write_text(f"of {name}\n")
    with load_sources([str(tmp_path / name) for name in names]) as corpus:
        paths, origin = list(corpus.paths()), corpus.origin
    assert origin is not None
    assert [path for name in names for path in paths_of(tmp_path / name / "a.md", origin)] == paths
    files = [file_of(origin, path) for path in paths]
    assert files == [tmp_path / name / "a.md" for name in names]
    with load_sources(shlex.split(origin)) as again:
        assert list(again.paths()) == paths


def test_a_document_of_a_named_source_lies_in_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text\n")
    for named, path in ((tmp_path, "notes/a.md"), (tmp_path / "a.md", "notes")):
        assert file_of(f"notes={named}", path) == tmp_path / "a.md"


def test_a_file_elsewhere_has_none(tmp_path: Path) -> None:
    for origin in (None, str(tmp_path / "sub"), "https://example.org/a.md", f"{tmp_path}@v1"):
        assert paths_of(tmp_path / "a.md", origin) == frozenset()


def test_a_source_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    for origin in (str(tmp_path / "a.jsonl"), f"named={tmp_path / 'a.jsonl'}"):
        with pytest.raises(UsageError, match="is the source itself"):
            paths_of(tmp_path / "a.jsonl", origin)
