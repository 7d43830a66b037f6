"""What a run looks like while it runs: one calm line, or every block with `--verbose`."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from rlm_rag.cli import streams
from rlm_rag.cli.progress import ERASE_LINE
from rlm_rag.trace.events import (
    Answered,
    BlockOutput,
    BlockStarted,
    CallSent,
    Event,
    LimitReached,
    ReplyReceived,
    Retrieved,
    RunStarted,
    Served,
    TurnStarted,
)
from rlm_rag.trace.sanitize import printable_line

SHORTEST_INTERVAL_SECONDS = 0.1


class ProgressLine:
    """Counts a run's events into one line of standard error, rewritten in place.

    Events may come from any thread. `close` removes the line.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_paused = False
        self._begin("")

    def _begin(self, root: str) -> None:
        self._started = time.monotonic()
        self._shown_at = 0.0
        self._root = root
        self._phase = ""
        self._children = 0
        self._turn = 0
        self._lookups = 0
        self._in_flight = 0
        self._tokens = 0
        self._usd: float | None = 0.0
        self._doing = "starting"

    def __call__(self, event: Event) -> None:
        with self._lock:
            self._count(event)
            now = time.monotonic()
            if not self._is_paused and now - self._shown_at >= SHORTEST_INTERVAL_SECONDS:
                self._shown_at = now
                streams.to_stderr(ERASE_LINE + self._line(now)[: _columns() - 1])

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to somebody else; what happens is counted."""
        self.close()
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False

    def close(self) -> None:
        with self._lock:
            if self._shown_at:
                streams.to_stderr(ERASE_LINE)

    def _count(self, event: Event) -> None:
        # The root is the first to be heard of; its turns are the ones to follow.
        self._root = self._root or event.run
        if isinstance(event, RunStarted) and event.parent is None and event.run != self._root:
            # The next question of a conversation.
            self._begin(event.run)
        match event:
            case RunStarted() if event.run != self._root:
                self._children += 1
            case Answered() if event.run != self._root:
                self._children -= 1
            case TurnStarted() if event.run == self._root:
                self._turn = event.turn
                self._doing = "asking the model"
            case BlockStarted() if event.run == self._root:
                self._doing = "running code"
            case Served(name="advance_phase") if event.run == self._root and not event.error:
                self._phase = f" ({printable_line(str(event.result))})"
            case Retrieved():
                self._lookups += 1
            case CallSent():
                self._in_flight += 1
            case ReplyReceived():
                self._in_flight = max(0, self._in_flight - 1)
                self._spend(event.usage)

    def _spend(self, usage: Mapping[str, Any]) -> None:
        self._tokens += int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0)
        usd = usage.get("usd")
        self._usd = None if self._usd is None or usd is None else self._usd + usd

    def _line(self, now: float) -> str:
        parts = [f"turn {self._turn}{self._phase}: {self._doing}", f"{self._lookups} look-ups"]
        if self._children:
            parts.append("1 child" if self._children == 1 else f"{self._children} children")
        if self._in_flight > 1:
            parts.append(f"{self._in_flight} calls in flight")
        if self._tokens:
            parts.append(f"{self._tokens:,} tokens")
        if self._usd:
            parts.append(f"${self._usd:.4f}")
        parts.append(f"{now - self._started:.0f} s")
        return ", ".join(parts)


class VerboseLog:
    """Writes each block with its output, and each call, to standard error."""

    def __call__(self, event: Event) -> None:
        for line in _verbose_lines(event):
            streams.note(line)

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        pass


class Silence:
    def __call__(self, event: Event) -> None:
        pass

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        pass


Display = ProgressLine | VerboseLog | Silence


def choose_display(*, quiet: bool, verbose: bool) -> Display:
    """Return what shows a run: nothing off a terminal, unless `verbose` asks for everything."""
    if verbose:
        return VerboseLog()
    if quiet or not streams.shows_progress():
        return Silence()
    return ProgressLine()


def _verbose_lines(event: Event) -> list[str]:
    match event:
        case TurnStarted():
            return [f"== turn {event.turn}"]
        case BlockStarted():
            return [f"-- block {event.block}", _indented(event.code)]
        case BlockOutput():
            shown = [event.stdout, event.stderr, event.value or "", event.error or ""]
            text = "\n".join(part.rstrip("\n") for part in shown if part)
            return [f"-- output of block {event.block} ({event.seconds:.2f} s)", _indented(text)]
        case Retrieved():
            arguments = ", ".join(f"{key}={value!r}" for key, value in event.arguments.items())
            return [f"   {event.name}({arguments})"]
        case ReplyReceived():
            return [f"   {event.model}: {event.error or f'replied in {event.seconds:.1f} s'}"]
        case Served(name="advance_phase") if not event.error:
            return [f"== {event.result}"]
        case LimitReached():
            return [f"== limit {event.name}: {event.detail}"]
    return []


def _indented(text: str) -> str:
    return "\n".join("   " + line for line in text.split("\n"))


def _columns() -> int:
    return max(20, shutil.get_terminal_size().columns)
