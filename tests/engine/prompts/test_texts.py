"""The prompts and which model gets which."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.engine.prompts.texts import (
    PROFILES,
    filled,
    load_profile,
    load_prompt,
    profile_of,
    versioned,
)
from rlm_rag.errors import SettingsError
from rlm_rag.models.tokens import count_tokens


@pytest.mark.parametrize("name", PROFILES)
def test_each_profile_has_prompts_with_a_version(name: str) -> None:
    profile = load_profile(name)
    assert profile.version.startswith(f"{name}@")
    for word in ("search(", "grep_context(", "symbols(", "read(", "FINAL(", "Not in the corpus:"):
        assert word in profile.system
    assert "```repl" in profile.system or "fence tagged `repl`" in profile.system


@pytest.mark.parametrize("name", PROFILES)
def test_each_function_that_a_profile_names_has_an_example(name: str) -> None:
    system = load_profile(name).system
    listed = re.split(r"^(?:How to work|What holds up|Which to use)", system, flags=re.MULTILINE)[0]
    without_code = re.sub(r"`[^`\n]+`", "", listed)
    functions = re.findall(r"(?:^- |, |; )([a-z]\w+)\([a-z]", without_code, re.MULTILINE)
    assert len(functions) > 5
    for function in functions:
        # A batch is the example of its single call too.
        assert re.search(rf"\b{function}(?:_batched)?\([^)\n]*[\"'\[]", system), function


def test_the_small_profile_is_short_and_shows_two_worked_runs() -> None:
    system = load_profile("small").system
    assert count_tokens(system) < 1_200
    assert system.count("Example.") == 2
    assert system.count("```repl\n") >= 3


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(SettingsError, match="no prompt profile"):
        load_profile("huge")


@pytest.mark.parametrize(
    ("model", "profile"),
    [
        ("gpt-5", "frontier"),
        ("openai/gpt-5-mini", "standard"),
        ("anthropic/claude-sonnet-4-5", "frontier"),
        ("claude-3-5-haiku-latest", "standard"),
        ("gemini/gemini-2.5-pro", "frontier"),
        ("gemini/gemini-2.5-flash", "standard"),
        ("ollama/qwen2.5-coder:1.5b", "small"),
        ("local:/models/Qwen2.5-Coder-0.5B-Instruct.gguf", "small"),
        ("llama-3.1-8b-instruct", "small"),
        ("llama-3.1-70b", "standard"),
        ("mixtral-8x7b", "standard"),
        ("qwen3-30b-a3b", "standard"),
        ("phi-3-mini", "small"),
        ("whatever", "standard"),
        ("scripted:/tmp/of-3b/mini/replies.json", "standard"),
    ],
)
def test_a_model_gets_its_profile_by_its_size_or_its_family(model: str, profile: str) -> None:
    assert profile_of(model) == profile


@given(st.text(max_size=200))
def test_a_custom_prompt_is_taken_word_for_word(text: str) -> None:
    assert versioned("custom", text).system == text


@given(st.text(max_size=100))
def test_a_prompt_is_filled_once_whatever_the_value_holds(question: str) -> None:
    prompt = load_prompt("map").system
    before, after = prompt.split("{question}")
    assert filled(prompt, question=question) == before + question + after
    assert filled("{a} {b} {}", a="{b}", b="x") == "{b} x {}"
