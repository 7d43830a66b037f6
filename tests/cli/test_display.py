from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr

import pytest

from rlm_rag.cli.display import ProgressLine, Silence, VerboseLog, choose_display
from rlm_rag.trace.events import (
    Answered,
    BlockOutput,
    BlockStarted,
    CallSent,
    ReplyReceived,
    RunStarted,
    TurnStarted,
)

USAGE = {"input_tokens": 1200, "output_tokens": 34, "usd": 0.0125}


def test_off_a_terminal_nothing_is_shown_unless_asked_for() -> None:
    with redirect_stderr(io.StringIO()):
        assert isinstance(choose_display(quiet=False, verbose=False), Silence)
        assert isinstance(choose_display(quiet=False, verbose=True), VerboseLog)


def test_a_run_is_one_line_that_is_removed_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_rag.cli.display.SHORTEST_INTERVAL_SECONDS", 0.0)
    screen = io.StringIO()
    with redirect_stderr(screen):
        line = ProgressLine()
        line(TurnStarted(run="r", turn=1, messages=()))
        line(CallSent(run="r", call=1, role="root", model="m"))
        line(
            ReplyReceived(
                run="r",
                call=1,
                text="",
                model="m",
                finish_reason="stop",
                usage=USAGE,
                seconds=1.0,
            )
        )
        line.close()
    assert "turn 1: asking the model" in screen.getvalue()
    assert "1,234 tokens, $0.0125" in screen.getvalue()
    assert "\n" not in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")


def test_children_are_counted_and_only_the_roots_turns_are_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rlm_rag.cli.display.SHORTEST_INTERVAL_SECONDS", 0.0)
    screen = io.StringIO()
    with redirect_stderr(screen):
        line = ProgressLine()
        line(TurnStarted(run="r", turn=2, messages=()))
        line(child_started("r.1"))
        line(TurnStarted(run="r.1", turn=7, messages=()))
        assert "turn 2: asking the model, 0 look-ups, 1 child" in screen.getvalue()
        screen.truncate(0)
        line(Answered(run="r.1", text="", stop_reason="answered"))
    assert "turn 2" in screen.getvalue()
    assert "child" not in screen.getvalue()


def child_started(run: str) -> RunStarted:
    return RunStarted(
        run=run,
        question="q",
        corpus={},
        model="m",
        sub_model="m",
        strategy="rlm",
        limits={},
        sandbox="none",
        version="0",
        prompts="p",
        worker="w",
        parent="r",
        depth=1,
    )


def test_a_closed_line_that_was_never_shown_writes_nothing() -> None:
    screen = io.StringIO()
    with redirect_stderr(screen):
        ProgressLine().close()
    assert screen.getvalue() == ""


def test_verbose_shows_blocks_and_what_came_out_without_control_codes() -> None:
    screen = io.StringIO()
    with redirect_stderr(screen):
        log = VerboseLog()
        log(BlockStarted(run="r", turn=1, block=1, code="print(1)\nprint(2)"))
        log(
            BlockOutput(
                run="r",
                block=1,
                stdout="1\n\x1b[2J2\n",
                stderr="",
                value=None,
                error="ValueError: x",
                seconds=0.5,
            )
        )
        log.close()
    shown = screen.getvalue()
    assert "   print(1)\n   print(2)\n" in shown
    assert "ValueError: x" in shown
    assert "\x1b" not in shown
    assert sys.stderr is not screen
