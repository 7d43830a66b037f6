from __future__ import annotations

import pytest

from rlm_rag.indexes.snippets import Snippets

LINES = [f"nothing of note in line {number} at all, but it is long" for number in range(30)]


@pytest.mark.parametrize(
    ("term", "said"),
    [
        ("getusername", "get_user_name()"),
        ("user", "x = getUserName()"),
        ("user", "x = USER_NAME"),
        ("name", "x = user2name"),
        ("hello", "`Hello`, it says"),
        ("cafe", "un café"),
        ("猫", "吾輩は猫である"),
    ],
)
def test_a_word_is_found_however_it_is_written(term: str, said: str) -> None:
    lines = [*LINES[:20], said, *LINES[20:]]
    shown = Snippets({term.encode(): 1.0}).of("\n".join(lines).encode(), 101)
    assert f"121: {said}" in shown.split("\n")


def test_a_word_within_another_is_not_found() -> None:
    window = "\n".join([*LINES, f"{LINES[0]} username"]).encode()
    assert "username" not in Snippets({b"user": 1.0}).of(window, 1)
