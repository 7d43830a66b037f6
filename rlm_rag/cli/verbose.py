"""All of a run as it happens: every block, its output, every look-up and call."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from rlm_rag.cli import streams, terminal
from rlm_rag.cli.live_text import INDENT, LiveText
from rlm_rag.shown import printable, printable_line
from rlm_rag.trace.events import (
    BlockOutput,
    BlockStarted,
    Event,
    LimitReached,
    ReplyReceived,
    Retrieved,
    RunStarted,
    Served,
    TurnStarted,
)

if TYPE_CHECKING:
    from rlm_rag.engine.live import ReplyText


class VerboseLog:
    """Writes to standard error, with colours where that has some; from any thread.

    On a terminal that can rewrite a line, `hear` shows the root model's replies as they come;
    code that was shown so is not shown again when it runs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._has_colours = terminal.has_colours(sys.stderr)
        self._live = LiveText(lambda line: self._write(INDENT + line, "dim"), self._say_code)

    @property
    def hear(self) -> Callable[[ReplyText], None] | None:
        """What is told the replies of root models as they come; None where nobody could see."""
        return self._hear if terminal.obeys_codes(sys.stderr) else None

    def _hear(self, piece: ReplyText) -> None:
        with self._lock:
            self._live.take(piece)

    def __call__(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, RunStarted) and event.parent is None:
                self._live.follow(event.run)
            self._live.end()
            self._show(event)

    def paused(self) -> AbstractContextManager[None]:
        """Let somebody else speak to the terminal, which this never takes for itself."""
        return nullcontext()

    def close(self) -> None:
        """End the line of a reply that broke off."""
        with self._lock:
            self._live.end()

    def _show(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self._say(f"== turn {event.turn}", "bold")
            case BlockStarted():
                self._say(f"-- block {event.block}", "dim")
                if event.code.strip() not in self._live.shown:
                    self._say_code(printable(event.code))
            case BlockOutput():
                self._say(f"-- output of block {event.block} ({event.seconds:.2f} s)", "dim")
                for part in (event.stdout, event.stderr, event.value or ""):
                    self._say_text(part)
                self._say_text(event.error or "", "red")
            case Retrieved():
                arguments = ", ".join(f"{key}={value!r}" for key, value in event.arguments.items())
                self._say(f"{INDENT}{event.name}({arguments})", "dim")
            case ReplyReceived():
                said = event.error or f"replied in {event.seconds:.1f} s"
                self._say(f"{INDENT}{event.model}: {said}", "red" if event.error else "dim")
            case Served(name="advance_phase") if not event.error:
                self._say(f"== {event.result}", "bold")
            case LimitReached():
                self._say(f"== limit {event.name}: {event.detail}", "red")

    def _say(self, line: str, colour: str) -> None:
        """Write one line, whatever it holds."""
        self._write(printable_line(line), colour)

    def _say_text(self, text: str, colour: str = "") -> None:
        text = text.rstrip("\n")
        if text:
            for line in printable(text).split("\n"):
                self._write(INDENT + line, colour)

    def _say_code(self, code: str) -> None:
        shown = highlighted(code) if self._has_colours else code
        streams.to_stderr("".join(f"{INDENT}{line}\n" for line in shown.rstrip("\n").split("\n")))

    def _write(self, line: str, colour: str) -> None:
        coloured = self._has_colours and colour
        streams.to_stderr((terminal.coloured(line, colour) if coloured else line) + "\n")


def highlighted(code: str) -> str:
    """Return printable Python in colours, each line with its own codes and as long as it was."""
    from rich.console import Console
    from rich.syntax import Syntax

    screen = io.StringIO()
    console = Console(
        file=screen,
        force_terminal=True,
        color_system="standard",
        legacy_windows=False,
        highlight=False,
    )
    text = Syntax(code, "python", theme="ansi_dark", background_color="default").highlight(code)
    console.print(text, soft_wrap=True, end="")
    return screen.getvalue()
