"""Which model is asked, how, and what it is asked only once: through whole runs."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlm_rag
from rlm_rag import Limits, SearchableCorpus
from rlm_rag.engine.lineup import ModelNames, ModelSettings, open_lineup
from rlm_rag.errors import ModelKeyError, UsageError
from rlm_rag.models.base import Message
from rlm_rag.trace.events import CallSent, ReplyReceived
from rlm_rag.trace.reader import read_trace
from tests.engine.play import QUESTION, block, leaves, play, told_root
from tests.models.test_gguf import head
from tests.servers.anthropic_messages import AnthropicMessagesServer
from tests.servers.loopback import Received, Step, failed, rate_limited, reply
from tests.servers.openai_chat import OpenAiChatServer

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    with rlm_rag.load([{"path": "a.py", "content": "def f():\n    return 1\n"}]) as loaded:
        yield loaded


def models_asked(server: OpenAiChatServer) -> list[str]:
    return [request.json["model"] for request in server.received]


def test_each_depth_may_have_a_root_model_of_its_own(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[block("r = rlm_query('dig')\nFINAL(r)")],
        child=[block("FINAL(llm_query('leaf') + rlm_query('deeper'))")],
        leaf=lambda prompt: prompt,
        sub_model="small",
        models_at_depth={1: "middle"},
        limits=Limits(depth=1),
    )
    assert found.text == "leafdeeper"
    assert models_asked(openai_server) == ["test", "middle", "small", "small"]
    assert {name: usage.calls for name, usage in found.by_model.items()} == {
        "test": 1,
        "middle": 1,
        "small": 2,
    }


def test_the_model_of_a_depth_holds_below_it_until_another_is_named() -> None:
    names = ModelNames(model="m", at_depth={1: "a", 3: "b"})
    assert [names.root_at(depth) for depth in range(5)] == [None, "a", "a", "b", "b"]
    assert names.all() == ("m", "a", "b")


def test_the_window_of_an_ollama_model_is_the_context_that_is_asked_for() -> None:
    async def window(**extra: Any) -> int | None:
        names, settings = ModelNames(model="ollama/llama3"), ModelSettings(extra=extra)
        async with open_lineup(names, settings, limits=Limits(usd=1.0)) as lineup:
            return lineup.root.facts.context_window

    assert asyncio.run(window()) == 16_384
    assert asyncio.run(window(num_ctx=4096)) == 4096
    assert asyncio.run(window(num_ctx="many")) == 16_384


def test_code_may_name_only_the_models_that_were_allowed(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[
            block(
                "rs = [llm_query('x', model=m) for m in ('other', 'small', 'secret', 'test')]\n"
                "FINAL([(r.ok, str(r)) for r in rs])"
            )
        ],
        leaf=lambda prompt: "fine",
        sub_model="small",
        allow_models=["other"],
    )
    outcomes = json.loads(found.text)
    assert [ok for ok, _ in outcomes] == [True, True, False, False]
    assert "'secret' is not offered; there are small, other" in outcomes[2][1]
    assert models_asked(openai_server) == ["test", "other", "small"]


def test_a_model_that_cannot_be_reached_is_replaced_and_left_to_rest(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    def script(request: Received) -> Step:
        if request.json["model"] == "test":
            return rate_limited(500)
        if request.json["model"] == "second":
            return failed(503, headers={"Retry-After": "0.01"})
        return block("x = 1") if request.turn == 0 else block("FINAL('third')")

    openai_server.script = script
    found = rlm_rag.ask(
        corpus,
        QUESTION,
        model="test",
        api_base=openai_server.api_base,
        strategy="rlm",
        fallback_models=["second", "third"],
        limits=Limits(calls=8),
        trace=tmp_path,
    )
    assert found.text == "third"
    asked = models_asked(openai_server)
    assert asked[0] == "test"
    assert asked[1:-2] == ["second"] * (len(asked) - 3)
    assert asked[-2:] == ["third", "third"]
    assert found.usage.calls == len(asked)
    events = read_trace(Path(found.trace or "")).events
    ended = [(e.model, e.error is None) for e in events if isinstance(e, ReplyReceived)]
    assert ended == [("test", False), ("second", False), ("third", True), ("third", True)]
    assert [e.model for e in events if isinstance(e, CallSent)][-1] == "third"


def test_a_refusal_for_good_reasons_is_told_and_no_other_model_asked(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    openai_server.script = lambda request: failed(401, "no such key")
    with pytest.raises(ModelKeyError):
        rlm_rag.ask(
            corpus,
            QUESTION,
            model="test",
            api_base=openai_server.api_base,
            strategy="rlm",
            fallback_models=["second"],
            trace=False,
        )
    assert models_asked(openai_server) == ["test"]


def test_the_first_failure_is_told_where_no_fallback_helps(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    def leaf(prompt: str) -> Step:
        model = openai_server.received[-1].json["model"]
        return rate_limited(500, "the first") if model == "small" else failed(400, "the other")

    found = play(
        openai_server,
        corpus,
        root=[block("r = llm_query('x')\nFINAL((r.ok, str(r)))")],
        leaf=leaf,
        sub_model="small",
        fallback_models=["other"],
    )
    assert "the first" in found.text
    assert json.loads(found.text)[0] is False


def test_sampling_parameters_go_with_every_request_straight_over_http(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    play(
        openai_server,
        corpus,
        root=[block("FINAL(llm_query('x', system='Be brief.'))")],
        temperature=0.5,
        model_options={"top_p": 0.9, "chat_template_kwargs": {"enable_thinking": False}},
    )
    for request in openai_server.received:
        assert request.json["temperature"] == 0.5
        assert request.json["top_p"] == 0.9
        assert request.json["chat_template_kwargs"] == {"enable_thinking": False}
    assert openai_server.received[1].messages[0] == {"role": "system", "content": "Be brief."}


def test_sampling_parameters_and_images_go_through_litellm_too(
    anthropic_server: AnthropicMessagesServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    image = tmp_path / "shot.png"
    image.write_bytes(PNG)
    anthropic_server.script = ["FINAL(seen)"]
    found = rlm_rag.ask(
        corpus,
        QUESTION,
        model="anthropic/claude-sonnet-4-5",
        api_base=anthropic_server.api_base,
        strategy="rlm",
        temperature=0.25,
        model_options={"top_k": 7},
        images=[image],
        trace=False,
    )
    assert found.text == "seen"
    sent = anthropic_server.received[0].json
    assert (sent["temperature"], sent["top_k"]) == (0.25, 7)
    source = next(
        part["source"] for part in sent["messages"][0]["content"] if part["type"] == "image"
    )
    assert source["media_type"] == "image/png"
    assert base64.b64decode(source["data"]) == PNG


def test_an_image_is_shown_to_the_root_model_with_the_question_and_kept_out_of_the_trace(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    image = tmp_path / "shot.jpg"
    image.write_bytes(b"\xff\xd8\xff" + b"pixels")
    openai_server.script = [block("r = llm_query('x')"), "leaf", block("FINAL(r)")]
    found = rlm_rag.ask(
        corpus,
        QUESTION,
        model="test",
        api_base=openai_server.api_base,
        strategy="rlm",
        images=[str(image)],
        trace=tmp_path,
    )
    url = "data:image/jpeg;base64," + base64.b64encode(image.read_bytes()).decode()
    for request in (openai_server.received[0], openai_server.received[2]):
        text, shown = request.messages[1]["content"]
        assert QUESTION in text["text"]
        assert shown == {"type": "image_url", "image_url": {"url": url}}
    assert isinstance(openai_server.received[1].messages[0]["content"], str)
    assert url not in Path(found.trace or "").read_text()


@pytest.mark.parametrize(
    ("model", "name", "content", "words"),
    [
        ("offline", "a.png", PNG, "takes no images"),
        ("test", "a.txt", b"text", "no image that models take"),
        ("test", "missing.png", None, "cannot be read"),
    ],
)
def test_an_image_that_cannot_be_shown_is_refused_before_anything_is_sent(
    openai_server: OpenAiChatServer,
    corpus: SearchableCorpus,
    tmp_path: Path,
    model: str,
    name: str,
    content: bytes | None,
    words: str,
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=words):
        rlm_rag.ask(
            corpus,
            QUESTION,
            model=model,
            api_base=openai_server.api_base,
            strategy="rlm",
            images=[tmp_path / name],
            trace=False,
        )
    assert openai_server.received == []


def test_a_known_model_without_eyes_is_refused_an_image(
    corpus: SearchableCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    image = tmp_path / "a.png"
    image.write_bytes(PNG)
    with pytest.raises(UsageError, match=r"gpt-3\.5-turbo takes no images"):
        rlm_rag.ask(corpus, QUESTION, model="gpt-3.5-turbo", images=[image], trace=False)


@pytest.mark.parametrize(
    "name",
    [
        *("model", "max_tokens", "n", "api_key", "mock_response", "a b"),
        *("n_predict", "max_new_tokens", "best_of", "generationConfig", "web_search_options"),
        *("plugins", "search_parameters", "enable_search", "models", "prediction"),
    ],
)
def test_what_would_break_a_limit_or_a_key_is_no_model_option(
    corpus: SearchableCorpus, name: str
) -> None:
    for options in ({name: 1}, {"extra_body": {"top_p": 1, name: 1}}, {"options": {name: 1}}):
        with pytest.raises(UsageError, match="cannot be set"):
            rlm_rag.ask(corpus, QUESTION, model_options=options, trace=False)


def test_a_service_tier_needs_a_price_under_a_limit_in_money(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    tier = {"service_tier": "flex"}
    given: Any = {"root": [block("FINAL('x')")], "model_options": {"extra_body": tier}}
    with pytest.raises(UsageError, match="price of a service_tier is not known"):
        play(openai_server, corpus, limits=Limits(usd=1.0), **given)
    assert openai_server.received == []
    for limits, price in ((Limits(), None), (Limits(usd=1.0), "1/2")):
        assert play(openai_server, corpus, limits=limits, price=price, **given).text == "x"
        assert openai_server.received[-1].json["extra_body"] == tier


@pytest.mark.parametrize(
    "name", ["speed", "inference_geo", "cache_control", "cache_control_injection_points"]
)
def test_what_changes_a_price_needs_one_under_a_limit_in_money(
    corpus: SearchableCorpus, name: str
) -> None:
    options = {"extra_body": {name: "fast"}}
    with pytest.raises(UsageError, match=f"price of a {name} is not known"):
        rlm_rag.ask(
            corpus,
            QUESTION,
            model="openai/gpt-4o",
            model_options=options,
            limits=Limits(usd=1.0),
            trace=False,
        )


def test_a_schema_among_the_options_counts_with_each_prompt_under_a_limit(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    fields = {f"field_{n}": {"type": "string"} for n in range(200)}
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": fields}}
    for options, stop in (
        ({"response_format": schema}, "budget_tokens"),
        ({"top_p": 1}, "answered"),
    ):
        found = play(
            openai_server,
            corpus,
            root=[block("FINAL('x')")],
            model_options=options,
            limits=Limits(tokens=4_000),
        )
        assert found.stop_reason == stop


def test_identical_prompts_of_a_batch_are_sent_once(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    root = [block("rs = llm_query_batched(['same'] * 20 + ['other'])\nFINAL([str(r) for r in rs])")]
    found = play(
        openai_server,
        corpus,
        root=root,
        leaf=lambda prompt: reply(f"re: {prompt}", delay_seconds=0.1),
    )
    assert json.loads(found.text) == ["re: same"] * 20 + ["re: other"]
    assert sorted(leaves(openai_server)) == ["other", "same"]
    assert (found.usage.calls, found.usage.cached_calls) == (3, 19)


def test_opinions_are_many_where_a_temperature_asks_for_them(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[block("rs = llm_query_batched(['same'] * 5)\nFINAL(len(rs))")],
        temperature=0.8,
    )
    assert leaves(openai_server) == ["same"] * 5
    assert found.usage.cached_calls == 0


def test_a_run_that_is_repeated_is_served_by_the_cache(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    def ask() -> rlm_rag.Answer:
        return play(
            openai_server,
            corpus,
            root=[
                block("parts = llm_query_batched(['one', 'two'])\nprint(parts)"),
                block("FINAL(parts[0] + parts[1])"),
            ],
            leaf=lambda prompt: prompt.upper(),
            cache=tmp_path / "replies.sqlite",
            limits=Limits(usd=1.0),
            price="1/1",
        )

    first, second = ask(), ask()
    assert first.text == second.text == "ONETWO"
    assert first.usage.calls == 4 == len(openai_server.received)
    assert (second.usage.calls, second.usage.cached_calls) == (0, 4)
    assert second.usage.usd == 0
    assert first.usage.usd == pytest.approx(second.usage.saved_usd) == pytest.approx(4 * 18e-6)
    assert second.to_dict()["usage"]["cached_calls"] == 4


def test_a_cache_that_cannot_be_written_is_said_and_the_run_goes_on(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    found = play(
        openai_server,
        corpus,
        root=[block("FINAL('done')")],
        cache=tmp_path / "file" / "replies.sqlite",
    )
    assert found.text == "done"
    assert any("replies.sqlite" in warning for warning in found.warnings)


def test_usage_is_the_sum_of_the_providers_own_figures(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    billed: list[tuple[str, dict[str, Any]]] = []

    def bill(step: Step | str) -> Step:
        request = openai_server.received[-1]
        number = len(billed) + 1
        usage = {
            "prompt_tokens": 100 * number,
            "completion_tokens": 10 + number,
            "prompt_tokens_details": {"cached_tokens": 7 * number},
            "completion_tokens_details": {"reasoning_tokens": number},
        }
        text = step if isinstance(step, str) else step.text
        billed.append((request.json["model"], usage))
        return reply(text or "", usage=usage)

    def turn(first: str, number: int) -> Step:
        code = "rs = llm_query_batched([f'p{n}' for n in range(6)])\nprint(rlm_query('dig'))"
        return bill(block(code if number == 0 else "FINAL('done')"))

    refused = iter([True, True])

    def leaf(prompt: str) -> Step:
        return rate_limited(0.05) if next(refused, False) else bill(prompt)

    found = play(
        openai_server,
        corpus,
        root=turn,
        child=lambda first, number: bill(block("FINAL(llm_query('leaf of the child'))")),
        leaf=leaf,
        sub_model="small",
        models_at_depth={1: "middle"},
        price="2/1/4",
    )
    assert found.text == "done"
    assert len(billed) == 10
    for name in (None, "test", "middle", "small"):
        figures = [usage for model, usage in billed if name in (None, model)]
        usage = found.usage if name is None else found.by_model[name]
        sent = sum(name in (None, model) for model in models_asked(openai_server))
        assert usage.calls == sent
        assert usage.input_tokens == sum(each["prompt_tokens"] for each in figures)
        assert usage.output_tokens == sum(each["completion_tokens"] for each in figures)
        assert usage.cached_tokens == sum(
            each["prompt_tokens_details"]["cached_tokens"] for each in figures
        )
        assert usage.reasoning_tokens == sum(
            each["completion_tokens_details"]["reasoning_tokens"] for each in figures
        )
        fresh = usage.input_tokens - usage.cached_tokens
        money = (fresh * 2 + usage.cached_tokens * 1 + usage.output_tokens * 4) / 1e6
        assert usage.usd == pytest.approx(money)
    roles = found.by_role
    assert roles["root"].calls == 3
    assert roles["sub"].calls == found.by_model["small"].calls == found.usage.calls - 3
    assert roles["root"].output_tokens == (
        found.by_model["test"].output_tokens + found.by_model["middle"].output_tokens
    )


def test_a_recorded_run_is_replayed_from_its_trace_without_a_provider(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    code = (
        "rs = llm_query_batched(['same', 'same', 'refused', 'x'])\n"
        "print([str(r) for r in rs], rlm_query('dig'))"
    )
    found = play(
        openai_server,
        corpus,
        root=[block(code), block("FINAL(f'{rs[3]} of {len(rs)}')")],
        child=[block("FINAL(llm_query('deep'))")],
        leaf=lambda prompt: failed(400, "no") if prompt == "refused" else prompt.upper(),
        limits=Limits(seconds=100),
        fallback_models=["spare"],
        trace=tmp_path,
    )
    asked, sent = told_root(openai_server), len(openai_server.received)
    again = rlm_rag.ask(
        corpus, QUESTION, model=f"replay:{found.trace}", limits=Limits(seconds=90), trace=False
    )
    assert again.text == found.text == "X of 4"
    assert again.usage.output_tokens == found.usage.output_tokens
    assert again.usage.usd == 0
    assert len(openai_server.received) == sent
    assert len(asked) == 2


def test_a_replay_that_differs_says_where(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    found = play(openai_server, corpus, root=[block("FINAL('x')")], trace=tmp_path)
    with pytest.raises(rlm_rag.RlmRagError, match="differs from the trace") as caught:
        rlm_rag.ask(corpus, "Another question?", model=f"replay:{found.trace}", trace=False)
    assert "'Another question?" in str(caught.value)
    assert f"{QUESTION[:10]}" in str(caught.value)


def test_a_file_that_is_no_trace_is_no_model(corpus: SearchableCorpus, tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    for content in ("", "{}\n", json.dumps({"schema_version": 1})):
        file.write_text(content)
        with pytest.raises(rlm_rag.RlmRagError, match=r"cannot be used|holds no reply"):
            rlm_rag.ask(corpus, QUESTION, model=f"replay:{file}", trace=False)


def test_a_local_model_has_the_template_that_it_has_by_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.gguf").write_bytes(head())
    monkeypatch.chdir(tmp_path)

    async def most(name: str) -> int:
        names = ModelNames(model=name)
        async with open_lineup(names, ModelSettings(), limits=Limits(), absent="a test") as lineup:
            return lineup.root.counting.most([Message("user", "Hi")])

    near, far, none = (
        asyncio.run(most(name)) for name in ("local:m.gguf", f"local:{tmp_path}/m.gguf", "offline")
    )
    assert near == far > none
