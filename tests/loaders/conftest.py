"""For loads that are kept: a home folder in which git finds nothing, and what git was asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_rag.loaders import git, memory


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder in which git finds nothing; and files count as settled at once."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(memory, "_SETTLED_NS", 0)
    return folder


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The commands that git is started with, as they are."""
    commands: list[tuple[str, ...]] = []
    real = git.start_git

    def noted(program: str, folder: str, arguments: tuple[str, ...], **options: object) -> object:
        commands.append(tuple(arguments))
        return real(program, folder, arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(git, "start_git", noted)
    return commands
