"""The times of a trace as seconds on one axis, without the pauses before a run was resumed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from rlm_rag.trace.events import Resumed
from rlm_rag.trace.reader import Record


@dataclass(frozen=True, slots=True)
class Axis:
    """What the axis spans, in seconds from 0.

    `pauses` are the places where a pause was cut out, each with its length.
    """

    seconds: float
    pauses: tuple[tuple[float, float], ...]


class Clock:
    """Tells the place of each record on the axis; records are given in their order.

    A time that is none, or is before the one before it, is taken as that one.
    """

    def __init__(self) -> None:
        self._zero: datetime | None = None
        self._last = 0.0
        self._cut = 0.0
        self._pauses: list[tuple[float, float]] = []

    def seconds(self, record: Record) -> float:
        """Return the record's place, in seconds from the first one."""
        now = self._elapsed(record.time)
        if isinstance(record.event, Resumed) and now - self._cut > self._last:
            pause = now - self._cut - self._last
            self._pauses.append((self._last, round(pause, 3)))
            self._cut += pause
        self._last = max(self._last, round(now - self._cut, 6))
        return self._last

    def axis(self) -> Axis:
        """Return the axis of the records given so far."""
        return Axis(self._last, tuple(self._pauses))

    def _elapsed(self, time: str) -> float:
        try:
            moment = datetime.fromisoformat(time)
        except ValueError:
            return self._last + self._cut
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        if self._zero is None:
            self._zero = moment
        return (moment - self._zero).total_seconds()
