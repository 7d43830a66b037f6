"""Repeating a request: when, how long to wait, and when not at all."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence

import pytest

from rlm_rag.errors import (
    ModelError,
    ModelKeyError,
    ModelTimeoutError,
    ProviderServerError,
    RateLimitError,
)
from rlm_rag.models.base import Completion, Message, ModelRequest, Usage
from rlm_rag.models.limiter import Limiter
from rlm_rag.models.openai_compatible import OpenAiCompatibleModel
from rlm_rag.models.retry import (
    MAX_WAIT_SECONDS,
    RATE_LIMITED_ATTEMPTS,
    Patience,
    Pauses,
    complete_with_retries,
)
from tests.servers.loopback import Received, Step, cut, failed, rate_limited, raw, reply
from tests.servers.openai_chat import OpenAiChatServer
from tests.virtual_time import run_virtually

HELLO = ModelRequest(messages=(Message("user", "hello"),), timeout_seconds=10)


class Clock:
    """Records the waits instead of waiting."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def pauses(self) -> Pauses:
        return Pauses(sleep=self.sleep, dice=random.Random(7))


class Outcomes:
    """A model of our own protocol that ends each request as listed."""

    name = "outcomes"

    def __init__(self, outcomes: Sequence[ModelError | str]) -> None:
        self.outcomes = list(outcomes)
        self.timeouts: list[float] = []

    async def complete(self, request: ModelRequest) -> Completion:
        self.timeouts.append(request.timeout_seconds)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, ModelError):
            raise outcome
        return Completion(outcome, Usage(calls=1, output_tokens=3), self.name)


def test_a_request_is_repeated_through_every_passing_failure(
    openai_server: OpenAiChatServer,
) -> None:
    openai_server.script = [rate_limited(0.2), failed(500), cut(), "at last"]
    clock = Clock()
    begun: list[int] = []

    async def begin() -> None:
        begun.append(1)

    async def run() -> Completion:
        model = OpenAiCompatibleModel("m", api_base=openai_server.api_base)
        completion = await complete_with_retries(
            model,
            HELLO,
            limiter=Limiter(),
            before_attempt=begin,
            pauses=clock.pauses(),
        )
        await model.aclose()
        return completion

    completion = asyncio.run(run())
    assert completion.text == "at last"
    assert completion.usage.calls == 4 == len(openai_server.received) == len(begun)
    assert 0.2 <= clock.waits[0] <= 0.22
    assert 0.5 <= clock.waits[1] <= 1
    assert 1 <= clock.waits[2] <= 2


def test_the_last_failure_says_how_often_it_was_tried(openai_server: OpenAiChatServer) -> None:
    openai_server.script = [raw("{broken")] * 9

    async def run() -> None:
        model = OpenAiCompatibleModel("m", api_base=openai_server.api_base)
        try:
            await complete_with_retries(
                model,
                HELLO,
                limiter=Limiter(),
                patience=Patience(attempts=3),
                pauses=Clock().pauses(),
            )
        finally:
            await model.aclose()

    with pytest.raises(ProviderServerError, match=r"\(3 attempts\)"):
        asyncio.run(run())
    assert len(openai_server.received) == 3


def test_what_cannot_get_better_is_not_repeated() -> None:
    clock = Clock()
    model = Outcomes([ModelKeyError("no")])
    with pytest.raises(ModelKeyError):
        asyncio.run(complete_with_retries(model, HELLO, limiter=Limiter(), pauses=clock.pauses()))
    assert clock.waits == []


def test_a_refusal_before_an_attempt_stops_it_unsent() -> None:
    model = Outcomes([ProviderServerError("boom"), "never"])
    begun: list[int] = []

    async def admit() -> None:
        begun.append(1)
        if len(begun) == 2:
            raise RuntimeError("the budget is spent")

    limiter = Limiter()
    with pytest.raises(RuntimeError, match="spent"):
        asyncio.run(
            complete_with_retries(
                model, HELLO, limiter=limiter, before_attempt=admit, pauses=Clock().pauses()
            )
        )
    assert model.outcomes == ["never"]
    assert limiter.in_flight == 0


@pytest.mark.parametrize(
    ("asked_seconds", "deadline_seconds"), [(50, 10), (MAX_WAIT_SECONDS + 1, None)]
)
def test_a_wait_that_is_too_long_is_not_begun(
    asked_seconds: float, deadline_seconds: float | None
) -> None:
    clock = Clock()
    model = Outcomes([RateLimitError("later", retry_after_seconds=asked_seconds), "never"])
    with pytest.raises(RateLimitError):
        asyncio.run(
            complete_with_retries(
                model,
                HELLO,
                limiter=Limiter(),
                patience=Patience(seconds=deadline_seconds),
                pauses=clock.pauses(),
            )
        )
    assert clock.waits == []


def test_a_request_times_out_by_the_deadline() -> None:
    model = Outcomes(["fine"])
    patience = Patience(seconds=3)
    asyncio.run(complete_with_retries(model, HELLO, limiter=Limiter(), patience=patience))
    assert 0 < model.timeouts[0] <= 3
    with pytest.raises(ModelTimeoutError, match="no time was left"):
        asyncio.run(
            complete_with_retries(model, HELLO, limiter=Limiter(), patience=Patience(seconds=0))
        )


def test_no_turn_is_held_while_waiting_to_repeat() -> None:
    limiter = Limiter(1)
    held: list[int] = []

    async def sleep(seconds: float) -> None:
        held.append(limiter.in_flight)

    model = Outcomes([ProviderServerError("boom"), "fine"])
    asyncio.run(complete_with_retries(model, HELLO, limiter=limiter, pauses=Pauses(sleep=sleep)))
    assert held == [0]


def test_backoff_grows_and_keeps_its_bounds() -> None:
    pauses = Pauses(dice=random.Random(3))
    error = ProviderServerError("boom")
    for attempt, bound in [(2, 0.5), (3, 1.0), (4, 2.0), (30, 20.0)]:
        for _ in range(50):
            assert bound / 2 <= pauses.seconds_before(attempt, error) <= bound


def test_a_provider_that_limits_its_rate_is_served_in_full_and_in_time(
    openai_server: OpenAiChatServer,
) -> None:
    refused = iter([True] * 6 + [False] * 1000)
    openai_server.script = lambda request: (
        rate_limited(0.05) if next(refused) else f"re: {request.prompt}"
    )

    async def run() -> list[str]:
        model = OpenAiCompatibleModel("m", api_base=openai_server.api_base)
        limiter = Limiter()

        async def one(number: int) -> str:
            request = ModelRequest((Message("user", str(number)),), timeout_seconds=10)
            return (await complete_with_retries(model, request, limiter=limiter)).text

        texts = await asyncio.gather(*(one(number) for number in range(60)))
        await model.aclose()
        return texts

    started = time.monotonic()
    assert asyncio.run(run()) == [f"re: {number}" for number in range(60)]
    assert len(openai_server.received) == 66
    assert time.monotonic() - started < 5


def test_a_rate_limit_may_be_met_more_often_than_a_failure_and_not_for_ever() -> None:
    limited = [RateLimitError("later", retry_after_seconds=1)] * 40
    model = Outcomes([*limited[:8], ProviderServerError("boom"), "at last"])
    done = run_virtually(complete_with_retries(model, HELLO, limiter=Limiter()))
    assert (done.text, done.usage.calls) == ("at last", 10)
    with pytest.raises(RateLimitError, match=f"{RATE_LIMITED_ATTEMPTS} attempts"):
        run_virtually(complete_with_retries(Outcomes(limited), HELLO, limiter=Limiter()))


def test_one_refusal_for_the_rate_keeps_all_other_calls_from_being_sent() -> None:
    sent: list[float] = []

    class Refusing:
        name = "refusing"

        async def complete(self, request: ModelRequest) -> Completion:
            sent.append(asyncio.get_running_loop().time())
            await asyncio.sleep(0.1)
            if len(sent) == 1:
                raise RateLimitError("later", retry_after_seconds=30)
            return Completion("fine", Usage(calls=1), self.name)

    async def run() -> None:
        limiter = Limiter(1)
        calls = (complete_with_retries(Refusing(), HELLO, limiter=limiter) for _ in range(5))
        await asyncio.gather(*calls)

    run_virtually(run())
    assert len(sent) == 6
    assert min(sent[1:]) >= 30


@pytest.mark.parametrize(
    "error",
    [
        ModelTimeoutError("408", retry_after_seconds=30),
        ProviderServerError("503", retry_after_seconds=30),
    ],
    ids=["timeout", "overloaded"],
)
def test_whatever_says_when_to_come_back_keeps_all_others_from_being_sent(
    error: ModelError,
) -> None:
    model, limiter = Outcomes([error, "one", "two"]), Limiter(1)

    async def run() -> tuple[float, int]:
        done = await asyncio.gather(
            *(complete_with_retries(model, HELLO, limiter=limiter) for _ in range(2))
        )
        assert {each.text for each in done} == {"one", "two"}
        return asyncio.get_running_loop().time(), limiter.width

    seconds, width = run_virtually(run())
    assert seconds >= 30
    assert width == 1


def test_an_error_without_a_wish_narrows_nothing() -> None:
    limiter = Limiter(8)
    model = Outcomes([ProviderServerError("boom"), "fine"])
    run_virtually(complete_with_retries(model, HELLO, limiter=limiter))
    assert limiter.width == 8


@pytest.mark.deep
def test_a_server_that_is_too_slow_for_so_much_is_sent_less_and_then_more_again(
    openai_server: OpenAiChatServer,
) -> None:
    busy = True

    def script(request: Received) -> Step:
        overloaded = busy and openai_server.in_flight > 2
        return reply(f"re: {request.prompt}", delay_seconds=0.25 if overloaded else 0.01)

    openai_server.script = script
    widths: list[int] = []

    async def run() -> list[str]:
        nonlocal busy
        model = OpenAiCompatibleModel("m", api_base=openai_server.api_base)
        limiter = Limiter(8)
        pauses = Pauses(sleep=lambda seconds: asyncio.sleep(seconds / 20))

        async def one(number: int) -> str:
            request = ModelRequest((Message("user", str(number)),), timeout_seconds=0.15)
            done = await complete_with_retries(
                model, request, limiter=limiter, patience=Patience(attempts=30), pauses=pauses
            )
            widths.append(limiter.width)
            return done.text

        texts = await asyncio.gather(*(one(number) for number in range(12)))
        busy = False
        texts += await asyncio.gather(*(one(number) for number in range(12, 120)))
        await model.aclose()
        return texts

    assert asyncio.run(run()) == [f"re: {number}" for number in range(120)]
    assert min(widths) <= 2
    assert widths[-1] == 8


def test_time_in_line_is_not_the_time_of_the_call() -> None:
    class Slow:
        name = "slow"

        async def complete(self, request: ModelRequest) -> Completion:
            await asyncio.sleep(9)
            return Completion("fine", Usage(calls=1), self.name)

    async def run(patience: Patience) -> list[Completion | BaseException]:
        limiter = Limiter(2)
        calls = (
            complete_with_retries(Slow(), HELLO, limiter=limiter, patience=patience)
            for _ in range(20)
        )
        return await asyncio.gather(*calls, return_exceptions=True)

    assert all(isinstance(d, Completion) for d in run_virtually(run(Patience(seconds=10))))
    bounded = run_virtually(run(Patience(seconds=10, queue_seconds=20)))
    assert [isinstance(done, ModelTimeoutError) for done in bounded] == [False] * 6 + [True] * 14
