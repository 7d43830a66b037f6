"""What a run is doing, counted from its events, in a line of as many columns as there are."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rlm_rag.counts import counted
from rlm_rag.shown import printable_line
from rlm_rag.trace.events import (
    MAP_STRATEGY,
    Answered,
    BlockStarted,
    CallSent,
    Compacted,
    Delegated,
    Event,
    ReplyReceived,
    Retrieved,
    RunStarted,
    Served,
    TurnStarted,
)

_SEARCHES = ("search", "grep_context", "symbols")


class _Part(NamedTuple):
    """`rank` says what goes first where the line is short: the highest; 0 stays."""

    text: str
    rank: int


class Activity:
    """Follows the root of a run; a conversation's next question begins it anew.

    Events may come from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin("", {})

    def _begin(self, root: str, limits: Mapping[str, Any]) -> None:
        self._started = time.monotonic()
        self._root = root
        self._limits = limits
        self._phase = ""
        self._doing = "starting"
        self._turn = 0
        self._children = 0
        self._in_flight = 0
        self._tokens = 0
        self._usd: float | None = 0.0
        self._begin_turn()

    def _begin_turn(self) -> None:
        self._searches = 0
        self._reads = 0
        self._asked = 0
        self._delegated: set[str] = set()

    def count(self, event: Event) -> None:
        """Take one event into account."""
        with self._lock:
            # The root is the first to be heard of.
            is_root = event.run == (self._root or event.run)
            if isinstance(event, RunStarted) and event.parent is None and not is_root:
                self._begin(event.run, event.limits)
                return
            self._root = self._root or event.run
            if is_root:
                self._follow(event)
            self._add(event)

    def _follow(self, event: Event) -> None:
        """Take into account what only the root's events say."""
        match event:
            case RunStarted():
                self._limits = event.limits
                if event.strategy == MAP_STRATEGY:
                    self._doing = f"mapping {counted(event.corpus['documents'], 'document')}"
            case TurnStarted():
                self._turn, self._doing = event.turn, "asking the model"
                self._begin_turn()
            case Compacted():
                self._doing = "asking the model, after summing up"
            case BlockStarted():
                self._doing = "running code"
            case Served(name="advance_phase") if not event.error:
                self._phase = f" ({printable_line(str(event.result))})"

    def _add(self, event: Event) -> None:
        match event:
            case RunStarted() if event.run != self._root:
                self._children += 1
            case Answered() if event.run != self._root:
                self._children -= 1
            case Retrieved(name=name) if name in _SEARCHES:
                self._searches += 1
            case Retrieved():
                self._reads += 1
            case Delegated():
                self._delegated.add(event.path)
            case CallSent():
                self._in_flight += 1
                self._asked += event.role == "sub"
            case ReplyReceived():
                self._in_flight = max(0, self._in_flight - 1)
                self._spend(event.usage)

    def _spend(self, usage: Mapping[str, Any]) -> None:
        self._tokens += int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0)
        usd = usage.get("usd")
        self._usd = None if self._usd is None or usd is None else self._usd + usd

    def line(self, columns: int | None = None) -> str:
        """Return what there is to say now, what matters least left out to fit so many columns.

        Longer where not even what it is doing fits. Beside a limit in tokens, money or seconds
        stands what it is.
        """
        with self._lock:
            parts = self._parts()
        for rank in range(max(part.rank for part in parts), -1, -1):
            shown = ", ".join(part.text for part in parts if part.rank <= rank)
            if columns is None or len(shown) <= columns:
                break
        return shown

    def _parts(self) -> Sequence[_Part]:
        turn = f"turn {self._turn}{self._phase}: " if self._turn else ""
        parts = [_Part(f"{turn}{self._doing}", 0)]
        if self._searches:
            parts.append(_Part(counted(self._searches, "search", "searches"), 2))
        if self._reads:
            parts.append(_Part(counted(self._reads, "read"), 2))
        if self._delegated:
            parts.append(_Part(f"delegated {counted(len(self._delegated), 'file')}", 2))
        elif self._asked:
            parts.append(_Part(counted(self._asked, "sub-call"), 2))
        if self._children:
            parts.append(_Part(counted(self._children, "child", "children"), 3))
        # More than may be sent at a time are waiting for their turn.
        in_flight = min(self._in_flight, self._limits.get("concurrency") or self._in_flight)
        if in_flight > 1:
            parts.append(_Part(f"{counted(in_flight, 'call')} in flight", 3))
        if self._tokens:
            parts.append(_Part(self._tokens_said(), 4))
        if self._usd is None or self._usd or self._limits.get("usd") is not None:
            parts.append(_Part(self._money_said(), 1))
        parts.append(_Part(self._time_said(), 0))
        return parts

    def _tokens_said(self) -> str:
        limit = self._limits.get("tokens")
        return f"{self._tokens:,}{'' if limit is None else f' of {limit:,}'} tokens"

    def _money_said(self) -> str:
        if self._usd is None:
            return "price unknown"
        limit = self._limits.get("usd")
        return f"${self._usd:.4f}{'' if limit is None else f' of ${limit:g}'}"

    def _time_said(self) -> str:
        limit = self._limits.get("seconds")
        seconds = time.monotonic() - self._started
        return f"{seconds:.0f}{'' if limit is None else f' of {limit:g}'} s"
