"""A provider of a third party, found as pip would have installed it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag.errors import ModelError
from rlm_rag.models.router import open_model

_MODULE = """
from rlm_rag.models.base import Completion, ModelRequest, Usage
from rlm_rag.models.router import ModelOptions


class EchoModel:
    def __init__(self, name: str, options: ModelOptions) -> None:
        self.name = name
        self.options = options

    async def complete(self, request: ModelRequest) -> Completion:
        prompt = request.messages[-1].content
        text = "FINAL(echoed)" if len(request.messages) > 1 else prompt
        return Completion(text, Usage(calls=1, output_tokens=2), self.name)


def open_echo(name, options):
    return EchoModel(name, options)


"""


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[None]:
    """Lay out a distribution with two backends, one of which cannot be imported."""
    (tmp_path / "echoing_models.py").write_text(_MODULE)
    info = tmp_path / "echoing_models-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: echoing-models\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(
        "[rlm_rag.models]\necho = echoing_models:open_echo\nbroken = echoing_models.gone:open\n"
        "openai = echoing_models:open_echo\n"
    )
    sys.path.append(str(tmp_path))
    importlib.invalidate_caches()
    yield
    sys.path.remove(str(tmp_path))
    sys.modules.pop("echoing_models", None)


@pytest.mark.usefixtures("installed")
def test_a_backend_of_an_installed_package_answers_under_its_prefix() -> None:
    model = open_model("echo:anything", price=None, headers={"x": "y"})
    assert model.name == "echo:anything"
    assert model.options.headers == {"x": "y"}  # type: ignore[attr-defined]
    assert open_model("echo/other").name == "echo/other"
    with rlm_rag.load([{"path": "a", "content": "b\n"}]) as corpus:
        found = rlm_rag.ask(corpus, "What?", model="echo:anything", trace=False)
    assert found.text == "echoed"
    assert found.usage.output_tokens == 2


@pytest.mark.usefixtures("installed")
def test_a_backend_that_cannot_be_loaded_names_its_package() -> None:
    with pytest.raises(ModelError, match=r"echoing_models\.gone"):
        open_model("broken:x")


@pytest.mark.usefixtures("installed")
def test_no_package_takes_the_prefix_of_a_known_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    assert type(open_model("openai/gpt-5-mini")).__name__ == "LitellmModel"


def test_a_package_that_is_not_installed_offers_nothing() -> None:
    with pytest.raises(ModelError):
        open_model("echo:anything")
