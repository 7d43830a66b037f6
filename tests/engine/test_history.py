"""The conversation with the root model."""

from __future__ import annotations

from rlm_rag.engine.history import CORPUS_HEADING, QUESTION_HEADING, History, RanBlock, feedback
from rlm_rag.sandbox.blocks import BlockError, BlockResult


def result(**changes: object) -> BlockResult:
    fields: dict[str, object] = {
        "block": 1,
        "stdout": "",
        "stderr": "",
        "value": None,
        "error": None,
        "answer": None,
        "overwritten": (),
        "variables": (),
        "seconds": 0.0,
        "waited_seconds": 0.0,
        "stdout_cut": 0,
        "stderr_cut": 0,
        "restarted": False,
        "lost": (),
    }
    return BlockResult(**{**fields, **changes})  # type: ignore[arg-type]


def told(**changes: object) -> str:
    return feedback([RanBlock(1, "code", result(**changes))], [], "Turn 2.")


def test_the_question_and_the_figures_stand_under_their_headings() -> None:
    history = History(system="S", question="Q?", figures="F", status="T")
    assert history.messages[1].content == f"{QUESTION_HEADING}\nQ?\n\n{CORPUS_HEADING}\nF\n\nT"


def test_new_messages_are_taken_once() -> None:
    history = History(system="S", question="Q?", figures="F", status="T")
    assert len(history.take_new()) == 2
    history.replied("code")
    history.told("output")
    assert [message["content"] for message in history.take_new()] == ["code", "output"]
    assert history.take_new() == []


def test_an_empty_reply_is_shown_as_such() -> None:
    history = History(system="S", question="Q?", figures="F", status="T")
    history.replied(" \n")
    assert history.messages[-1].content == "(empty reply)"


def test_a_silent_block_is_said_to_have_run() -> None:
    assert "ran and printed nothing" in told()


def test_output_value_and_error_are_shown_in_this_order() -> None:
    text = told(
        stdout="printed\n",
        stderr="warned\n",
        value="42",
        error=BlockError("ValueError", "bad", "Traceback\nValueError: bad"),
    )
    places = [text.index(part) for part in ("printed", "warned", "=> 42", "ValueError: bad")]
    assert places == sorted(places)
    assert text.count("ValueError: bad") == 1


def test_what_the_host_knows_of_a_failure_stands_below_the_traceback() -> None:
    error = BlockError("Timeout", "stopped after 2 s", "Traceback\nKeyboardInterrupt")
    assert "KeyboardInterrupt\nTimeout: stopped after 2 s" in told(error=error)


def test_lost_and_overwritten_names_are_told() -> None:
    text = told(restarted=True, restored_block=3, lost=("rows",), overwritten=("search",))
    assert "as they were after block 3. These could not be kept: rows." in text
    assert "You overwrote search" in text


def test_several_blocks_are_numbered() -> None:
    ran = [RanBlock(4, "a", result(stdout="x")), RanBlock(5, "b", result(stdout="y"))]
    text = feedback(ran, ["later"], "Turn 3.")
    assert "Output of block 4:\nx" in text
    assert "Output of block 5:\ny" in text
    assert text.endswith("Note: later\n\nTurn 3.")


def test_a_summary_says_where_the_turns_stand_in_full() -> None:
    history = History(system="S", question="Q?", figures="F", status="T")
    history.replied("one")
    history.told("two")
    history.fold(2, "They were short.")
    first = history.messages[1].content
    assert "They were short.\n\n(In full they are in the REPL as `history`" in first
    assert len(history.messages) == 2
