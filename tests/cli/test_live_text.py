"""A reply shown while it comes."""

from __future__ import annotations

import re
from contextlib import redirect_stderr

import pytest

from rlm_rag.cli import live_text
from rlm_rag.cli.display import choose_display
from rlm_rag.cli.verbose import VerboseLog
from rlm_rag.engine.live import ReplyText
from rlm_rag.trace.events import BlockStarted, Event

from .terminals import OUR_CODES, Terminal
from .test_display import replied, started

REPLY = "First I look.\n```repl\nx = 1\nprint(x)\n```\nand then"
ERASE = "\r\x1b[K"


@pytest.fixture(autouse=True)
def xterm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(live_text, "SHORTEST_INTERVAL_SECONDS", 0.0)


def shown(*told: Event | ReplyText) -> str:
    screen = Terminal()
    with redirect_stderr(screen):
        log = VerboseLog()
        for each in told:
            if isinstance(each, ReplyText):
                assert log.hear is not None
                log.hear(each)
            else:
                log(each)
        log.close()
    return screen.text


def pieces(text: str, *, run: str = "r", attempt: int = 1) -> list[ReplyText]:
    return [ReplyText(run, 1, attempt, text[at : at + 4]) for at in range(0, len(text), 4)]


def final(text: str) -> list[str]:
    """The lines that stay, without what was erased on the way."""
    return [line.rpartition(ERASE)[2] for line in OUR_CODES.sub("", text).split("\n")]


def test_lines_stay_and_the_last_one_grows() -> None:
    seen = shown(started("r"), *pieces("First I look.\nAnd"), replied())
    assert final(seen)[:2] == ["   First I look.", "   And"]
    assert f"{ERASE}   Firs{ERASE}   First I " in seen
    assert final(shown(started("r"), *pieces("broken of"))) == ["   broken of", ""]


def test_code_is_coloured_as_it_comes_and_not_shown_twice() -> None:
    block = BlockStarted(run="r", turn=1, block=1, code="x = 1\nprint(x)\n")
    seen = shown(started("r"), *pieces(REPLY), replied(), block)
    assert final(seen) == [
        *("   First I look.", "   ```repl", "   x = 1", "   print(x)", "   ```", "   and then"),
        *("   m: replied in 1.0 s", "-- block 1", ""),
    ]
    assert re.search(r"\x1b\[[0-9;]+mprint\x1b\[0m", seen)
    other = BlockStarted(run="r", turn=1, block=2, code="y = 2")
    assert final(shown(started("r"), *pieces(REPLY), other))[-2] == "   y = 2"


def test_a_reply_that_begins_again_is_said_and_children_are_not_shown() -> None:
    seen = shown(
        started("r"), *pieces("lost ha"), *pieces("kept\n", attempt=2), *pieces("child", run="r.1")
    )
    assert final(seen) == ["   lost ha", "   (the connection broke; again:)", "   kept", ""]


def test_what_a_model_writes_cannot_steer_the_terminal() -> None:
    seen = shown(started("r"), *pieces("\x1b[2J\x07\x9b\nnext \x1b]0;x"))
    assert "\x1b[2J" not in seen and "\x1b]" not in seen and "\x07" not in seen


def test_nothing_is_heard_where_nobody_could_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with redirect_stderr(Terminal()):
        assert choose_display(quiet=False, verbose=True).hear is not None
        assert choose_display(quiet=False, verbose=False).hear is None
        monkeypatch.setenv("TERM", "dumb")
        assert choose_display(quiet=False, verbose=True).hear is None
