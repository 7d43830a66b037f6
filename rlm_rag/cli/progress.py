"""A line of standard error that says how far a load is, or the index after it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rlm_rag.cli import streams
from rlm_rag.counts import counted

SHOWN_AFTER_SECONDS = 1.0
INTERVAL_SECONDS = 0.1
# Fewer take about a second.
SHOWN_FROM_DOCUMENTS = 2000
ERASE_LINE = "\r\x1b[K"


class LoadProgress:
    """Takes how many documents and bytes there are by now, and rewrites its line."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._shown_at: float | None = None

    def __call__(self, documents: int, size_bytes: int) -> None:
        now = time.monotonic()
        due = self._started + SHOWN_AFTER_SECONDS
        if self._shown_at is not None:
            due = self._shown_at + INTERVAL_SECONDS
        if now >= due:
            self._shown_at = now
            streams.to_stderr(
                f"{ERASE_LINE}loading: {counted(documents, 'document')}, "
                f"{size_bytes / 1e6:,.0f} MB, {now - self._started:.0f} s"
            )

    def close(self) -> None:
        """Remove the line, if there is one."""
        if self._shown_at is not None:
            streams.to_stderr(ERASE_LINE)


class IndexProgress:
    """Takes how many documents are indexed by now, and of how many, and rewrites its line.

    The line is shown where there is much to do, and removed when all is done.
    """

    def __init__(self) -> None:
        self._is_shown = False

    def __call__(self, done: int, total: int) -> None:
        if done < total and (self._is_shown or total - done >= SHOWN_FROM_DOCUMENTS):
            self._is_shown = True
            streams.to_stderr(f"{ERASE_LINE}indexing: {done:,} of {counted(total, 'document')}")
        elif self._is_shown:
            self._is_shown = False
            streams.to_stderr(ERASE_LINE)


@contextmanager
def load_progress() -> Iterator[LoadProgress | None]:
    """Give what a load may tell its progress to; None off a terminal."""
    if not streams.shows_progress():
        yield None
        return
    progress = LoadProgress()
    try:
        yield progress
    finally:
        progress.close()
