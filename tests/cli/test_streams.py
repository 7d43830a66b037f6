from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import pytest

from rlm_rag.cli import streams


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


@contextmanager
def on(stream: io.StringIO) -> Iterator[None]:
    # pytest swaps the streams between a fixture and its test, so this is no fixture.
    with redirect_stdout(stream), redirect_stderr(stream):
        yield


def test_control_codes_reach_a_pipe_and_not_a_terminal(terminal: Terminal) -> None:
    with on(terminal):
        streams.result("red \x1b[31mtext")
    assert "\x1b" not in terminal.getvalue()
    pipe = io.StringIO()
    with on(pipe):
        streams.result("red \x1b[31mtext")
    assert pipe.getvalue() == "red \x1b[31mtext\n"


def test_diagnostics_never_hold_control_codes(capsys: pytest.CaptureFixture[str]) -> None:
    streams.note("bad\x1b]0;title\x07")
    assert "\x1b" not in capsys.readouterr().err


def test_a_heading_is_bold_on_a_terminal_unless_no_color(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on(terminal):
        streams.heading("a", "b")
        assert terminal.getvalue() == "\x1b[1ma\x1b[0mb\n"
        monkeypatch.setenv("NO_COLOR", "1")
        streams.heading("c")
    assert terminal.getvalue().endswith("\nc\n")


def test_json_is_ascii_and_objects_carry_the_schema_version(
    capsys: pytest.CaptureFixture[str],
) -> None:
    streams.result_json({"text": "é\ud800"})
    shown = capsys.readouterr().out
    assert shown.isascii()
    assert json.loads(shown) == {"schema_version": 1, "text": "é\\ud800"}
    streams.result_json([1])
    assert json.loads(capsys.readouterr().out) == [1]


def test_a_reader_that_left_is_told_from_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Gone())
    with pytest.raises(streams.ReaderLeft):
        streams.result("x")


def test_nobody_reading_the_diagnostics_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Gone())
    streams.note("x")
    streams.note("y")
    sys.stderr.close()


def test_progress_needs_a_terminal_that_can_rewrite_a_line(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on(terminal):
        assert streams.shows_progress()
        monkeypatch.setenv("TERM", "dumb")
        assert not streams.shows_progress()
    monkeypatch.setenv("TERM", "xterm")
    with on(io.StringIO()):
        assert not streams.shows_progress()
