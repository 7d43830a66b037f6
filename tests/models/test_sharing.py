"""Identical calls are sent once, whatever happens to the one that is sent."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.errors import ModelRequestError, ProviderServerError
from rlm_rag.models.base import Completion, Message, ModelRequest, Usage
from rlm_rag.models.cache import ReplyCache
from rlm_rag.models.sharing import SharedReplies
from tests.virtual_time import run_virtually


def request(text: str = "hello", **changes: object) -> ModelRequest:
    return ModelRequest((Message("user", text),), **changes)  # type: ignore[arg-type]


class Provider:
    """Replies after a second, numbering its replies."""

    def __init__(self, failures: int = 0) -> None:
        self.sent = 0
        self.failures = failures

    async def __call__(self) -> Completion:
        self.sent += 1
        number = self.sent
        await asyncio.sleep(1)
        if number <= self.failures:
            raise ProviderServerError(f"failure {number}")
        return Completion(f"reply {number}", Usage(calls=1, output_tokens=5, usd=0.5), "m")


def test_calls_that_are_under_way_together_are_one() -> None:
    provider = Provider()

    async def run() -> list[tuple[Completion, bool]]:
        shared = SharedReplies()
        key = shared.key("m", None, request())
        return await asyncio.gather(*(shared.complete(key, provider) for _ in range(5)))

    done = run_virtually(run())
    assert provider.sent == 1
    assert [sent for _, sent in done] == [True, False, False, False, False]
    assert {completion.text for completion, _ in done} == {"reply 1"}
    assert done[0][0].usage == Usage(calls=1, output_tokens=5, usd=0.5)
    assert done[1][0].usage == Usage(cached_calls=1, saved_usd=0.5)


def test_a_later_call_is_sent_again_where_no_cache_keeps_replies() -> None:
    provider = Provider()

    async def run() -> None:
        shared = SharedReplies()
        key = shared.key("m", None, request())
        await shared.complete(key, provider)
        await shared.complete(key, provider)

    run_virtually(run())
    assert provider.sent == 2


def test_a_failure_is_told_to_all_who_waited_and_not_kept() -> None:
    provider = Provider(failures=1)

    async def run() -> list[object]:
        shared = SharedReplies()
        key = shared.key("m", None, request())
        calls = [shared.complete(key, provider) for _ in range(3)]
        failed = await asyncio.gather(*calls, return_exceptions=True)
        completion, _ = await shared.complete(key, provider)
        return [*failed, completion.text]

    *failed, text = run_virtually(run())
    assert [str(error) for error in failed] == ["failure 1"] * 3
    assert text == "reply 2"


def test_whoever_is_cancelled_leaves_the_sending_to_the_next() -> None:
    provider = Provider()

    async def run() -> list[object]:
        shared = SharedReplies()
        key = shared.key("m", None, request())
        calls = [asyncio.create_task(shared.complete(key, provider)) for _ in range(4)]
        await asyncio.sleep(0.5)
        calls[0].cancel()
        calls[2].cancel()
        return await asyncio.gather(*calls, return_exceptions=True)

    done = run_virtually(run())
    assert [isinstance(one, asyncio.CancelledError) for one in done] == [True, False, True, False]
    assert provider.sent == 2
    assert [one[1] for one in done if isinstance(one, tuple)] == [True, False]


def test_only_what_is_the_same_in_everything_is_the_same() -> None:
    shared = SharedReplies()
    image = ModelRequest((Message("user", "hello", ("data:image/png;base64,AA==",)),))
    system = ModelRequest((Message("system", "hello"),))
    keys = {
        shared.key("m", None, request()),
        shared.key("n", None, request()),
        shared.key("m", "http://127.0.0.1:1/v1", request()),
        shared.key("m", None, request("hello ")),
        shared.key("m", None, request(max_output_tokens=5)),
        shared.key("m", None, request(temperature=0.0)),
        shared.key("m", None, request(extra={"top_p": 0.5})),
        shared.key("m", None, image),
        shared.key("m", None, system),
    }
    assert len(keys) == 9
    assert shared.key("m", None, request(timeout_seconds=3)) in keys
    with pytest.raises(ModelRequestError, match="no JSON"):
        shared.key("m", None, request(extra={"stop": {1, 2}}))


def test_what_is_left_of_the_limits_makes_no_prompt_another() -> None:
    shared = SharedReplies()
    keys = {
        shared.key("m", None, request(f"Output:\n1\n\nThis is turn 2 of 30.{left}"))
        for left in ("", " Left: 198 calls.", " Left: 197 calls, 0.2500 dollars.")
    }
    assert len(keys) == 1
    assert shared.key("m", None, request("Output:\n1\n\nThis is turn 3 of 30.")) not in keys


def test_a_temperature_above_zero_asks_for_replies_that_differ() -> None:
    warm = request(temperature=0.7)
    shared, other_run = SharedReplies(), SharedReplies()
    first, second = shared.key("m", None, warm), shared.key("m", None, warm)
    assert first != second
    assert [other_run.key("m", None, warm) for _ in range(2)] == [first, second]
    assert shared.key("m", None, request()) == shared.key("m", None, request())


def test_replies_are_kept_across_runs_and_say_what_they_saved(tmp_path: Path) -> None:
    provider = Provider()

    async def run() -> tuple[Completion, bool]:
        cache = ReplyCache(tmp_path / "replies.sqlite")
        shared = SharedReplies(cache)
        try:
            return await shared.complete(shared.key("m", None, request()), provider)
        finally:
            cache.close()

    assert asyncio.run(run()) == (await_reply(), True)
    completion, sent = asyncio.run(run())
    assert (completion.text, sent) == ("reply 1", False)
    assert completion.usage == Usage(cached_calls=1, saved_usd=0.5)
    assert provider.sent == 1


def await_reply() -> Completion:
    return Completion("reply 1", Usage(calls=1, output_tokens=5, usd=0.5), "m")


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 4), st.one_of(st.none(), st.integers(0, 5))),
        max_size=25,
    ),
    st.integers(0, 4),
)
def test_however_calls_fall_together_each_gets_the_reply_of_its_own_prompt(
    plans: list[tuple[int, int, int | None]], failing: int
) -> None:
    sent = 0

    async def run() -> list[object]:
        shared = SharedReplies()

        async def send(prompt: int) -> Completion:
            nonlocal sent
            sent += 1
            await asyncio.sleep(2)
            if prompt == failing:
                raise ProviderServerError(str(prompt))
            return Completion(str(prompt), Usage(calls=1), "m")

        async def one(prompt: int, start: int) -> str:
            await asyncio.sleep(start)
            key = shared.key("m", None, request(str(prompt)))
            completion, was_sent = await shared.complete(key, lambda: send(prompt))
            assert (completion.usage.calls, completion.usage.cached_calls) == (
                (1, 0) if was_sent else (0, 1)
            )
            return completion.text

        calls = [asyncio.create_task(one(prompt, start)) for prompt, start, _ in plans]
        for call, (_, _, stop) in zip(calls, plans, strict=True):
            if stop is not None:
                asyncio.get_running_loop().call_later(stop, call.cancel)
        return await asyncio.gather(*calls, return_exceptions=True)

    done = run_virtually(run())
    assert sent <= len(plans)
    for (prompt, _, stop), outcome in zip(plans, done, strict=True):
        if isinstance(outcome, asyncio.CancelledError):
            assert stop is not None
        elif prompt == failing:
            assert isinstance(outcome, ProviderServerError)
        else:
            assert outcome == str(prompt)
