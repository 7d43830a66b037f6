"""Output caps under limits: a cap shrinks to what is left, and what it cuts is said to be cut."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlm_rag
from rlm_rag import Limits, SearchableCorpus
from rlm_rag.engine.admission import LimitReached
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.calls import CAP_TOKENS, LEAST_REPLY_TOKENS, ModelCalls, PricedModel
from rlm_rag.engine.past import Past
from rlm_rag.models.base import Completion, Message, ModelRequest, Usage
from rlm_rag.models.cache import ReplyCache
from rlm_rag.models.limiter import Limiter
from rlm_rag.models.prices import ModelFacts, Price
from rlm_rag.models.sharing import SharedReplies
from rlm_rag.models.tokens import count_message_tokens
from rlm_rag.trace.recorder import Recorder
from tests.engine.play import block, leaves, play, told_root
from tests.servers.loopback import Step, reply
from tests.servers.openai_chat import OpenAiChatServer
from tests.virtual_time import run_virtually

PRICE = Price(input_usd=0.0, output_usd=1e-3, cached_usd=0.0)
ASKED = (Message("user", "how long?"),)
PROMPT_TOKENS = count_message_tokens(ASKED)


class Talker:
    """Replies as long as its cap, or as `most` tokens, and bills that."""

    name = "talker"

    def __init__(self, most: int = 10**9) -> None:
        self.caps: list[int | None] = []
        self.most = most

    async def complete(self, request: ModelRequest) -> Completion:
        self.caps.append(request.max_output_tokens)
        cap = self.most if request.max_output_tokens is None else request.max_output_tokens
        usage = Usage(
            calls=1,
            input_tokens=count_message_tokens(request.messages),
            output_tokens=min(cap, self.most),
            usd=min(cap, self.most) * PRICE.output_usd,
        )
        return Completion("words", usage, self.name, "length" if cap < self.most else "stop")


def calls_within(limits: Limits) -> tuple[ModelCalls, Budget]:
    budget = Budget(limits)
    recorder = Recorder(None)
    return (
        ModelCalls(run_id="r", budget=budget, limits=limits, recorder=recorder, past=Past()),
        budget,
    )


def model_of(talker: Talker, shared: SharedReplies | None = None) -> PricedModel:
    return PricedModel(talker, ModelFacts(price=PRICE), Limiter(4), shared=shared)


def sent(limits: Limits, talker: Talker, **asked: Any) -> Completion:
    calls, _ = calls_within(limits)
    return run_virtually(calls.complete(model_of(talker), ASKED, role="sub", **asked))


@pytest.mark.parametrize(
    ("limits", "cap"),
    [
        (Limits(tokens=50_000), CAP_TOKENS),
        (Limits(tokens=2_000 + PROMPT_TOKENS), 2_000),
        (Limits(usd=1.5), 1_500),
        (Limits(usd=3.0, tokens=LEAST_REPLY_TOKENS + PROMPT_TOKENS), LEAST_REPLY_TOKENS),
    ],
)
def test_a_cap_shrinks_to_what_is_left_in_tokens_and_money(limits: Limits, cap: int) -> None:
    talker = Talker()
    assert sent(limits, talker).finish_reason == "length"
    assert talker.caps == [cap]


@pytest.mark.parametrize(
    "limits", [Limits(tokens=LEAST_REPLY_TOKENS + PROMPT_TOKENS - 1), Limits(usd=0.2)]
)
def test_where_no_useful_reply_fits_nothing_is_sent(limits: Limits) -> None:
    talker = Talker()
    with pytest.raises(LimitReached, match="does not fit"):
        sent(limits, talker)
    assert not talker.caps
    # A reply that was asked to be short is of use.
    assert sent(limits, talker, max_output_tokens=100).text == "words"
    assert talker.caps == [100]


def test_a_cap_that_would_fit_once_calls_in_flight_settle_is_waited_for() -> None:
    talker = Talker(most=50)
    limits = Limits(tokens=2 * CAP_TOKENS, calls=None)
    calls, budget = calls_within(limits)

    async def batch() -> list[Completion]:
        model = model_of(talker)
        asked = (calls.complete(model, [Message("user", f"{n}")], role="sub") for n in range(20))
        return await asyncio.gather(*asked)

    assert all(each.finish_reason == "stop" for each in run_virtually(batch()))
    assert talker.caps == [CAP_TOKENS] * 20
    assert budget.usage.output_tokens == 20 * 50


def test_a_reply_that_the_limits_cut_is_not_kept_for_runs_with_more_left(tmp_path: Path) -> None:
    def asked(limits: Limits, talker: Talker) -> Completion:
        async def run() -> Completion:
            cache = ReplyCache(tmp_path / "replies.sqlite")
            calls, _ = calls_within(limits)
            try:
                model = model_of(talker, SharedReplies(cache))
                return await calls.complete(model, ASKED, role="sub")
            finally:
                cache.close()

        return asyncio.run(run())

    assert asked(Limits(tokens=1_000), Talker(most=2_000)).finish_reason == "length"
    whole = asked(Limits(tokens=50_000), Talker(most=2_000))
    assert (whole.finish_reason, whole.usage.calls) == ("stop", 1)
    kept = asked(Limits(tokens=50_000), Talker(most=2_000))
    assert (kept.finish_reason, kept.usage.cached_calls) == ("stop", 1)


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    with rlm_rag.load({"a.md": "# A\n\nThe answer is 7.\n"}) as loaded:
        yield loaded


def capped(server: OpenAiChatServer, text: str, *, words: int) -> Step:
    """A reply that would have `words` tokens, as a provider cuts and bills it."""
    request = server.received[-1].json
    cap = request["max_tokens"]
    usage = {"prompt_tokens": 10, "completion_tokens": min(words, cap)}
    return reply(text, usage=usage, finish_reason="length" if words > cap else "stop")


def test_a_run_with_fewer_tokens_than_a_cap_still_asks_and_answers(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    def root(first: str, turn: int) -> Step:
        text = "```repl\nFINAL('7, as a.md:3 says')\n```"
        return capped(openai_server, text, words=20)

    found = play(openai_server, corpus, root=root, limits=Limits(tokens=CAP_TOKENS))
    assert (found.text, found.stop_reason) == ("7, as a.md:3 says", "answered")
    assert LEAST_REPLY_TOKENS <= openai_server.received[0].json["max_tokens"] < CAP_TOKENS


def test_a_leaf_that_what_is_left_cuts_is_marked_and_not_asked_for_again(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[
            block("r = llm_query('tell all')\nprint('cut:', r.ok, r.truncated, r.usage['calls'])"),
            reply("the best of it"),
        ],
        leaf=lambda prompt: capped(openai_server, "half a", words=9_000),
        limits=Limits(tokens=6_000),
    )
    assert len(leaves(openai_server)) == 1
    assert "cut: True True 1" in told_root(openai_server)[1]
    assert found.usage.input_tokens + found.usage.output_tokens <= 6_000


def test_an_answer_that_its_limit_cut_says_so(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=lambda first, turn: capped(openai_server, "FINAL(a long answer", words=9_000),
        limits=Limits(tokens=6_000, iterations=1),
    )
    assert found.text == "a long answer"
    assert any("cut the answer off" in warning for warning in found.warnings)
