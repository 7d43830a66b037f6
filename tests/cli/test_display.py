from __future__ import annotations

import io
import re
import sys
import time
from contextlib import redirect_stderr

import pytest

from rlm_rag.cli import display
from rlm_rag.cli.display import ProgressLine, Silence, VerboseLog, choose_display
from rlm_rag.trace.activity import Activity
from rlm_rag.trace.events import (
    Answered,
    BlockOutput,
    BlockStarted,
    CallSent,
    Delegated,
    Event,
    LimitReached,
    ReplyReceived,
    Retrieved,
    RunStarted,
    Served,
    TurnStarted,
)

USAGE = {"input_tokens": 1200, "output_tokens": 34, "usd": 0.0125}
ERASE = "\r\x1b[K"


def started(run: str, *, parent: str | None = None, **limits: float) -> RunStarted:
    return RunStarted(
        run=run,
        question="q",
        corpus={},
        model="m",
        sub_model="m",
        strategy="rlm",
        limits=limits,
        sandbox="none",
        version="0",
        prompts="p",
        worker="w",
        parent=parent,
        depth=0 if parent is None else 1,
    )


def replied(run: str = "r", call: int = 1, error: str | None = None) -> ReplyReceived:
    return ReplyReceived(
        run=run,
        call=call,
        text="",
        model="m",
        finish_reason="stop",
        usage=USAGE,
        seconds=1.0,
        error=error,
    )


def looked(name: str) -> Retrieved:
    return Retrieved(run="r", block=1, seq=1, name=name, arguments={}, result=[], seconds=0.0)


def line(*events: Event, columns: int = 200) -> str:
    activity = Activity()
    for event in events:
        activity.count(event)
    return activity.line(columns)


BUSY = (
    started("r", usd=0.5, tokens=9000, seconds=120),
    TurnStarted(run="r", turn=2, messages=()),
    BlockStarted(run="r", turn=2, block=1, code=""),
    looked("search"),
    looked("grep_context"),
    looked("read"),
    Delegated(run="r", path="a.py", first=1, last=2),
    Delegated(run="r", path="a.py", first=3, last=4),
    Delegated(run="r", path="b.py", first=1, last=2),
    CallSent(run="r", call=1, role="sub", model="m"),
    CallSent(run="r", call=2, role="sub", model="m"),
    CallSent(run="r", call=3, role="sub", model="m"),
    replied(call=1),
)


def test_off_a_terminal_nothing_is_shown_unless_asked_for() -> None:
    with redirect_stderr(io.StringIO()):
        assert isinstance(choose_display(quiet=False, verbose=False), Silence)
        assert isinstance(choose_display(quiet=False, verbose=True), VerboseLog)


def test_a_line_says_what_a_block_does_and_what_it_costs_against_the_limits() -> None:
    assert line(*BUSY) == (
        "turn 2: running code, 2 searches, 1 read, delegated 2 files, 2 calls in flight, "
        "1,234 of 9,000 tokens, $0.0125 of $0.5, 0 of 120 s"
    )


def test_calls_that_wait_for_their_turn_are_not_in_flight() -> None:
    sent = [CallSent(run="r", call=n, role="sub", model="m") for n in range(9)]
    assert "2 calls in flight" in line(started("r", concurrency=2), *sent)


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (55, "turn 2: running code, $0.0125 of $0.5, 0 of 120 s"),
        (40, "turn 2: running code, 0 of 120 s"),
        (12, "turn 2: running code, 0 of 120 s"),
    ],
)
def test_what_matters_least_goes_first_where_the_line_is_short(columns: int, shown: str) -> None:
    assert line(*BUSY, columns=columns) == shown


def test_a_new_turn_is_counted_anew_and_money_is_not() -> None:
    assert line(*BUSY, TurnStarted(run="r", turn=3, messages=())).startswith(
        "turn 3: asking the model, 2 calls in flight, 1,234 of 9,000 tokens"
    )


def test_a_price_that_is_not_known_is_said() -> None:
    unknown = ReplyReceived(
        run="r",
        call=1,
        text="",
        model="m",
        finish_reason="stop",
        usage={"input_tokens": 5, "usd": None},
        seconds=0,
    )
    assert "5 tokens, price unknown" in line(started("r"), unknown)


def test_children_are_counted_and_only_the_roots_turns_are_followed() -> None:
    root = (started("r"), TurnStarted(run="r", turn=2, messages=()))
    child = (started("r.1", parent="r"), TurnStarted(run="r.1", turn=7, messages=()))
    assert line(*root, *child).startswith("turn 2: asking the model, 1 child")
    over = Answered(run="r.1", text="", stop_reason="answered")
    assert "child" not in line(*root, *child, over)


def test_the_next_question_of_a_conversation_begins_at_nothing() -> None:
    assert line(*BUSY, started("s")) == "starting, 0 s"


def test_a_phase_of_the_model_is_shown_and_cannot_end_the_line() -> None:
    phase = Served(run="r", block=1, seq=1, name="advance_phase", asked="", result="a\nb\x1b")
    shown = line(started("r"), TurnStarted(run="r", turn=1, messages=()), phase)
    assert shown.startswith("turn 1 (a\\x0ab\\x1b): ")


def test_a_line_is_removed_in_the_end_and_its_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "SHORTEST_INTERVAL_SECONDS", 0.0)
    monkeypatch.setattr(display, "TICK_SECONDS", 0.01)
    screen = io.StringIO()
    with redirect_stderr(screen):
        shown = ProgressLine()
        shown(TurnStarted(run="r", turn=1, messages=()))
        until = time.monotonic() + 10
        while screen.getvalue().count(ERASE) < 4 and time.monotonic() < until:
            time.sleep(0.005)
        shown.close()
        closed = screen.getvalue()
        shown.close()
        time.sleep(0.05)
    assert closed.startswith(f"{ERASE}turn 1: asking the model, 0 s{ERASE}turn 1")
    assert closed.endswith(ERASE)
    assert "\n" not in closed
    assert screen.getvalue() == closed


def test_a_paused_line_counts_and_writes_nothing() -> None:
    screen = io.StringIO()
    with redirect_stderr(screen):
        shown = ProgressLine()
        with shown.paused():
            shown(TurnStarted(run="r", turn=1, messages=()))
        assert screen.getvalue() == ""
        shown(BlockStarted(run="r", turn=1, block=1, code=""))
        shown.close()
    assert "turn 1: running code" in screen.getvalue()


def test_a_closed_line_that_was_never_shown_writes_nothing() -> None:
    screen = io.StringIO()
    with redirect_stderr(screen):
        ProgressLine().close()
    assert screen.getvalue() == ""


def verbose(*events: Event) -> str:
    screen = io.StringIO()
    with redirect_stderr(screen):
        log = VerboseLog()
        for event in events:
            log(event)
        log.close()
    assert sys.stderr is not screen
    return screen.getvalue()


ALL = (
    TurnStarted(run="r", turn=1, messages=()),
    BlockStarted(run="r", turn=1, block=1, code="print(1)\nprint('\x1b[2J')"),
    looked("search"),
    replied(error="no\nwindow"),
    BlockOutput(
        run="r",
        block=1,
        stdout="1\n\x1b[2J2\n",
        stderr="",
        value=None,
        error="ValueError: x",
        seconds=0.5,
    ),
    LimitReached(run="r", name="budget_usd", detail="spent"),
)


def test_verbose_shows_blocks_and_what_came_out_without_control_codes() -> None:
    assert verbose(*ALL) == (
        "== turn 1\n"
        "-- block 1\n   print(1)\n   print('\\x1b[2J')\n"
        "   search()\n"
        "   m: no\\x0awindow\n"
        "-- output of block 1 (0.50 s)\n   1\n   \\x1b[2J2\n   ValueError: x\n"
        "== limit budget_usd: spent\n"
    )


def test_verbose_colours_code_and_adds_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = verbose(*ALL)
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = verbose(*ALL)
    assert re.search(r"\x1b\[[0-9;]+mprint\x1b\[0m", coloured)
    assert "\x1b[31m   ValueError: x\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
