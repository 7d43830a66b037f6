"""What a provider billed for a prompt tells what it will bill for the next ones."""

from __future__ import annotations

import pytest

from rlm_rag.engine import counting
from rlm_rag.engine.counting import Counting
from rlm_rag.models.base import Message
from rlm_rag.models.image_tokens import most_image_tokens
from rlm_rag.models.tokens import most_message_tokens
from rlm_rag.models.vocabularies import highest_message_tokens

LONG = [Message("user", "word " * 2_000)]
MOST = most_message_tokens(LONG)


def test_a_provider_that_counts_as_we_do_changes_nothing() -> None:
    counting = Counting()
    for estimated, billed in ((2_000, 2_000), (2_000, 1), (10, 0), (0, 0)):
        counting.learn(estimated, billed)
    assert counting.estimated(2_000, LONG) == 2_000


def test_what_it_counted_more_holds_for_longer_prompts_and_never_beyond_their_bytes() -> None:
    counting = Counting()
    counting.learn(1_000, 1_500)
    assert 3_000 < counting.estimated(2_000, LONG) < 3_200
    counting.learn(1_000, 1_100)
    assert 3_000 < counting.estimated(2_000, LONG) < 3_200
    counting.learn(300, 10**9)
    assert counting.estimated(2_000, LONG) == MOST
    assert counting.estimated(MOST + 1, LONG) == MOST + 1


def test_what_a_template_adds_to_a_short_prompt_is_not_taken_for_the_texts() -> None:
    counting = Counting()
    counting.learn(20, 45)
    assert counting.estimated(2_000, LONG) == 2_025
    counting.learn(20, 5_000)
    assert counting.estimated(2_000, LONG) == 2_064


def test_what_images_cost_more_is_theirs_and_says_nothing_of_texts() -> None:
    counting = Counting()
    image = "data:image/png;base64,"
    shown = (Message("user", "word " * 2_000, (image, image)),)
    most = counting.most(shown)
    assert counting.estimated(5_200, shown) == 5_200
    counting.learn(5_200, 45_200, shown)
    assert counting.estimated(5_200, shown) == 45_200
    assert counting.most(shown) == most + 40_000
    assert counting.estimated(2_000, LONG) == 2_000
    counting.learn(5_200, 45_000, shown)
    assert counting.estimated(5_200, shown) == 45_200


def careful(counting: Counting, *texts: str) -> int:
    messages = tuple(Message("user", text) for text in texts)
    return counting.counted(messages, 1)


def test_with_care_a_template_counts_until_a_prompt_was_billed_and_then_as_it_was_billed() -> None:
    known, served = Counting("m"), Counting("m", has_template=True)
    bare = careful(known, "Hi", "there")
    assert careful(served, "Hi", "there") == bare + 64 + 2 * 2
    asked = (Message("user", "word " * 2_000),)
    served.learn(2_500, careful(known, asked[0].content) + 40, asked)
    assert careful(served, "Hi", "there") == bare + 40
    # The shortest prompt tells most of it, and it is a template no longer than there are.
    served.learn(300, careful(known, "Hi") + 10, (Message("user", "Hi"),))
    assert careful(served, "Hi", "there") == bare + 10
    served.learn(200, 10**6, (Message("user", "Ho"),))
    assert careful(served, "Hi", "there") == bare + 64 + 2


HELLO = (Message("user", "Hello, who are you?"),)
TOLD = (Message("system", "Be brief."), *HELLO)


def test_a_template_of_more_tokens_than_a_prompt_has_bytes_is_counted_in_full() -> None:
    counting = Counting("some/model", has_template=True)
    counting.learn(12, 690, HELLO)
    assert counting.estimated(12, HELLO) == 690
    assert counting.estimated(2_000, LONG) == 2_678
    assert counting.most(LONG) >= MOST + 678
    assert counting.counted(LONG, 1) >= 2_000 + 678


@pytest.mark.parametrize(("model", "least"), [("xai/grok-4-fast", 680), ("some/model", 66)])
def test_what_a_template_adds_without_a_system_message_is_not_known_by_one(
    model: str, least: int
) -> None:
    counting = Counting(model, has_template=True)
    assert counting.most(LONG) >= MOST + 2_048
    counting.learn(20, 21, TOLD)
    assert counting.most(TOLD) == most_message_tokens(TOLD) + 64 + 2 * 2
    assert counting.most(LONG) >= MOST + 2_048
    bare = careful(Counting(model), "Hi")
    assert careful(counting, "Hi") >= bare + least
    counting.learn(20, 21, HELLO)
    assert careful(counting, "Hi") < bare + 64


def test_a_prompt_that_we_count_too_high_tells_of_no_shorter_template() -> None:
    # A token for three digits, as cl100k has it: we count one for each near a limit.
    numbers = (Message("user", "1234567890" * 60),)
    counting = Counting("some/model", has_template=True)
    counting.learn(450, 7 + 200 + 40, numbers)
    assert careful(counting, "Hi") >= careful(Counting("some/model"), "Hi") + 40


def test_the_prompt_that_tells_of_a_template_is_counted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[str] = []

    def noted(messages: tuple[Message, ...], *, model: str, api_base: None) -> int | None:
        counted.append(messages[0].content)
        return highest_message_tokens(messages, model=model, api_base=api_base)

    monkeypatch.setattr(counting, "highest_message_tokens", noted)
    served = Counting("some/model", has_template=True)
    served.learn(12, 40, HELLO)
    assert careful(served, "Hi") == careful(served, "Hi")
    served.learn(10, 30, (Message("user", "Hello, you!"),))
    careful(served, "Ho")
    assert sorted(counted) == sorted(["Hi", "Hi", "Ho", HELLO[0].content, "Hello, you!"])


def test_an_image_that_goes_with_every_turn_is_looked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []

    def looked_at(image: str, model: str) -> int:
        seen.append(image)
        return most_image_tokens(image, model)

    monkeypatch.setattr(counting, "most_image_tokens", looked_at)
    model = Counting("some/model")
    image = "data:image/png;base64,"
    shown = [Message("user", "Hi", (image, image))]
    assert model.most(shown) == model.most([*shown]) == 7 + 2 + 66 + 2 * 16_384
    assert seen == [image]


def test_a_schema_that_goes_with_each_prompt_counts_near_a_limit() -> None:
    schema = '{"type": "object", "properties": {"name": {"type": "string"}}}' * 10
    bare, counting = Counting("some/model"), Counting("some/model", besides=schema)
    assert counting.most(LONG) == bare.most(LONG) + len(schema) + 4
    assert careful(counting, "Hi") > careful(bare, "Hi") + 100
    assert counting.estimated(2_000, LONG) == 2_000
    # Billed with it, it is no template.
    counting.learn(12, 12 + 200, HELLO)
    assert careful(counting, "Hi") <= careful(bare, "Hi") + 200 + 64
