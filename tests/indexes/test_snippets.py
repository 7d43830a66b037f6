from __future__ import annotations

import pytest

from rlm_rag.indexes import snippets
from rlm_rag.indexes.snippets import Snippets
from tests.indexes.held import held_by

LINES = [f"nothing of note in line {number} at all, but it is long" for number in range(30)]


def snippet(
    terms: dict[bytes, float], lines: list[str], first: int, begins: int | None = None
) -> str:
    cut = Snippets(terms)
    found = held_by(cut.terms, lines, first)
    return cut.of([line.encode() for line in lines], first, found, begins=begins)


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
    shown = snippet({term.encode(): 1.0}, lines, 101)
    assert f"121: {said}" in shown.split("\n")


def test_a_word_within_another_is_not_found() -> None:
    assert "username" not in snippet({b"user": 1.0}, [*LINES, f"{LINES[0]} username"], 1)


def test_the_line_where_the_definition_begins_is_shown_after_the_best_one() -> None:
    lines = [
        "def parse(text):",
        *["    parse and header " + "x" * 70] * 20,
        "    header = parse(text)",
    ]
    shown = snippet({b"header": 2.0, b"text": 2.0}, lines, 101, begins=101).split("\n")
    assert shown[0] == "101: def parse(text):"
    assert shown[-1] == "122: header = parse(text)"
    assert "101: def parse(text):" not in snippet({b"header": 2.0}, lines, 101)
    alone = snippet({b"other": 1.0}, ["def f():", "    return 1", "    other()"], 1, begins=1)
    assert alone == "1: def f():\n2: return 1\n3: other()"


def test_a_line_that_says_what_is_not_shown_yet_comes_before_an_earlier_one() -> None:
    padding = " " + "x" * 140
    lines = [f"alpha beta{padding}", f"alpha{padding}", f"beta gamma{padding}"]
    shown = snippet({b"alpha": 3.0, b"beta": 2.0, b"gamma": 2.0}, lines, 1).split("\n")
    assert [line[:1] for line in shown] == ["1", "3"]


def test_lines_that_are_not_shown_do_not_count() -> None:
    snippets = Snippets({b"alpha": 1.0})
    assert snippets.of([b"one", b"two"], 5, {4: 1, 6: 1, 7: 1}) == "5: one\n6: two"
    assert snippets.best_line({}, 5) == 5
    assert snippets.best_line({6: 0, 8: 1, 9: 1}, 5) == 8


@pytest.mark.parametrize("word", ["Retry", "ÜBER", "Ёж", "漢字"])
@pytest.mark.parametrize("place", [0, 60, 2000, 40_000, 59_990])
def test_of_a_very_long_line_as_much_is_shown_as_of_any_other(
    place: int, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ("lorem ipsum é " * 5000)[:60_000]
    line = f"{line[:place]} {word} {line[place:]}"
    term = word.lower().encode()
    shown = snippet({term: 1.0}, [line], 1)
    assert word in shown
    monkeypatch.setattr(snippets, "_MOST_LINE_BYTES", 1000)
    assert snippet({term: 1.0}, [line], 1) == shown
