"""What is asked about an answer before it is accepted."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.engine.citations import Citation
from rlm_rag.engine.doubts import Doubts
from rlm_rag.engine.guidance import Guide
from rlm_rag.engine.history import RanBlock
from rlm_rag.sandbox.blocks import BlockError, BlockResult

FALSE = Citation("a.py", 9, 9, None, "false", False)


def doubts(
    question: str = "How many are there?", *citations: Citation, guided: bool = False
) -> Doubts:
    return Doubts(
        question=question,
        check=lambda text: citations,
        why_false=lambda each: f"{each.path} bad",
        guide=Guide(question, is_on=guided),
    )


def said(about: Doubts, text: str, *, computed: bool) -> str | None:
    return asyncio.run(about.about(text, computed=computed))


def ran(stdout: str = "", error: BlockError | None = None) -> list[RanBlock]:
    return [RanBlock(1, "code", BlockResult(block=1, stdout=stdout, error=error))]


def test_a_number_that_no_output_showed_is_questioned_once() -> None:
    asked = doubts()
    asked.watch(ran("there are 12 files"))
    told = said(asked, "There are 42 of them.", computed=False)
    assert told is not None
    assert "42" in told
    assert said(asked, "There are 42 of them.", computed=False) is None


@pytest.mark.parametrize(
    "text",
    [
        "There are 1,234 of them.",
        "There are 1234.0 of them.",
        'There are 1234: "99 of 100 lines" (`src/a.py:77`, lines 5-6), in `f(8)`.',
        "1. The first\n2. The second\n",
        "In version v2, file utf8.py",
    ],
)
def test_numbers_that_were_shown_or_claim_nothing_are_not_questioned(text: str) -> None:
    asked = doubts()
    asked.watch(ran("n = 1,234"))
    assert said(asked, text, computed=False) is None


def test_a_number_of_the_question_is_not_questioned() -> None:
    assert said(doubts("Is it 404 or how many?"), "404", computed=False) is None


def test_what_a_block_computed_is_not_questioned() -> None:
    assert said(doubts(), "There are 42.", computed=True) is None


def test_small_numbers_count_only_where_the_question_counts() -> None:
    assert said(doubts("Where is it?"), "In 3 places.", computed=False) is None
    assert said(doubts("Where is it?"), "In 30 places.", computed=False) is not None


def test_an_answer_right_after_a_failed_block_is_questioned_once() -> None:
    asked = doubts("Where is it?")
    asked.watch(ran(error=BlockError("KeyError", "", "KeyError")))
    assert "failed" in (said(asked, "In a file.", computed=False) or "")
    assert said(asked, "In a file.", computed=False) is None


def test_an_answer_after_a_block_that_ran_again_stands() -> None:
    asked = doubts("Where is it?")
    asked.watch(ran(error=BlockError("KeyError", "", "KeyError")))
    asked.watch(ran("found"))
    assert said(asked, "In a file.", computed=False) is None


def test_false_citations_are_given_back_once_also_of_a_computed_answer() -> None:
    asked = doubts("Where is it?", FALSE)
    assert "a.py bad" in (said(asked, "In a file.", computed=True) or "")
    assert said(asked, "In a file.", computed=True) is None


def test_of_very_many_false_citations_some_are_named() -> None:
    told = said(doubts("Where?", *[FALSE] * 50), "There.", computed=True) or ""
    assert told.count("a.py bad") == 8
    assert "42 more" in told


@given(st.text(max_size=300), st.booleans())
def test_any_text_is_questioned_at_most_once_for_each_reason(text: str, computed: bool) -> None:
    asked = doubts("How many?", FALSE)
    asked.watch(ran(error=BlockError("E", "", "E")))
    assert said(asked, text, computed=computed) is not None
    said(asked, text, computed=computed)
    assert said(asked, text, computed=computed) is None


def test_a_small_model_that_never_looked_is_asked_to_once():
    asked = doubts("Where?", guided=True)
    assert "have not looked" in (said(asked, "Not in the corpus.", computed=False) or "")
    assert said(asked, "Not in the corpus.", computed=False) is None
    looked = doubts("Where?", guided=True)
    looked.watch(ran("found"))
    assert said(looked, "There.", computed=False) is None


def test_a_small_model_that_counted_none_looks_once_more() -> None:
    counting = doubts("How many tests are there?", guided=True)
    counting.watch([])
    assert "found none" in str(said(counting, "It defines 0 tests: `a.py:3`.", computed=True))
    assert said(counting, "It defines 0 tests.", computed=True) is None
    for other in (doubts("How many tests are there?", guided=False), doubts("Where?", guided=True)):
        assert said(other, "0 of them.", computed=True) is None
    assert said(doubts("How many?", guided=True), "10 of 0.", computed=True) is None
