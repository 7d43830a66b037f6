"""Prices and windows from litellm's table, and prices given by hand."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from rlm_rag.errors import UsageError
from rlm_rag.models import prices
from rlm_rag.models.prices import (
    FREE,
    ModelFacts,
    Price,
    PriceTier,
    facts_of,
    may_take_schemas,
    parse_price,
)


@pytest.mark.parametrize(
    "name",
    [
        "gpt-4o-mini",
        "openai/gpt-4o-mini",
        "anthropic/claude-sonnet-4-5",
        "claude-sonnet-4-5",
        "gemini/gemini-2.5-pro",
        "vertex_ai/gemini-2.5-pro",
        "ft:gpt-4o-mini-2024-07-18:org::id",
    ],
)
def test_well_known_models_have_a_price_and_a_window(name: str) -> None:
    facts = facts_of(name)
    assert facts.price is not None
    assert 0 < facts.price.cached_usd <= facts.price.input_usd < facts.price.output_usd < 1e-3
    assert (facts.context_window or 0) >= 100_000
    assert (facts.max_output_tokens or 0) >= 8_000


@pytest.mark.parametrize(
    "name", ["nosuch", "openai/nosuch", "anthropic/gpt-4o-mini", "", "/", "sample_spec"]
)
def test_a_model_nobody_knows_has_no_price(name: str) -> None:
    assert facts_of(name).price is None
    assert facts_of(name).context_window in (None, 0)


def test_this_machine_and_the_built_in_models_cost_nothing() -> None:
    assert facts_of("offline") == ModelFacts(price=FREE, takes_images=False)
    assert facts_of("scripted:replies.jsonl") == ModelFacts(price=FREE)
    assert facts_of("gpt-4o-mini", api_base="http://127.0.0.1:8080/v1") == ModelFacts(price=FREE)
    assert facts_of("x", api_base="http://[::1]:8080/v1").price == FREE


@pytest.mark.parametrize("api_base", [None, "http://127.0.0.1:11434", "http://gpu.example:11434"])
def test_ollama_costs_nothing_wherever_it_runs_and_has_the_context_that_is_asked_for(
    api_base: str | None,
) -> None:
    facts = facts_of("ollama/qwen2.5-coder:1.5b", api_base=api_base)
    assert facts == ModelFacts(price=FREE, context_window=16_384)


def test_a_server_elsewhere_has_a_price_only_where_its_host_is_a_known_provider() -> None:
    assert facts_of("gpt-4o-mini", api_base="https://models.example/v1").price is None
    known = facts_of("openai/gpt-4o-mini", api_base="https://api.openai.com/v1").price
    assert known == facts_of("gpt-4o-mini").price


def test_a_price_given_by_hand_wins() -> None:
    mine = Price(1.0, 2.0, 0.5)
    assert facts_of("gpt-4o-mini", price=mine).price == mine
    assert facts_of("m", api_base="http://localhost/v1", price=mine).price == mine


def test_cached_tokens_are_a_part_of_the_prompt() -> None:
    price = Price(input_usd=1.0, output_usd=10.0, cached_usd=0.1)
    assert price.usd(input_tokens=100, output_tokens=1, cached_tokens=40) == pytest.approx(74)
    assert price.usd(input_tokens=10, output_tokens=0, cached_tokens=40) == pytest.approx(1)


def test_a_long_prompt_is_charged_by_its_tier() -> None:
    price = Price(1.0, 2.0, 0.5, (PriceTier(1000, 3.0, 4.0, 1.5),))
    assert price.usd(input_tokens=1000, output_tokens=1) == pytest.approx(1002)
    assert price.usd(input_tokens=1001, output_tokens=1) == pytest.approx(3007)
    gemini = facts_of("gemini/gemini-2.5-pro").price
    assert gemini is not None
    assert [tier.above_input_tokens for tier in gemini.tiers] == [200_000]


def test_a_reply_that_may_reason_costs_what_reasoning_does() -> None:
    price = facts_of("dashscope/qwen-turbo").price
    assert price is not None and price.reasoning_usd > price.output_usd
    asked = {"input_tokens": 0, "output_tokens": 1_000_000}
    assert price.usd(**asked) == pytest.approx(0.5)
    assert price.usd(**asked, reasoning_tokens=10) == pytest.approx(0.5)
    assert price.usd(**asked, reasoning_tokens=0) == pytest.approx(0.2)


@pytest.mark.parametrize(
    "name", ["perplexity/sonar-pro", "gpt-4o-search-preview", "gpt-5-search-api"]
)
def test_what_searches_by_itself_has_fees_and_so_no_known_price(name: str) -> None:
    facts = facts_of(name)
    assert facts.price is None and facts.context_window
    assert facts_of(name, price=parse_price("1/2")).price == Price(1e-6, 2e-6, 1e-6)


@pytest.mark.parametrize(
    ("name", "api_base", "may"),
    [
        ("local:/nowhere/m.gguf", None, True),
        ("ollama/llama3", None, True),
        ("qwen", "http://127.0.0.1:8080/v1", True),
        ("qwen", "https://models.example/v1", True),
        ("hosted_vllm/qwen", "https://models.example/v1", True),
        ("openai/gpt-5-mini", None, True),
        ("gpt-5-mini", "https://api.openai.com/v1", True),
        ("anthropic/claude-sonnet-4-5", None, True),
        ("openai/gpt-3.5-turbo", None, False),
        ("gpt-3.5-turbo", "https://api.openai.com/v1", False),
        ("openai/nosuch", None, False),
        ("offline", None, False),
        ("scripted:replies.jsonl", "http://127.0.0.1:8080/v1", False),
        ("replay:trace.jsonl", None, False),
    ],
)
def test_who_may_be_asked_for_replies_of_a_schema(
    name: str, api_base: str | None, may: bool
) -> None:
    assert may_take_schemas(name, api_base=api_base) is may


def test_a_price_is_read_in_dollars_per_million_tokens() -> None:
    assert parse_price("0.25/2") == Price(0.25e-6, 2e-6, 0.25e-6)
    assert parse_price("0.5/0.25/2") == Price(0.5e-6, 2e-6, 0.25e-6)
    assert parse_price("0/0") == FREE


@pytest.mark.parametrize("text", ["", "1", "1/2/3/4", "a/b", "-1/2", "nan/1", "inf/1", "1/"])
def test_what_is_no_price_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="dollars per million"):
        parse_price(text)


def test_names_are_spelled_with_their_providers() -> None:
    names = prices.known_names()
    assert "openai/gpt-4o-mini" in names
    assert not any(name.startswith(("None/", "/")) for name in names)


def test_the_table_is_read_without_litellm_or_the_network() -> None:
    code = (
        "import sys, json; from rlm_rag.models.prices import facts_of;"
        "price = facts_of('gpt-4o-mini').price;"
        "print(json.dumps([price is not None, 'litellm' in sys.modules, 'httpx' in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert json.loads(done.stdout) == [True, False, False]
