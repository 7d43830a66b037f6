"""The host's ends of a worker's pipes, which do not block the event loop.

There is no thread but on Windows, whose event loops cannot wait for a pipe (`threaded`).
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable

from rlm_rag.errors import ProtocolError, WorkerLostError
from rlm_rag.sandbox import frames
from rlm_rag.sandbox.threaded import ThreadOutbox, ThreadReader

# What a pipe holds; memory for more would be mapped anew at each read.
_READ_BYTES = 1 << 16
_STDERR_TAIL_BYTES = 4096
# What a launcher and an interpreter have to say is far less; the rest is left in the pipe.
_STDERR_BYTES = 1 << 20
_FLUSH_READS = 16
# What is read ahead of the receiver; beyond it the worker's pipe is left to fill.
_AHEAD_FRAMES = 256
_AHEAD_BYTES = 4 << 20


def open_outbox(descriptor: int) -> Outbox | ThreadOutbox:
    """Return what writes to `descriptor`, and closes it."""
    return ThreadOutbox(descriptor) if sys.platform == "win32" else Outbox(descriptor)


def _open_reader(descriptor: int, take: Callable[[bytes], None]) -> Reader | ThreadReader:
    """Return what reads `descriptor`, once told to resume, and closes it."""
    if sys.platform == "win32":
        return ThreadReader(descriptor, _READ_BYTES, take)
    return Reader(descriptor, take)


class Outbox:
    """The writing end: sends at once where the pipe takes it, else in order as it drains."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._queue: deque[tuple[memoryview, asyncio.Future[None]]] = deque()
        self._closed = False
        os.set_blocking(descriptor, False)

    def send(self, data: bytes) -> asyncio.Future[None]:
        """Write `data` as far as it goes; what is returned is done once all of it is written.

        Raises:
            WorkerLostError: nobody reads any more.
        """
        loop = asyncio.get_running_loop()
        sent: asyncio.Future[None] = loop.create_future()
        written = 0 if self._queue else self._write(data)
        if written == len(data):
            sent.set_result(None)
        elif self._closed:
            raise WorkerLostError("the worker is gone")
        else:
            self._queue.append((memoryview(data)[written:], sent))
            loop.add_writer(self._descriptor, self._drain)
        return sent

    def _write(self, view: bytes | memoryview) -> int:
        if self._closed:
            raise WorkerLostError("the worker is gone")
        try:
            return os.write(self._descriptor, view)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise WorkerLostError("the worker closed its input") from error

    def _drain(self) -> None:
        while self._queue:
            view, sent = self._queue[0]
            try:
                count = self._write(view)
            except WorkerLostError as error:
                self._fail(error)
                return
            if count < len(view):
                self._queue[0] = (view[count:], sent)
                return
            self._queue.popleft()
            if not sent.done():
                sent.set_result(None)
        asyncio.get_running_loop().remove_writer(self._descriptor)

    def _fail(self, error: WorkerLostError) -> None:
        asyncio.get_running_loop().remove_writer(self._descriptor)
        for _, sent in self._queue:
            if not sent.done():
                sent.set_exception(error)
        self._queue.clear()

    def close(self) -> None:
        if not self._closed:
            self._fail(WorkerLostError("the worker is gone"))
            self._closed = True
            os.close(self._descriptor)


class Reader:
    """Hands what a pipe has to `take`, a piece at a time; b"" is its end."""

    def __init__(self, descriptor: int, take: Callable[[bytes], None]) -> None:
        self._descriptor = descriptor
        self._take = take
        self._reading = False
        os.set_blocking(descriptor, False)

    def resume(self) -> None:
        if not self._reading:
            self._reading = True
            asyncio.get_running_loop().add_reader(self._descriptor, self._read)

    def pause(self) -> None:
        if self._reading:
            self._reading = False
            asyncio.get_running_loop().remove_reader(self._descriptor)

    def flush(self) -> None:
        """Hand over what an ended worker left."""
        for _ in range(_FLUSH_READS):
            if not self._read():
                break

    def close(self) -> None:
        self.pause()
        os.close(self._descriptor)

    def _read(self) -> bool:
        try:
            data = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        self._take(data)
        return bool(data)


class Inbox:
    """The reading end: splits the worker's bytes into frames, a bounded number ahead."""

    def __init__(self, descriptor: int) -> None:
        self._frames: deque[bytes] = deque()
        self._pieces: list[bytes] = []
        self._size = 0
        self._ahead = 0
        self._ended = self._closed = False
        self._error: ProtocolError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._reader = _open_reader(descriptor, self._take)
        self._reader.resume()

    async def receive(self) -> bytes:
        while not self._frames:
            if self._error is not None:
                raise self._error
            if self._ended:
                return b""
            self._reader.resume()
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        frame = self._frames.popleft()
        self._ahead -= len(frame)
        return frame

    def _take(self, data: bytes) -> None:
        if self._ended:
            return
        if not data:
            self._end(None)
            return
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._pieces.append(piece)
            frame = b"".join(self._pieces)
            self._pieces, self._size = [], 0
            # An empty frame would read as the worker's end.
            if not frame or len(frame) >= frames.MAX_FRAME_BYTES:
                self._end(ProtocolError("the worker sent an empty or oversized frame"))
                return
            self._frames.append(frame)
            self._ahead += len(frame)
        self._pieces.append(rest)
        self._size += len(rest)
        if self._size >= frames.MAX_FRAME_BYTES:
            self._end(ProtocolError(f"a frame is longer than {frames.MAX_FRAME_BYTES:,} bytes"))
            return
        if len(self._frames) >= _AHEAD_FRAMES or self._ahead >= _AHEAD_BYTES:
            self._reader.pause()
        if self._frames:
            self._wake()

    def _end(self, error: ProtocolError | None) -> None:
        self._reader.pause()
        self._ended, self._error = True, error
        self._pieces = []
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._end(self._error)
            self._reader.close()


class Tail:
    """The last bytes of a worker's first stderr: what its launcher and interpreter said."""

    def __init__(self, descriptor: int) -> None:
        self._kept = b""
        self._left = _STDERR_BYTES
        self._closed = False
        self._reader = _open_reader(descriptor, self._take)
        self._reader.resume()

    def _take(self, data: bytes) -> None:
        self._kept = (self._kept + data)[-_STDERR_TAIL_BYTES:]
        self._left -= len(data)
        if not data or self._left < 0:
            self._reader.pause()

    def text(self) -> str:
        if not self._closed:
            self._reader.flush()
        return self._kept.decode("utf-8", "replace")

    def close(self) -> None:
        if not self._closed:
            self._reader.flush()
            self._closed = True
            self._reader.close()
