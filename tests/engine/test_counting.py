"""What a provider billed for a prompt tells what it will bill for the next ones."""

from __future__ import annotations

from rlm_rag.engine.counting import Counting
from rlm_rag.models.base import Message
from rlm_rag.models.tokens import most_message_tokens

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
