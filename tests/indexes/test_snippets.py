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


def test_the_line_where_the_definition_begins_is_shown_after_the_best_one() -> None:
    lines = [
        "def parse(text):",
        *["    parse and header " + "x" * 70] * 20,
        "    header = parse(text)",
    ]
    window = "\n".join(lines).encode()
    snippets = Snippets({b"header": 2.0, b"text": 2.0})
    shown = snippets.of(window, 101, begins=101).split("\n")
    assert shown[0] == "101: def parse(text):"
    assert shown[-1] == "122: header = parse(text)"
    assert "101: def parse(text):" not in Snippets({b"header": 2.0}).of(window, 101)
    alone = Snippets({b"other": 1.0}).of(b"def f():\n    return 1\n    other()", 1, begins=1)
    assert alone == "1: def f():\n2: return 1\n3: other()"
