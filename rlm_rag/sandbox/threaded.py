"""Ends of pipes that threads read and write, where an event loop cannot: on Windows.

What they do is what `pipes.Reader` and `pipes.Outbox` do. Each thread ends, and closes its
descriptor, once nobody has the other end: after the worker's end.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

from rlm_rag.errors import WorkerLostError

# What they wait for comes at once, since the worker has ended.
_JOIN_SECONDS = 0.5


class ThreadReader:
    """Hands what a pipe has to `take`, in the loop, a piece at a time; b"" is its end."""

    def __init__(self, descriptor: int, most_bytes: int, take: Callable[[bytes], None]) -> None:
        self._descriptor = descriptor
        self._most_bytes = most_bytes
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._pieces: deque[bytes] = deque()
        # Set while the thread may read on: one piece is on its way to `take` at most.
        self._wanted = threading.Event()
        self._paused = True
        self._draining = False
        self._thread = threading.Thread(target=self._read, name="rlm-rag-read", daemon=True)
        self._thread.start()

    def resume(self) -> None:
        self._paused = False
        self._wanted.set()

    def pause(self) -> None:
        self._paused = True

    def flush(self) -> None:
        """Hand over what an ended worker left."""
        self._draining = True
        self._wanted.set()
        self._thread.join(_JOIN_SECONDS)
        self._draining = False
        self._deliver()

    def close(self) -> None:
        self._take = _dropped
        self.resume()
        self._thread.join(_JOIN_SECONDS)

    def _read(self) -> None:
        with suppress(RuntimeError):  # The loop is closed: nobody listens any more.
            data = b"-"
            while data:
                if not self._draining:
                    self._wanted.wait()
                    self._wanted.clear()
                try:
                    data = os.read(self._descriptor, self._most_bytes)
                except OSError:
                    data = b""
                self._pieces.append(data)
                self._loop.call_soon_threadsafe(self._deliver)
        os.close(self._descriptor)

    def _deliver(self) -> None:
        while self._pieces:
            self._take(self._pieces.popleft())
        if not self._paused:
            self._wanted.set()


def _dropped(_data: bytes) -> None:
    """Take what nobody asks for."""


class ThreadOutbox:
    """Writes to a pipe in the order of the calls."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = SimpleQueue()
        self._broken = ""
        self._thread = threading.Thread(target=self._write, name="rlm-rag-write", daemon=True)
        self._thread.start()

    def send(self, data: bytes) -> asyncio.Future[None]:
        """Write `data`; what is returned is done once all of it is written.

        Raises:
            WorkerLostError: nobody reads any more.
        """
        if self._broken:
            raise WorkerLostError(self._broken)
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.put((data, sent))
        return sent

    def close(self) -> None:
        self._broken = "the worker is gone"
        self._queue.put(None)
        self._thread.join(_JOIN_SECONDS)

    def _write(self) -> None:
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            while (item := self._queue.get()) is not None:
                data, sent = item
                if not self._broken:
                    self._write_whole(data)
                self._loop.call_soon_threadsafe(_settle, sent, self._broken)
        os.close(self._descriptor)

    def _write_whole(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError:
            self._broken = "the worker closed its input"


def _settle(sent: asyncio.Future[None], broken: str) -> None:
    if sent.done():
        return
    if broken:
        sent.set_exception(WorkerLostError(broken))
    else:
        sent.set_result(None)
