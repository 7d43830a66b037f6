"""From a name to a model, and what is said where there is none."""

from __future__ import annotations

import asyncio
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from rlm_rag.errors import ModelError, ModelKeyError, ModelNotFoundError
from rlm_rag.models import router
from rlm_rag.models.base import Message, ModelRequest
from rlm_rag.models.litellm_backend import LitellmModel
from rlm_rag.models.openai_compatible import OpenAiCompatibleModel
from rlm_rag.models.router import ModelOptions, close_model, open_model, provider_name
from rlm_rag.models.scripted import ScriptedModel

LOCAL = "http://127.0.0.1:8080/v1"


@pytest.mark.parametrize(
    "name",
    ["tiny", "openai/tiny", "hosted_vllm/tiny", "Qwen/Qwen3-8B", "qwen2.5:7b", "gpt-4o-mini"],
)
def test_an_address_of_ones_own_is_served_straight(name: str) -> None:
    model = open_model(name, api_base=LOCAL)
    assert isinstance(model, OpenAiCompatibleModel)
    assert model.name == name


def test_another_protocol_at_an_address_of_ones_own_goes_through_litellm() -> None:
    assert isinstance(open_model("anthropic/claude-x", api_base=LOCAL), LitellmModel)
    assert isinstance(open_model("ollama/llama3:8b"), LitellmModel)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("gpt-4o-mini", "OPENAI_API_KEY"),
        ("openai/any-name", "OPENAI_API_KEY"),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-2.5-pro", "GEMINI_API_KEY"),
        ("openrouter/meta/llama", "OPENROUTER_API_KEY"),
    ],
)
def test_a_missing_key_is_named_before_anything_is_sent(name: str, variable: str) -> None:
    with pytest.raises(ModelKeyError, match=variable) as caught:
        open_model(name)
    assert "offline" in (caught.value.hint or "")


def test_roles_and_keyless_servers_are_not_asked_for_a_key() -> None:
    for name in ("bedrock/us.anthropic.claude-x-v1:0", "vertex_ai/gemini-2.5-pro", "azure/mine"):
        assert open_model(name).name == name


def test_a_key_that_is_there_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "a-key-of-google")
    assert open_model("gemini/gemini-2.5-pro").name == "gemini/gemini-2.5-pro"


@pytest.mark.parametrize("name", ["", "   ", "a\nb", "two words", "\x1b[31m", "openai/"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ModelNotFoundError) as caught:
        open_model(name)
    assert "openai/gpt-5-mini" in (caught.value.hint or "")
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("gpt-4o-mni", "openai/gpt-4o-mini"),
        ("antropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("ofline", "offline"),
        ("offline/x", "offline"),
        ("offline:x", "offline"),
        ("nosuch/model-of-nobody", "openai/gpt-5-mini"),
    ],
)
def test_an_unknown_name_is_answered_with_close_ones(name: str, close: str) -> None:
    with pytest.raises(ModelNotFoundError) as caught:
        open_model(name)
    assert name in caught.value.message
    assert close in (caught.value.hint or "")


def test_a_limiter_is_shared_by_server_or_provider() -> None:
    assert provider_name("tiny", api_base=LOCAL + "/") == provider_name("big", api_base=LOCAL)
    assert provider_name("gpt-4o-mini") == provider_name("openai/gpt-5-mini") == "openai"


def third_party(name: str, options: ModelOptions) -> ScriptedModel:
    return ScriptedModel(f"{name} at {options.api_base}", [])


def test_a_third_party_brings_a_backend_by_its_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(*, group: str, name: str) -> list[EntryPoint]:
        rows = {
            "mine": f"{__name__}:third_party",
            "broken": "no_such_module:open",
        }
        return [EntryPoint(name, rows[name], group)] if name in rows else []

    monkeypatch.setattr(router, "entry_points", found)
    assert open_model("mine/model", api_base=LOCAL).name == f"mine/model at {LOCAL}"
    with pytest.raises(ModelError, match="cannot be loaded"):
        open_model("broken/model")


def test_closing_a_model_that_holds_nothing_is_nothing(tmp_path: Path) -> None:
    script = tmp_path / "replies.jsonl"
    script.write_text('"one"\n')
    model = open_model(f"scripted:{script}")

    async def talk() -> str:
        text = (await model.complete(ModelRequest((Message("user", "q"),)))).text
        await close_model(model)
        return text

    assert asyncio.run(talk()) == "one"
