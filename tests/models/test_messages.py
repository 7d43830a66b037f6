"""Message lists that every provider accepts, whatever happened in the turns before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.models.base import Message
from rlm_rag.models.messages import CONTINUE, alternate

messages = st.lists(
    st.builds(Message, st.sampled_from(["system", "user", "assistant"]), st.text(max_size=20)),
    max_size=12,
)


@given(messages)
def test_roles_alternate_and_the_list_ends_with_the_user(given_messages: list[Message]) -> None:
    result = alternate(given_messages)
    turns = [m for m in result if m.role != "system"]
    assert [m.role for m in turns] == [
        "user" if number % 2 == 0 else "assistant" for number in range(len(turns))
    ]
    assert result[-1].role == "user"
    assert all(m.content.strip() for m in result)
    assert [m.role for m in result].count("system") <= 1
    assert all(m.role != "system" for m in result[1:])


@given(messages)
def test_no_text_is_lost_and_doing_it_twice_changes_nothing(given_messages: list[Message]) -> None:
    result = alternate(given_messages)
    for message in given_messages:
        if message.content.strip():
            assert any(message.content in m.content for m in result if m.role == message.role)
    assert alternate(result) == result


def test_neighbours_of_one_role_are_merged() -> None:
    assert alternate(
        [
            Message("user", "a"),
            Message("assistant", "b"),
            Message("assistant", "c"),
            Message("system", "s"),
        ]
    ) == (
        Message("system", "s"),
        Message("user", "a"),
        Message("assistant", "b\n\nc"),
        Message("user", CONTINUE),
    )


def test_lone_surrogates_become_encodable() -> None:
    [message] = alternate([Message("user", "a\ud800b\udfff \U0001f600")])
    assert message.content == "a\ufffdb\ufffd \U0001f600"
