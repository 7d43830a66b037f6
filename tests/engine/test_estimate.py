"""What a run may cost is told before it starts, and mostly comes true."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlm_rag
from rlm_rag import Limits, SearchableCorpus
from rlm_rag.engine.estimate import Estimate, Spend, estimate_map
from rlm_rag.engine.lineup import ModelNames, ModelSettings
from rlm_rag.errors import UsageError
from rlm_rag.models.tokens import count_tokens
from tests.servers.loopback import Received, Step, reply
from tests.servers.openai_chat import OpenAiChatServer

QUESTION = "How does the parser recover from an unbalanced bracket?"
NAMING = "How does word17 recover from word20?"
PRICE = "0.25/2"
# What a provider counts, against our own count, which is meant to be too high.
PROVIDER_SHARE = 0.85


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    dice = random.Random(5)
    words = [f"word{n}" for n in range(3000)]
    entries = [
        {
            "path": f"src/module_{number}.py",
            "content": "\n".join(
                f"def {dice.choice(words)}_{line}(value):\n    return {dice.sample(words, 5)}"
                for line in range(120)
            ),
        }
        for number in range(40)
    ]
    with rlm_rag.load(entries) as loaded:
        yield loaded


class Habit:
    """A root model that takes so many turns, prints so much, and asks so many leaves."""

    def __init__(self, seed: int) -> None:
        dice = random.Random(seed)
        self.turns = dice.choice([1, 2, 2, 3, 4, 5, 6, 8, 10, 14])
        self.printed = [dice.choice([200, 1500, 4000, 12_000]) for _ in range(self.turns)]
        self.thought = [dice.randrange(20, 400) for _ in range(self.turns)]
        self.leaves = dice.choice([0, 0, 3, 8, 20, 60])
        self.leaf_files = dice.choice([1, 2, 5])
        self.leaf_words = dice.randrange(10, 300)

    def play(self, request: Received) -> Step:
        if request.messages[0]["role"] != "system":
            return billed(request, "word " * self.leaf_words)
        turn = request.turn
        code = f"print(str(context)[: {self.printed[turn]}])\n"
        if turn == 0 and self.leaves:
            code += (
                f"llm_query_batched([f'{{n}} ' + ''.join(c['content'] for c in "
                f"context[n % 30 : n % 30 + {self.leaf_files}]) for n in range({self.leaves})])\n"
            )
        if turn == self.turns - 1:
            code += "FINAL('It skips to the next bracket.')\n"
        thought = "I look at it. " * (self.thought[turn] // 4)
        return billed(request, f"{thought}\n```repl\n{code}```")


def billed(request: Received, text: str) -> Step:
    counted = sum(count_tokens(message["content"]) for message in request.messages)
    usage = {
        "prompt_tokens": int(counted * PROVIDER_SHARE),
        "completion_tokens": int(count_tokens(text) * PROVIDER_SHARE),
    }
    return reply(text, usage=usage)


def estimated(corpus: SearchableCorpus, limits: Limits, **options: str) -> Estimate:
    given = {"model": "test", "price": PRICE, **options}
    return rlm_rag.RLM(limits=limits, **given).estimate(corpus, QUESTION)  # type: ignore[arg-type]


def test_sixteen_of_twenty_runs_cost_what_was_said(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    limits = Limits(usd=5.0)
    said = estimated(corpus, limits)
    assert openai_server.received == []
    assert said.low.usd is not None and said.high.usd is not None
    costs = []
    for seed in range(20):
        openai_server.script = Habit(seed).play
        found = rlm_rag.ask(
            corpus,
            QUESTION,
            model="test",
            api_base=openai_server.api_base,
            strategy="rlm",
            price=PRICE,
            limits=limits,
            trace=False,
        )
        assert found.stop_reason == "answered"
        assert found.usage.usd is not None
        costs.append(found.usage.usd)
    within = [cost for cost in costs if said.low.usd <= cost <= said.high.usd]
    assert len(within) >= 16, (said.low.usd, said.high.usd, sorted(costs))
    assert said.likely.usd is not None
    assert min(costs) < said.likely.usd < max(costs)


@pytest.mark.parametrize("strategy", ["direct", "retrieve", "map-reduce"])
@pytest.mark.parametrize("limits", [Limits(), Limits(calls=5)])
def test_each_strategy_takes_what_was_said_of_it(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, strategy: str, limits: Limits
) -> None:
    given: Any = {"price": PRICE, "context_window": 8_192, "limits": limits, "strategy": strategy}
    rlm = rlm_rag.RLM("test", api_base=openai_server.api_base, trace=False, **given)
    said = rlm.estimate(corpus, NAMING)
    assert openai_server.received == []
    openai_server.script = lambda request: billed(request, "It skips it. " + "word " * 60)
    usage = rlm.ask(corpus, NAMING).usage
    assert usage.usd is not None and said.low.usd is not None and said.high.usd is not None
    assert said.low.usd <= usage.usd <= said.high.usd
    assert said.low.calls <= usage.calls <= said.high.calls
    assert said.low.input_tokens <= usage.input_tokens <= said.high.input_tokens
    assert said.strategy == strategy
    assert usage.calls == {"map-reduce": min(41, limits.calls or 0)}.get(strategy, 1)


def test_large_documents_are_mapped_in_parts_of_the_window_as_far_as_calls_allow(
    corpus: SearchableCorpus,
) -> None:
    def mapped(window: int, calls: int | None) -> Estimate:
        rlm = rlm_rag.RLM(
            "test", strategy="map-reduce", context_window=window, limits=Limits(calls=calls)
        )
        return rlm.estimate(corpus, QUESTION)

    narrow, wide, cut = mapped(2_048, None), mapped(32_768, None), mapped(2_048, 30)
    assert narrow.low.calls > 3 * len(corpus) and wide.low.calls == len(corpus) + 1
    assert {case.calls for case in (cut.low, cut.likely, cut.high)} == {30}
    assert cut.low.input_tokens < cut.likely.input_tokens < cut.high.input_tokens
    assert cut.high.input_tokens < narrow.low.input_tokens / 2
    assert any("window of 2,048 tokens, of which --max-calls lets" in s for s in cut.assumptions)
    guessed = rlm_rag.RLM("test", strategy="map-reduce").estimate(corpus, QUESTION)
    for said, times in ((guessed, 1), (cut, 0)):
        assert sum("window of test is not known" in each for each in said.assumptions) == times


@pytest.mark.parametrize(
    ("model", "question", "strategy"),
    [
        ("test", QUESTION, "rlm"),
        ("qwen2.5-3b", QUESTION, "retrieve"),
        ("qwen2.5-3b", "Give an overview of the project", "map-reduce"),
        ("offline", QUESTION, "rlm"),
    ],
)
def test_what_auto_takes_is_what_is_counted(
    corpus: SearchableCorpus, model: str, question: str, strategy: str
) -> None:
    said = rlm_rag.RLM(model).estimate(corpus, question)
    chosen = rlm_rag.RLM(model, strategy=strategy).estimate(corpus, question)
    assert (said.strategy, said.high) == (strategy, chosen.high)
    assert said.assumptions[0] == f"the strategy is {strategy}, which auto takes"


def test_a_small_model_is_shown_fewer_passages(corpus: SearchableCorpus) -> None:
    small, other = (
        rlm_rag.RLM(name, strategy="retrieve").estimate(corpus, QUESTION).likely.input_tokens
        for name in ("qwen2.5-3b", "test")
    )
    assert small < 2_000 < other


def test_what_is_no_strategy_is_refused(corpus: SearchableCorpus) -> None:
    with pytest.raises(UsageError, match="no strategy 'guess'"):
        rlm_rag.RLM("test", strategy="guess").estimate(corpus, QUESTION)


def test_low_likely_and_high_rise_and_keep_to_the_limits(corpus: SearchableCorpus) -> None:
    said = estimated(corpus, Limits())
    cases = (said.low, said.likely, said.high)
    for measure in ("calls", "input_tokens", "output_tokens", "usd"):
        low, likely, high = (getattr(case, measure) for case in cases)
        assert 0 < low < likely < high
    tight = estimated(corpus, Limits(usd=0.002, calls=3, iterations=2))
    assert tight.high.usd == pytest.approx(0.002)
    assert tight.high.calls <= 3
    fewer = estimated(corpus, Limits(tokens=9000))
    assert fewer.high.input_tokens + fewer.high.output_tokens <= 9000


@pytest.mark.parametrize("limits", [Limits(usd=1e-6), Limits(tokens=100), Limits(usd=0)])
def test_limits_without_room_for_one_call_are_said_and_cost_nothing(
    corpus: SearchableCorpus, limits: Limits
) -> None:
    said = estimated(corpus, limits)
    assert said.low == said.likely == said.high == Spend(0, 0, 0, 0.0)
    assert "no room for one call" in said.assumptions[0]


@pytest.mark.parametrize("limits", [Limits(tokens=2_500), Limits(usd=0.0006)])
def test_short_parts_that_limits_have_room_for_are_in_the_high_case(
    openai_server: OpenAiChatServer, limits: Limits
) -> None:
    given: Any = {"price": PRICE, "strategy": "map-reduce", "context_window": 8_192}
    rlm = rlm_rag.RLM("test", api_base=openai_server.api_base, trace=False, limits=limits, **given)
    openai_server.script = lambda request: billed(request, "It skips it. " + "word " * 60)
    with rlm_rag.load(["word " * 30_000, "a few words", "some others"]) as sizes:
        said = rlm.estimate(sizes, NAMING)
        usage = rlm.ask(sizes, NAMING).usage
    assert said.low == said.likely == Spend(0, 0, 0, 0.0)
    assert "few or none would be sent" in said.assumptions[0]
    assert 1 <= usage.calls <= said.high.calls
    assert usage.usd is not None and said.high.usd is not None
    assert usage.usd <= said.high.usd <= (limits.usd or said.high.usd)
    assert usage.input_tokens <= said.high.input_tokens


def test_short_documents_that_limits_have_room_for_are_in_the_high_case_of_a_map() -> None:
    def told(tokens: int) -> Estimate:
        names, settings = ModelNames(model="test"), ModelSettings()
        limits = Limits(tokens=tokens)
        sizes = [5_000, 5_000, 5]
        return estimate_map(sizes, "Sum up.", names=names, settings=settings, limits=limits)

    assert [told(tokens).high.calls for tokens in (50, 100, 400, 100_000)] == [0, 1, 3, 3]
    assert told(400).low.calls == told(400).likely.calls == 0
    assert "few or none" in told(400).assumptions[0]


def test_no_case_is_below_the_low_one_where_that_fits(corpus: SearchableCorpus) -> None:
    whole = estimated(corpus, Limits(), strategy="rlm").low
    tokens = whole.input_tokens + whole.output_tokens + 100
    said = estimated(corpus, Limits(tokens=tokens), strategy="rlm")
    assert said.low == whole
    for case in (said.likely, said.high):
        assert case.calls == whole.calls
        assert case.input_tokens + case.output_tokens <= tokens
    assert not any("no room" in line for line in said.assumptions)


def test_the_images_of_a_question_are_read_and_counted(
    corpus: SearchableCorpus, tmp_path: Path
) -> None:
    rlm = rlm_rag.RLM("test", strategy="direct", context_window=100_000)
    with pytest.raises(UsageError, match=r"nosuch\.png cannot be read"):
        rlm.estimate(corpus, QUESTION, images=["nosuch.png"])
    picture = tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")
    said = rlm.estimate(corpus, QUESTION, images=[picture, picture])
    plain = rlm.estimate(corpus, QUESTION)
    assert said.likely.input_tokens == plain.likely.input_tokens + 2 * 1_600
    assert "2 images of 1,600 tokens in every turn" in said.assumptions


def test_a_server_is_asked_for_its_window_and_for_nothing_else(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    entry = {"id": "test", "max_model_len": 3_000}
    openai_server.own = {"/v1/models": {"object": "list", "data": [entry]}}
    given: Any = {"price": PRICE, "strategy": "map-reduce"}
    rlm = rlm_rag.RLM("test", api_base=openai_server.api_base, **given)
    said = rlm.estimate(corpus, QUESTION)
    assert openai_server.received == []
    assert len(openai_server.looked_up) == 1
    assert not any("is not known, and taken" in line for line in said.assumptions)
    told = rlm_rag.RLM("test", context_window=3_000, **given)
    assert said.likely == told.estimate(corpus, QUESTION).likely


def test_each_model_is_counted_at_its_own_price(
    corpus: SearchableCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    rlm = rlm_rag.RLM(model="gpt-4o", sub_model="gpt-4o-mini")
    dearer = rlm_rag.RLM(model="gpt-4o").estimate(corpus, QUESTION)
    said = rlm.estimate(corpus, QUESTION)
    assert said.low.usd == pytest.approx(dearer.low.usd)
    assert said.high.usd is not None and dearer.high.usd is not None
    assert said.high.usd < dearer.high.usd
    assert any("gpt-4o-mini: $0.15 in, $0.6 out" in line for line in said.assumptions)


def test_an_unknown_price_is_said_and_tokens_are_counted_all_the_same(
    corpus: SearchableCorpus,
) -> None:
    said = rlm_rag.RLM(model="nobody/knows").estimate(corpus, QUESTION)
    assert (said.low.usd, said.likely.usd, said.high.usd) == (None, None, None)
    assert said.high.input_tokens > 0
    assert any("not known" in line and "--price" in line for line in said.assumptions)
    assert said.to_dict()["likely"]["usd"] is None


def test_the_parts_of_a_map_fit_the_context_that_ollama_is_asked_for() -> None:
    def parts(**extra: int) -> int:
        names, settings = ModelNames(model="ollama/llama3"), ModelSettings(extra=extra)
        told = estimate_map([10_000], "Sum up.", names=names, settings=settings, limits=Limits())
        return told.likely.calls

    assert (parts(), parts(num_ctx=32_768), parts(num_ctx=4_096)) == (1, 1, 5)
