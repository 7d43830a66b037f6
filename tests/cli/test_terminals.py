"""Every command in a pipe, and on terminals: narrow, old, without colour, without UTF-8."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from rlm_rag.cli import doctor, examinations
from rlm_rag.cli.commands import COMMANDS
from rlm_rag.cli.main import main

from .terminals import OUR_CODES, Terminal

# What stands for each command; `mcp` alone serves for as long as somebody speaks to it.
LINES: dict[str, Sequence[str]] = {
    "ask": ("ask", "SOURCE", "Что такое größe?", "--no-trace"),
    "chat": ("chat", "SOURCE", "--no-trace"),
    "search": ("search", "SOURCE", "größe"),
    "grep": ("grep", "SOURCE", "def"),
    "outline": ("outline", "SOURCE"),
    "symbols": ("symbols", "SOURCE", "größe"),
    "read": ("read", "SOURCE", "größe.py"),
    "repo-map": ("repo-map", "SOURCE"),
    "pack": ("pack", "SOURCE", "--list"),
    "index": ("index", "SOURCE"),
    "map": ("map", "SOURCE", "Что это?"),
    "eval": ("eval", "list"),
    "trace": ("trace", "list"),
    "completion": ("completion", "zsh"),
    "config": ("config",),
    "doctor": ("doctor",),
}
DEEP = pytest.mark.deep
OLD = "no colour, cp437"
PLACES = {
    "a pipe": (None, {}),
    "forty columns": ("utf-8", {"COLUMNS": "40"}),
    OLD: ("cp437", {"COLUMNS": "40", "NO_COLOR": "1"}),
    "a dumb terminal of ASCII": ("ascii", {"COLUMNS": "40", "TERM": "dumb"}),
}


def test_no_command_is_left_out() -> None:
    assert set(COMMANDS) - set(LINES) == {"mcp"}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose names and texts are of no single old encoding."""
    folder = tmp_path_factory.mktemp("source")
    (folder / "größe.py").write_text("def größe():\n    return '中文 \x1b[31m размер'\n", "utf-8")
    (folder / "читай.md").write_text("# Что такое größe\n\nЭто — размер.\n", "utf-8")
    return folder


def pairs() -> list[ParameterSet]:
    """Each command in each place; those that differ least from others take their time."""
    quick = ("trace", "config", "completion", "doctor")
    likely = (*quick, "ask", "search", "map", "pack", "eval")
    return [
        pytest.param(
            command,
            place,
            marks=() if command in (likely if place == OLD else quick) else DEEP,
        )
        for place in PLACES
        for command in LINES
    ]


@pytest.mark.parametrize(("command", "place"), pairs())
def test_a_command_works_there(
    command: str, place: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoding, variables = PLACES[place]
    monkeypatch.chdir(tmp_path)
    quick = (examinations._python, examinations._keys)
    monkeypatch.setattr(doctor, "EXAMINATIONS", quick)
    for name, value in {"TERM": "xterm", "XDG_STATE_HOME": str(tmp_path), **variables}.items():
        monkeypatch.setenv(name, value)
    out, err = (Terminal(encoding or "utf-8") for _ in range(2))
    if encoding is None:
        monkeypatch.setattr(Terminal, "isatty", lambda _self: False)
    monkeypatch.setattr(sys, "stdin", io.StringIO("Что такое größe?\n"))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    words = [str(source) if word == "SOURCE" else word for word in LINES[command]]
    assert main(words) == 0, err.text
    shown = out.text
    assert (shown + err.text).strip()
    if place == "a pipe":
        # Lines of a source go through a pipe as they are.
        shown = "" if command in ("search", "grep", "read") else shown
        assert "\x1b" not in shown + err.text
    elif variables.get("TERM") == "dumb":
        assert "\x1b" not in shown + err.text
    else:
        left = OUR_CODES.sub("", shown + re.sub(r"\r\x1b\[K", "", err.text))
        assert "\x1b" not in left
        assert "\x1b[3" not in shown or "NO_COLOR" not in variables


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_forty_columns_but_for_examples_and_choices(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert main([*([command] if command else []), "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    long = [line for line in lines if len(line) > 40]
    assert all(line.startswith("    ") or "|" in line for line in long), long
