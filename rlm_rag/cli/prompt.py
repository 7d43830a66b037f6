"""Lines that a person types, with a history and completion, or those of a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from rlm_rag.cli import streams

MAX_LINES = 1_000
MAX_COMPLETIONS = 50
FILE_MODE = 0o600
_DELIMITERS = " \t\n\"'`,;()"

Complete = Callable[[str, str], Sequence[str]]
"""Gives what a word may become, from the line up to it and its beginning."""


class Prompt:
    """Reads one line after the other; where a terminal is, `readline` edits and completes them."""

    def __init__(self, complete: Complete, *, history: Path | None) -> None:
        self.is_terminal = sys.stdin.isatty() and sys.stderr.isatty()
        self._complete = complete
        self._history = history
        self._found: Sequence[str] = ()
        if self.is_terminal:
            self._set_up()

    def read(self) -> str | None:
        """Return the next line without its end, None after the last one.

        Raises:
            KeyboardInterrupt: Ctrl-C at the prompt.
        """
        if not self.is_terminal:
            line = sys.stdin.readline()
            return line.rstrip("\r\n") if line else None
        try:
            if sys.stdout.isatty():
                return input("> ")
            # What is answered alone goes to a file; `input` would put its prompt there too.
            streams.note("> ", end="")
            line = sys.stdin.readline()
            return line.rstrip("\r\n") if line else None
        except EOFError:
            streams.note("")
            return None

    def close(self) -> None:
        """Keep the history, for its user alone; where that fails it is not kept."""
        if not self.is_terminal or self._history is None:
            return
        with suppress(ImportError, OSError):
            import readline

            self._history.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._history, os.O_CREAT | os.O_WRONLY, FILE_MODE))
            readline.set_history_length(MAX_LINES)
            readline.write_history_file(self._history)

    def _set_up(self) -> None:
        # Some systems have no readline; lines are then read as they come.
        with suppress(ImportError):
            import readline

            readline.set_completer_delims(_DELIMITERS)
            readline.set_completer(self._completion)
            readline.parse_and_bind("tab: complete")
            if self._history is not None:
                with suppress(OSError):
                    readline.read_history_file(self._history)

    def _completion(self, word: str, number: int) -> str | None:
        if number == 0:
            import readline

            before = readline.get_line_buffer()[: readline.get_begidx()]
            self._found = self._complete(before, word)[:MAX_COMPLETIONS]
        return self._found[number] if number < len(self._found) else None
