"""What is told of a run while it goes on."""

from __future__ import annotations

import time

from rlm_rag.engine.recorded import usage_of
from rlm_rag.models.base import Usage
from rlm_rag.trace.events import (
    BlockStarted,
    CallSent,
    Event,
    ReplyReceived,
    Retrieved,
    RunStarted,
    TurnStarted,
)

SHORTEST_INTERVAL_SECONDS = 0.25


class Progress:
    """Counts the events of a run; `steps` is their number, and only grows."""

    def __init__(self) -> None:
        self.steps = 0
        self._root = ""
        self._turn = 0
        self._doing = "starting"
        self._lookups = 0
        self._calls = 0
        self._usage = Usage()
        self._told_at = 0.0

    def count(self, event: Event) -> bool:
        """Take an event in; return whether it is time to tell of it."""
        self.steps += 1
        self._root = self._root or event.run
        match event:
            case RunStarted() if event.run != self._root:
                self._doing = "a child answers a part of it"
            case TurnStarted() if event.run == self._root:
                self._turn, self._doing = event.turn, "asking the model"
            case BlockStarted() if event.run == self._root:
                self._doing = "running code"
            case Retrieved():
                self._lookups += 1
            case CallSent():
                self._calls += 1
            case ReplyReceived():
                self._usage += usage_of(event.usage)
        now = time.monotonic()
        is_time = now - self._told_at >= SHORTEST_INTERVAL_SECONDS
        if is_time:
            self._told_at = now
        return is_time

    def message(self) -> str:
        """Return in one line what is going on, and what it came to so far."""
        tokens = self._usage.input_tokens + self._usage.output_tokens
        parts = [
            f"turn {self._turn}: {self._doing}",
            f"{self._lookups} look-ups",
            f"{self._calls} calls",
            f"{tokens:,} tokens",
        ]
        if self._usage.usd:
            parts.append(f"${self._usage.usd:.4f}")
        return ", ".join(parts)
