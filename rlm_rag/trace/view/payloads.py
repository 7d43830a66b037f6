"""The texts of a page in blocks of JSON, so that a browser parses only those it shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlm_rag.pages.document import json_text

CHUNK_CHARS = 1 << 18


class Payloads:
    """Numbers values from 0; a string that comes again keeps its number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._chunks: list[list[str]] = []
        self._starts: list[int] = []
        self._chars = 0
        self._count = 0

    @property
    def starts(self) -> list[int]:
        """The number of the first value of each chunk."""
        return self._starts

    def put(self, value: Any) -> int:
        """Keep a value of JSON; return its number."""
        if isinstance(value, str):
            known = self._numbers.setdefault(value, self._count)
            if known != self._count:
                return known
        text = json_text(value)
        if not self._chunks or self._chars + len(text) > CHUNK_CHARS:
            self._chunks.append([])
            self._starts.append(self._count)
            self._chars = 0
        self._chunks[-1].append(text)
        self._chars += len(text)
        self._count += 1
        return self._count - 1

    def chunks(self) -> Iterator[str]:
        """Yield each chunk as the text of a JSON list."""
        for chunk in self._chunks:
            yield f"[{','.join(chunk)}]"
