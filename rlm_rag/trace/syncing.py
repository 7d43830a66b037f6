"""Bring a growing file to the disk without making its writer wait."""

from __future__ import annotations

import os
import threading


class BackgroundSync:
    """Syncs a file descriptor from a thread of its own; requests that pile up share one sync.

    A sync takes from a fraction of a millisecond to tens of them, which the engine's event
    loop cannot spend at each of hundreds of replies. The thread starts with the first request.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._wanted = threading.Condition()
        self._pending = False
        self._ending = False
        self._thread: threading.Thread | None = None
        self.failure: OSError | None = None

    def request(self) -> None:
        """Have all that was written so far synced soon."""
        with self._wanted:
            self._pending = True
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="rlm-rag-trace-sync", daemon=True
                )
                self._thread.start()
            self._wanted.notify()

    def finish(self) -> None:
        """Wait for the last sync and end the thread; the descriptor can then be closed."""
        with self._wanted:
            self._ending = True
            self._wanted.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._wanted:
                while not self._pending and not self._ending:
                    self._wanted.wait()
                if not self._pending:
                    return
                self._pending = False
            try:
                os.fsync(self._fd)
            except OSError as error:
                self.failure = error
                return
