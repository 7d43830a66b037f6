"""Write a run's events to its trace file as they happen."""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rlm_rag.closing import Closing
from rlm_rag.errors import TraceError
from rlm_rag.trace.events import SCHEMA_VERSION, Answered, Event, ReplyReceived
from rlm_rag.trace.locks import lock
from rlm_rag.trace.repeats import fold
from rlm_rag.trace.syncing import BackgroundSync

# More than any run that means well; a block that calls without end shall not fill the disk.
MAX_BYTES = 1 << 30
FOLDER_MODE = 0o700
FILE_MODE = 0o600
_WRITING = os.O_WRONLY | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class Recorder(Closing):
    """Appends events to a new file, one line of ASCII JSON each; safe to call from any thread.

    An event is in the file when `record` returns, so that it outlives a killed process; each
    reply is on the disk soon after, the answer and all before it when `close` returns. A disk
    that is full, or fails, ends the recording and not the run: `failure` then says why, and
    the file holds whole lines; so does one that would grow past `MAX_BYTES`. A file that got no
    event is removed at `close`. With `path` None nothing is written; with `failure` neither, for
    a reason found earlier. `listener` is called with each event after it was written, also where
    recording has failed. An event of which `known` says that it was recorded before is not
    recorded again.

    With `after` it goes on with a file that has so many whole lines; a torn last one is cut off
    before the first event is written. No other recorder can write to a file that is open here.

    Raises:
        TraceError: the file exists already; with `after`, it cannot be written, is being written
            to, or has more lines.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        listener: Callable[[Event], None] | None = None,
        failure: str | None = None,
        known: Callable[[Event], bool] | None = None,
        after: int | None = None,
    ) -> None:
        self._path = path
        self._known = known
        self._listener = listener
        self._lock = threading.Lock()
        self._lines = 0
        self._size = 0
        self._failure = failure
        self._fd: int | None = None
        # What follows the last whole line of a file that is written on.
        self._torn = False
        self._sync: BackgroundSync | None = None
        if path is not None and after is not None:
            self._reopen(path, after)
        elif path is not None:
            self._open(path)

    @property
    def path(self) -> Path | None:
        """The trace file, None where there is none, or nothing is in it yet."""
        return self._path if self._lines else None

    @property
    def failure(self) -> str | None:
        """Why recording ended early, None while all is well."""
        return self._failure

    def record(self, event: Event) -> None:
        """Write one event.

        Raises:
            TypeError: a field of the event is not JSON; nothing was written.
        """
        if self._known is not None and self._known(event):
            return
        with self._lock:
            if self._fd is not None:
                self._write(self._fd, event)
        if self._listener is not None:
            self._listener(event)

    def close(self) -> None:
        """Close the file; idempotent. Later events are not written."""
        with self._lock:
            self._release()

    def _open(self, path: Path) -> None:
        flags = os.O_CREAT | os.O_EXCL | _WRITING
        try:
            path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        except OSError as error:
            self._fail("cannot be written", error)
            return
        try:
            self._fd = os.open(path, flags, FILE_MODE)
            self._sync = BackgroundSync(self._fd)
            lock(self._fd)
        except FileExistsError as error:
            raise TraceError(
                f"the trace {path} exists already", hint="choose another name for it"
            ) from error
        except OSError as error:
            self._fail("cannot be written", error)

    def _reopen(self, path: Path, after: int) -> None:
        try:
            fd = os.open(path, _WRITING)
        except OSError as error:
            raise TraceError(
                f"the trace {path} cannot be written: {error.strerror or error}",
                hint="copy it to a folder that can be written, and resume the copy",
            ) from error
        # Before it is measured: who wrote until now may have written more meanwhile.
        is_ours = lock(fd)
        with path.open("rb") as file:
            whole = [len(line) for line in file if line.endswith(b"\n")]
        if not is_ours or len(whole) != after:
            os.close(fd)
            raise TraceError(
                f"the trace {path} is being written to: the run goes on",
                hint="wait for its end, or end its process first",
            )
        self._lines, self._size = after, sum(whole)
        self._fd, self._sync, self._torn = fd, BackgroundSync(fd), True

    def _write(self, fd: int, event: Event) -> None:
        line = line_of(event, self._lines + 1)
        if self._size + len(line) > MAX_BYTES:
            self._failure = f"the trace {self._path} ends early: it may have {MAX_BYTES:,} bytes"
            self._release()
            return
        written = 0
        try:
            if self._torn:
                os.ftruncate(fd, self._size)
                self._torn = False
            while written < len(line):
                written += os.write(fd, line[written:])
            self._lines += 1
            self._size += written
        except OSError as error:
            self._fail("ends early", error)
            self._cut_torn_line(fd)
            self._release()
            return
        if self._sync is not None and isinstance(event, ReplyReceived | Answered):
            self._sync.request()

    def _release(self) -> None:
        if self._sync is not None:
            self._sync.finish()
            if self._sync.failure is not None and self._failure is None:
                self._fail("may not outlive a power cut", self._sync.failure)
            self._sync = None
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
            if self._path is not None and not self._lines:
                # The reason why an empty file stays, if it does, matters to nobody.
                with suppress(OSError):
                    self._path.unlink()

    def _cut_torn_line(self, fd: int) -> None:
        try:
            os.ftruncate(fd, self._size)
        except OSError as error:
            # A reader copes with a torn last line; only the reason grows.
            self._failure = f"{self._failure}; its last line is torn ({error.strerror})"

    def _fail(self, what: str, error: OSError) -> None:
        self._failure = (
            f"the trace {self._path} {what}: {error.strerror or error} "
            "(free space there, or set XDG_STATE_HOME to a folder that can be written)"
        )


def line_of(event: Event, number: int, time: str | None = None) -> bytes:
    """Return an event as a line of a trace, the one of that number, written at `time`, or now.

    Raises:
        TypeError: a field of the event is not JSON.
    """
    entry: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "type": event.type,
        "line": number,
        "time": time or datetime.now(UTC).isoformat(timespec="microseconds"),
    }
    for item in fields(event):
        entry[item.name] = getattr(event, item.name)
    fold(entry, _plain)
    try:
        text = json.dumps(entry, ensure_ascii=True, allow_nan=False, default=_plain)
    except ValueError:
        # Not a number, or infinite: JSON has neither.
        text = json.dumps(_finite(entry), ensure_ascii=True, allow_nan=False)
    return text.encode("ascii") + b"\n"


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return list(value)
    raise TypeError(f"{type(value).__name__} cannot stand in a trace")


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_finite(item) for item in value]
    return value
