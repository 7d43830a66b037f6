"""What a run looks like while it runs: one calm line, or every block with `--verbose`."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from rlm_rag.cli import streams, terminal
from rlm_rag.cli.progress import ERASE_LINE
from rlm_rag.cli.verbose import VerboseLog
from rlm_rag.trace.activity import Activity
from rlm_rag.trace.events import Event

SHORTEST_INTERVAL_SECONDS = 0.1
TICK_SECONDS = 1.0
"""How soon the line shows that time passes while nothing happens."""


class ProgressLine:
    """Keeps one line of standard error that says what a run is doing, rewritten in place.

    Events may come from any thread. `close` removes the line; the next event brings it back. No
    reply is shown as it comes.
    """

    hear = None

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._activity = Activity()
        self._is_paused = False
        self._shown_at = 0.0
        self._stopped: threading.Event | None = None

    def __call__(self, event: Event) -> None:
        self._activity.count(event)
        with self._lock:
            if self._is_paused:
                return
            if self._stopped is None:
                self._stopped = threading.Event()
                threading.Thread(target=self._tick, args=(self._stopped,), daemon=True).start()
            if time.monotonic() - self._shown_at >= SHORTEST_INTERVAL_SECONDS:
                self._show()

    def _tick(self, stopped: threading.Event) -> None:
        while not stopped.wait(TICK_SECONDS):
            with self._lock:
                if not stopped.is_set():
                    self._show()

    def _show(self) -> None:
        self._shown_at = time.monotonic()
        # The last column stays free: some terminals go on to the next line there.
        columns = terminal.columns(sys.stderr) - 1
        line = terminal.fits_width(self._activity.line(columns), columns)
        streams.to_stderr(ERASE_LINE + line)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to somebody else; what happens is counted."""
        self._is_paused = True
        self.close()
        try:
            yield
        finally:
            self._is_paused = False

    def close(self) -> None:
        """Remove the line, if there is one."""
        with self._lock:
            if self._stopped is not None:
                self._stopped.set()
                self._stopped = None
            if self._shown_at:
                self._shown_at = 0.0
                streams.to_stderr(ERASE_LINE)


class Silence:
    """Shows nothing."""

    hear = None

    def __call__(self, event: Event) -> None:
        """Take an event, and leave it at that."""

    def paused(self) -> AbstractContextManager[None]:
        """There is nothing to pause."""
        return nullcontext()

    def close(self) -> None:
        """There is nothing to close."""


Display = ProgressLine | VerboseLog | Silence


def choose_display(*, quiet: bool, verbose: bool) -> Display:
    """Return what shows a run: nothing off a terminal, unless `verbose` asks for everything."""
    if verbose:
        return VerboseLog()
    if quiet or not streams.shows_progress():
        return Silence()
    return ProgressLine()
