"""Answers stated by blocks that do not run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.engine.reply import Block
from rlm_rag.engine.stated import stated_answer


def stated(*codes: str) -> str | None:
    return stated_answer([Block(code=code, tag="repl", line=1) for code in codes])


@pytest.mark.parametrize(
    "code",
    [
        "FINAL('here')",
        "answer['content'] = 'here'\nanswer['ready'] = True",
        "answer['content'] = ('he'\n  're')",
        "answer = 'here'",
        "answer = {'content': 'here', 'ready': True}",
        "answer.update(content='here', ready=True)",
        "answer.update({'content': 'here', 'ready': True})",
        "answer['content'] = 'there'\nFINAL('here')",
    ],
)
def test_a_literal_answer_is_found(code: str) -> None:
    assert stated(code) == "here"


@pytest.mark.parametrize(
    "code",
    [
        "FINAL(text)",
        "answer['content'] = f'{x}'",
        "answer['ready'] = True",
        "other['content'] = 'here'",
        "print('FINAL(1)')",
        "answer['content'] = open('/etc/passwd').read()",
        "def (",
        "",
    ],
)
def test_what_is_no_literal_answer_is_none(code: str) -> None:
    assert stated(code) is None


def test_the_last_of_several_blocks_wins() -> None:
    assert stated("FINAL('first')", "x = 1", "FINAL(42)", "print(x)") == "42"


@given(st.text())
def test_any_text_comes_out_as_it_was_stated(text: str) -> None:
    assert stated(f"FINAL({text!r})") == text
