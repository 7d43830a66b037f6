"""The program's own cache and traces are no part of a folder that they lie in."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rlm_rag.corpus import Corpus
from rlm_rag.errors import EmptyCorpusError
from rlm_rag.kept import default_kept_folder
from rlm_rag.loaders import keeping, memory
from rlm_rag.loaders.keeping import Keeping
from rlm_rag.loaders.own import OWN_CACHE_REASON, OWN_STATE_REASON
from rlm_rag.loaders.source import load_corpus
from rlm_rag.own_folders import CACHE_TAG_NAME, state_folder

FILES = {"a.txt": "alpha\n", "notes/b.txt": "beta\n", "rlm-rag/c.txt": "a project's\n"}
CACHE, STATE = "var/cache/rlm-rag", "var/state/rlm-rag"
OWN = {CACHE: OWN_CACHE_REASON, STATE: OWN_STATE_REASON}
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which both homes of this program are, by paths that lead through a link."""
    folder = tmp_path / "tree"
    for path, text in FILES.items():
        put(folder / path, text)
    (tmp_path / "link").symlink_to(folder, target_is_directory=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "link" / "var" / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "link" / "var" / "state"))
    monkeypatch.setattr(memory, "_SETTLED_NS", 0)
    trace = state_folder()
    assert trace is not None
    put(trace / "runs" / "run.jsonl", '{"type": "run"}\n')
    return folder


@pytest.fixture(params=["work tree", "plain", "without git", "no ignore"])
def load(
    request: pytest.FixtureRequest, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Path], Corpus]:
    """Load in each way of listing a folder, and keep it."""
    if request.param == "without git":
        monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    elif shutil.which("git") is None:
        pytest.skip("git is not installed")
    if request.param == "work tree":
        make_work_tree(root)
    ignore = request.param != "no ignore"
    return lambda source: load_corpus(source, keeping=kept(), ignore=ignore)


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def make_work_tree(folder: Path) -> None:
    put(folder / ".git" / "HEAD", "ref: refs/heads/main\n")
    for name in ("objects", "refs"):
        (folder / ".git" / name).mkdir()


def kept() -> Keeping:
    folder = default_kept_folder()
    assert folder is not None
    return Keeping(folder)


def skipped(corpus: Corpus) -> dict[str, str]:
    reasons = {one.path: one.reason for one in corpus.skipped}
    assert len(reasons) == len(corpus.skipped)
    return reasons


def test_what_is_kept_of_a_folder_is_never_read_as_a_part_of_it(
    root: Path, load: Callable[[Path], Corpus]
) -> None:
    load(root).close()
    for _ in range(2):
        with load(root) as corpus:
            assert sorted(corpus.paths()) == sorted(FILES)
            assert skipped(corpus) == OWN


def test_a_cache_of_another_user_is_told_by_its_tag_alone(
    root: Path, load: Callable[[Path], Corpus], monkeypatch: pytest.MonkeyPatch
) -> None:
    load(root).close()
    put(root / "theirs" / CACHE_TAG_NAME, "Signature: 8a477f597d28d172789f06886806bc55\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(root.parent / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(root.parent / "state"))
    with load(root) as corpus:
        assert skipped(corpus) == {CACHE: OWN_CACHE_REASON}
        assert f"{STATE}/runs/run.jsonl" in corpus.paths()
        assert f"theirs/{CACHE_TAG_NAME}" in corpus.paths()


def test_a_cache_whose_top_cannot_be_written_is_used_without_a_tag(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., int] = os.open

    def refused(path: str, flags: int, mode: int = 0o777, **others: int) -> int:
        if Path(path).parent == kept().root.parent and flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return real(path, flags, mode, **others)

    monkeypatch.setattr(os, "open", refused)
    for _ in range(2):
        with load_corpus(root, keeping=kept()) as corpus:
            assert sorted(corpus.paths()) == sorted(FILES)
            assert skipped(corpus).keys() == OWN.keys()
            assert not corpus.warnings
    assert not (root / CACHE / CACHE_TAG_NAME).exists()
    assert [*kept().root.glob("*/*.packed")]


def test_what_is_named_itself_is_read(root: Path, load: Callable[[Path], Corpus]) -> None:
    load(root).close()
    with load(root / STATE) as corpus:
        assert [*corpus.paths()] == ["runs/run.jsonl"]
    with load(root / STATE / "runs" / "run.jsonl") as corpus:
        assert "run" in corpus[0].content
    with load(root / CACHE) as corpus:
        assert CACHE_TAG_NAME in corpus.paths()
    with pytest.raises(EmptyCorpusError, match=r"1 rlm-rag's own cache"):
        load(root / "var" / "cache")


@needs_git
def test_a_pattern_that_leaves_out_some_of_a_cache_adds_nothing(root: Path) -> None:
    make_work_tree(root)
    put(root / ".gitignore", "*.table\n*.packed\n")
    load_corpus(root, keeping=kept()).close()
    with load_corpus(root) as corpus:
        assert skipped(corpus) == OWN


@needs_git
def test_a_link_to_a_cache_leads_to_nothing(root: Path) -> None:
    load_corpus(root, keeping=kept()).close()
    (root / "shortcut").symlink_to(root / CACHE, target_is_directory=True)
    with load_corpus(root, follow_symlinks=True) as corpus:
        assert sorted(corpus.paths()) == sorted(FILES)
        assert skipped(corpus).keys() == {*OWN, "shortcut"}


@needs_git
@pytest.mark.skipif(os.name != "posix", reason="folders have no times that tell")
def test_what_is_written_to_a_cache_within_lists_nothing_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    amended: list[bool] = []
    real = keeping.amend

    def noted(*given: object) -> object:
        amended.append(True)
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(keeping, "amend", noted)
    for number in range(4):
        load_corpus(root, keeping=kept()).close()
        put(root / STATE / "runs" / f"{number}.jsonl", "{}\n")
        put(root / CACHE / "indexes" / "other" / f"{number}.txt", "kept\n")
    assert amended == [True, True]
    # Where the state folder is another, that one is a folder like any.
    monkeypatch.setenv("XDG_STATE_HOME", str(root.parent / "state"))
    with load_corpus(root, keeping=kept()) as corpus:
        assert f"{STATE}/runs/0.jsonl" in corpus.paths()
        assert skipped(corpus) == {CACHE: OWN_CACHE_REASON}


@needs_git
@pytest.mark.skipif(os.name != "posix", reason="folders have no times that tell")
def test_a_cache_whose_tag_is_gone_is_a_folder_like_any(root: Path, tmp_path: Path) -> None:
    load_corpus(root, keeping=kept()).close()
    theirs = shutil.copytree(root / CACHE, root / "theirs", ignore=shutil.ignore_patterns("open"))
    put(theirs / "note.txt", "text\n")
    for _ in range(2):
        with load_corpus(root, keeping=kept()) as corpus:
            assert skipped(corpus) == {**OWN, "theirs": OWN_CACHE_REASON}
    (theirs / CACHE_TAG_NAME).unlink()
    with load_corpus(root, keeping=kept()) as corpus:
        assert "theirs/note.txt" in corpus.paths()
