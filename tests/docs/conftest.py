"""A reader of the pages, for every test that runs what they show."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from rlm_rag.models.local import _SERVERS
from tests.installed import lay_distribution, lay_plugin
from tests.models.test_local import STAND_IN
from tests.servers.openai_chat import OpenAiChatServer

from .prose import ROOT
from .reader import Reader, play
from .surroundings import lay_surroundings


@pytest.fixture(scope="session")
def laid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What examples speak of, laid once."""
    folder = tmp_path_factory.mktemp("laid")
    lay_surroundings(folder)
    return folder


@pytest.fixture(scope="session")
def kept() -> dict[tuple[str, ...], CompletedProcess[str]]:
    return {}


@pytest.fixture
def reader(
    laid: Path,
    kept: dict[tuple[str, ...], CompletedProcess[str]],
    tmp_path: Path,
    openai_server: OpenAiChatServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Reader]:
    """A reader without settings or runs, who has installed what pages say to install."""
    home, site = tmp_path / "home", tmp_path / "site"
    shutil.copytree(laid, home / "work", symlinks=True)
    (home / "work" / "examples").symlink_to(ROOT / "examples")
    (home / ".config" / "fish" / "completions").mkdir(parents=True)
    lay_plugin(site)
    lay_distribution(site, "pandas", {"pandas/__init__.py": ""})
    (site / "xllamacpp.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(site)
    openai_server.script = play
    yield Reader(home, openai_server, kept)
    _SERVERS.close()
    sys.modules.pop("diary_plugin", None)
