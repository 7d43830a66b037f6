"""A folder that may not be listed is told, whoever lists it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from rlm_rag.errors import SourceError
from rlm_rag.loaders.source import load_corpus

as_user = pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads all")


@as_user
def test_a_folder_that_may_not_be_entered_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0)
    with pytest.raises(SourceError, match="Cannot list the folder"):
        load_corpus(folder)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize(("top", "missed"), [("", "src/d"), ("src", "d")])
@pytest.mark.parametrize("in_work_tree", [True, False])
def test_a_folder_that_git_cannot_open_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, top: str, missed: str, in_work_tree: bool
) -> None:
    root = tmp_path / "tree"
    (root / "src" / "d").mkdir(parents=True)
    (root / "src" / "a").write_text("x")
    if in_work_tree:
        subprocess.run(["git", "init", "-q", str(root)], check=True)
    told = "warning: could not open directory 'src/d/': No"
    script = tmp_path / "bin" / "git"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\necho "{told}" >&2\nexec "{shutil.which("git")}" "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    with load_corpus(root / top) as corpus:
        assert [(one.path, one.reason) for one in corpus.skipped] == [(missed, "not readable: No")]
        assert len(corpus.warnings) == 1
