"""A model's reply on a terminal while it is written: line by line, the last one as it grows."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from rlm_rag.cli import streams, terminal
from rlm_rag.cli.progress import ERASE_LINE
from rlm_rag.shown import printable_line

if TYPE_CHECKING:
    from rlm_rag.engine.live import ReplyText

INDENT = "   "
SHORTEST_INTERVAL_SECONDS = 0.1
_FENCE = re.compile(r"\s*(?:```|~~~)")


class LiveText:
    """Shows the replies of the root of a run; whole lines go to `write`, Python to `write_code`."""

    def __init__(self, write: Callable[[str], None], write_code: Callable[[str], None]) -> None:
        self._write = write
        self._write_code = write_code
        self._root = ""
        self._place: tuple[int, int] | None = None
        self._line = ""
        self._is_code = False
        self._grown_at = 0.0
        self._shown = ""

    @property
    def shown(self) -> str:
        """The last reply as far as it was shown."""
        return self._shown

    def follow(self, root: str) -> None:
        """Show the replies of this run alone, until it is another's turn."""
        self._root = root

    def take(self, piece: ReplyText) -> None:
        """Show the next piece of a reply."""
        if piece.run != self._root:
            return
        if self._place != (piece.call, piece.attempt):
            self._begin(piece)
        self._shown += piece.text
        *lines, self._line = (self._line + piece.text).split("\n")
        for line in lines:
            self._show(line)
        self._grow()

    def end(self) -> None:
        """Show what there is of the last line, so that something else can follow."""
        if self._line:
            line, self._line = self._line, ""
            self._show(line)

    def _begin(self, piece: ReplyText) -> None:
        self.end()
        if self._place is not None and piece.attempt > 1 and self._shown:
            self._write("(the connection broke; again:)")
        self._place = (piece.call, piece.attempt)
        self._is_code = False
        self._shown = ""

    def _show(self, line: str) -> None:
        streams.to_stderr(ERASE_LINE)
        shown = printable_line(line.rstrip("\r"))
        if _FENCE.match(line):
            self._is_code = not self._is_code
            self._write(shown)
        elif self._is_code:
            self._write_code(shown)
        else:
            self._write(shown)

    def _grow(self) -> None:
        now = time.monotonic()
        if self._line and now - self._grown_at >= SHORTEST_INTERVAL_SECONDS:
            self._grown_at = now
            room = terminal.columns(sys.stderr) - 1
            grown = f"{INDENT}{printable_line(self._line)}"
            streams.to_stderr(ERASE_LINE + terminal.fits_width(grown, room))
