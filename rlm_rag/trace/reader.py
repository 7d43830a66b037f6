"""Read a trace file back into typed events."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from rlm_rag.errors import TraceError
from rlm_rag.trace.events import (
    EVENT_TYPES,
    SCHEMA_VERSION,
    Answered,
    Event,
    Resumed,
    RunStarted,
)
from rlm_rag.trace.locks import is_locked
from rlm_rag.trace.repeats import unfold

Found = TypeVar("Found", bound=Event)

_HINTS = {name: get_type_hints(kind) for name, kind in EVENT_TYPES.items()}


@dataclass(frozen=True, slots=True)
class Record:
    """One event as it was written: its line in the file (from 1), and when, in ISO UTC."""

    line: int
    time: str
    event: Event


@dataclass(frozen=True, slots=True)
class Trace:
    """A run's events in order. `torn` says that the last line was cut off and left out.

    `goes_on` says that there was no end yet when it was read, and somebody still wrote to it.
    """

    path: Path
    records: tuple[Record, ...]
    torn: bool = False
    goes_on: bool = False

    @property
    def tear(self) -> str | None:
        """Where the file was cut off, in a sentence; None where it is whole, or written to."""
        if not self.torn or self.goes_on:
            return None
        line = len(self.records) + 1
        return f"The trace is torn at line {line}, its last: the run was cut off while writing it."

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(record.event for record in self.records)

    def of_type(self, kind: type[Found]) -> tuple[Found, ...]:
        """The events of one type, in order."""
        return tuple(record.event for record in self.records if isinstance(record.event, kind))

    @property
    def root(self) -> RunStarted | None:
        """The start of the root's run, None where the trace ended before it."""
        return next(iter(self.of_type(RunStarted)), None)

    @property
    def answer(self) -> Answered | None:
        """What the root's run ended with last, None where it has no end yet."""
        root = self.root
        ends = [end for end in self.of_type(Answered) if root is not None and end.run == root.run]
        return ends[-1] if ends else None

    @property
    def ended(self) -> bool:
        """Whether the root has answered, and was not taken up again since."""
        answer = self.answer
        ended = False
        for event in self.events:
            if isinstance(event, Resumed):
                ended = False
            elif event is answer:
                ended = True
        return ended


def read_trace(path: Path) -> Trace:
    """Read a whole trace; a torn last line is left out and told.

    Raises:
        TraceError: the file cannot be read, or is damaged elsewhere; it names the line.
    """
    records: list[Record] = []
    torn = False
    for number, line, last in _lines(path):
        try:
            record = record_of(line)
            if record.line != number:
                raise ValueError(f"it was written as line {record.line}")
        except _NewerTraceError as error:
            raise TraceError(f"{path}: {error}", hint="update rlm-rag to read it") from error
        except (ValueError, RecursionError) as error:
            if last and not line.endswith(b"\n"):
                torn = True
                break
            raise TraceError(
                f"{path} is damaged at line {number}: {error}",
                hint="the lines before it are whole; a copy cut there can be read",
            ) from error
        records.append(record)
    trace = Trace(path, tuple(records), torn)
    # A file is locked before its first line is written.
    return trace if trace.ended or not records else replace(trace, goes_on=is_locked(path))


class _NewerTraceError(ValueError):
    pass


def _lines(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """The file's lines from 1, and whether each is the last."""
    try:
        with path.open("rb") as file:
            number = 0
            held = file.readline()
            while held:
                number += 1
                following = file.readline()
                yield number, held, not following
                held = following
    except OSError as error:
        raise TraceError(
            f"the trace {path} cannot be read: {error.strerror or error}",
            hint="see: rlm-rag trace list",
        ) from error


def record_of(line: bytes) -> Record:
    """Return what a line of a trace holds.

    Raises:
        ValueError, RecursionError: it is damaged, or of a newer version.
    """
    entry = json.loads(line)
    if not isinstance(entry, dict):
        raise ValueError("it is not an object")
    version = entry.get("schema_version")
    if not isinstance(version, int) or version < 1:
        raise ValueError("it has no schema_version")
    if version > SCHEMA_VERSION:
        raise _NewerTraceError(f"it was written by a newer version (schema {version})")
    number, time = entry.get("line"), entry.get("time")
    if not isinstance(number, int) or not isinstance(time, str):
        raise ValueError("it has no number or no time")
    kind = EVENT_TYPES.get(str(entry.get("type")))
    if kind is None:
        raise ValueError(f"its type {str(entry.get('type'))[:40]!r} is not known")
    unfold(entry)
    return Record(number, time, _event(kind, entry))


def _event(kind: type[Event], entry: Mapping[str, Any]) -> Event:
    values: dict[str, Any] = {}
    hints = _HINTS[kind.type]
    for item in fields(kind):
        if item.name in entry:
            value = entry[item.name]
            if not _fits(value, hints[item.name]):
                raise ValueError(f"its {item.name} has the wrong type")
            values[item.name] = value
        elif item.default is MISSING and item.default_factory is MISSING:
            raise ValueError(f"its {item.name} is missing")
    return kind(**values)


def _fits(value: object, hint: Any) -> bool:
    """Whether a JSON value is of the type that an event's field names."""
    origin = get_origin(hint) or hint
    if hint is Any:
        return True
    if origin is UnionType:
        return any(_fits(value, option) for option in get_args(hint))
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and _finite(value)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is type(None):
        return value is None
    if origin is Mapping:
        inner = get_args(hint)[1]
        return isinstance(value, dict) and all(_fits(item, inner) for item in value.values())
    if origin is Sequence:
        (inner,) = get_args(hint)
        return isinstance(value, list) and all(_fits(item, inner) for item in value)
    return isinstance(value, hint)


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
