"""A chat completion that comes in pieces (server-sent events), put together as it comes."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from rlm_rag.models.redact import without_keys

# Sent with a request; usage then comes with the last piece, as the provider counted it.
PARAMETERS = {"stream": True, "stream_options": {"include_usage": True}}
_DATA = b"data:"
_LAST = b"[DONE]"


class StreamedReply:
    """Takes the pieces of a stream, or its bytes however they are parted; tells the text.

    None of `keys` is told, nor a part of one that stands there whole.
    """

    def __init__(self, tell: Callable[[str], None], keys: Collection[str]) -> None:
        self._text = _Told(tell, keys)
        self._line = b""
        self._parts: list[str] = []
        self._refusal: list[str] = []
        self._finish_reason: str | None = None
        self._usage: Any = None
        self._model: Any = None
        self._error: Any = None
        self._is_over = False

    @property
    def is_empty(self) -> bool:
        """Whether neither text, nor a refusal, nor figures have come."""
        return not (self._parts or self._refusal or self._usage)

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            if line.startswith(_DATA):
                self._take(line[len(_DATA) :].strip())

    def whole(self) -> dict[str, Any] | None:
        """Return what came as a completion (or an error) that came at once would be.

        None where the stream broke off.
        """
        self.feed(b"\n")
        self._text.end()
        if self._error is not None:
            return {"error": self._error}
        if self._finish_reason is None and not self._is_over:
            return None
        message = {"content": "".join(self._parts), "refusal": "".join(self._refusal) or None}
        choice = {"message": message, "finish_reason": self._finish_reason}
        return {"choices": [choice], "usage": self._usage, "model": self._model}

    def _take(self, data: bytes) -> None:
        if data == _LAST:
            self._is_over = True
            return
        try:
            piece = json.loads(data)
        except (ValueError, RecursionError):
            # A torn piece: the stream then lacks its end, too.
            return
        if isinstance(piece, dict):
            self.take(piece)

    def take(self, piece: Mapping[str, Any]) -> None:
        """Take one piece that was read already."""
        self._error = piece.get("error") or self._error
        self._usage = piece.get("usage") or self._usage
        self._model = piece.get("model") or self._model
        choices = piece.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            self._choose(choices[0])

    def _choose(self, choice: dict[str, Any]) -> None:
        self._finish_reason = choice.get("finish_reason") or self._finish_reason
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return
        text, refusal = delta.get("content"), delta.get("refusal")
        if isinstance(refusal, str):
            self._refusal.append(refusal)
        if isinstance(text, str) and text:
            self._parts.append(text)
            self._text.piece(text)


class _Told:
    """Tells a text in pieces, in none of which, nor across two, one of the keys stands."""

    def __init__(self, tell: Callable[[str], None], keys: Collection[str]) -> None:
        self._tell = tell
        self._keys = keys
        self._held = ""

    def piece(self, text: str) -> None:
        text = without_keys(self._held + text, self._keys)
        kept = max((_overlap(text, key) for key in self._keys), default=0)
        self._held = text[len(text) - kept :]
        if len(text) > kept:
            self._tell(text[: len(text) - kept])

    def end(self) -> None:
        held, self._held = self._held, ""
        if held:
            self._tell(held)


def _overlap(text: str, key: str) -> int:
    """How many characters at the end of a text may be the beginning of a key."""
    longest = min(len(text), len(key) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(key[:n])), 0)
