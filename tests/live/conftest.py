"""Real models of this machine: served where their files are there, skipped aloud where not."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag.models.local import served_at
from tests.live.fetch import RECIPES, models_folder

# Before tests take the machine's settings away.
MODELS = models_folder(os.environ)


@pytest.fixture(scope="session")
def leaf_model(request: pytest.FixtureRequest) -> str:
    """The model of 0.5 billion parameters, its server running, as `--model` takes it."""
    return _served(request, "0.5b")


@pytest.fixture(scope="session")
def root_model(request: pytest.FixtureRequest) -> str:
    """The model of 1.5 billion parameters, its server running, as `--model` takes it."""
    return _served(request, "1.5b")


def _served(request: pytest.FixtureRequest, size: str) -> str:
    if not request.config.getoption("--live"):
        pytest.skip("a real model takes minutes: scripts/test --live")
    file = MODELS / RECIPES[size].file
    if not file.is_file():
        pytest.skip(f"there is no {file}: scripts/get_model {size}")
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed: pip install 'rlm-rag[local]'")
    name = f"local:{file}"
    served_at(name)
    return name


@pytest.fixture
def depots(tmp_path: Path):
    """Notes of three depots, each with a port and a code of its own."""
    for name, port, code in (
        ("calder", 8431, 48213),
        ("eskham", 9120, 77015),
        ("hulme", 7002, 31946),
    ):
        (tmp_path / f"{name}.md").write_text(
            f"# Depot {name.capitalize()}\n\nThe scales of this depot report to a server that "
            f"listens on port {port}. They are checked every spring.\n\n"
            f"The access code of the store room in {name.capitalize()} is {code}.\n"
        )
    with rlm_rag.load(tmp_path) as corpus:
        yield corpus
