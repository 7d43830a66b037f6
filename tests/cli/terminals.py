"""Streams that stand for a terminal."""

from __future__ import annotations

import io
import re

OUR_CODES = re.compile(r"\x1b(?:\[[0-9;]*m|\]8;[^\x1b]*\x1b\\)")


class Terminal(io.TextIOWrapper):
    """A terminal of any encoding, with what was written to it."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding, errors="backslashreplace", newline="\n")

    def isatty(self) -> bool:
        return True

    @property
    def text(self) -> str:
        self.flush()
        return self.bytes.getvalue().decode(self.encoding)
