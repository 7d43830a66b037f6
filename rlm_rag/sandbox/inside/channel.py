"""The worker's end of the frames: one reader thread, and calls from any thread of model code."""

from __future__ import annotations

import itertools
import os
import time
from _thread import allocate_lock, start_new_thread

from rlm_rag.errors import ProtocolError
from rlm_rag.sandbox import frames
from rlm_rag.sandbox.halves import join

try:
    import fcntl
except ImportError:  # Windows has none.
    fcntl = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

LOWEST_PRIVATE_FD = 200
HOST_SPOKE_NONSENSE = 3
# What a pipe holds; memory for more would be mapped anew at each read.
_READ_BYTES = 1 << 16
# A call's arguments lie a few levels deep in its frame.
_ARGUMENT_DEPTH = frames.MAX_DEPTH - 5
# How long an interrupt may go unheard on Windows, where none ends a wait for a lock.
_DEAF_SECONDS = 0.05
_TOO_LITTLE_MEMORY = "a reply is larger than the memory that is left; del what is big"


def private_copy(fd: int) -> int:
    """Duplicate `fd` to a descriptor that programs started by model code do not inherit.

    It is a high one, where the system lets one choose.
    """
    if fcntl is None:
        copy = os.dup(fd)
        # Of a standard stream Windows makes one that is inherited.
        os.set_inheritable(copy, False)
        return copy
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, LOWEST_PRIVATE_FD)


class _Waiter:
    __slots__ = ("ready", "reply")

    def __init__(self) -> None:
        self.ready: LockType = allocate_lock()
        self.ready.acquire()
        self.reply: dict[str, Any] | None = None


class Channel:
    """Carries frames over two private descriptors; `call` is the way to ask the host."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._writing = allocate_lock()
        self._ids = itertools.count(1)
        self._waiting: dict[int, _Waiter] = {}
        self._forked = False
        self.block = 0
        self.await_seconds = 600.0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._leave_to_parent)

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message, whole, whatever other threads send."""
        self.write(frames.encode(message))

    def write(self, data: bytes) -> None:
        """Write encoded frames in one piece; an interrupt waits for it (see `interrupts`)."""
        with self._writing:
            view = memoryview(data)
            while view:
                view = view[os.write(self._write_fd, view) :]

    def start(self, handle: Callable[[dict[str, Any]], None]) -> None:
        """Read the host's messages in a thread: replies wake their callers, `handle` the rest.

        The worker ends when the host closes its end, at once.
        """
        start_new_thread(self._read, (handle,))

    def call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the host and wait for its `reply`; what fails on the way is a reply of `ok` false."""
        number = next(self._ids)
        if self._forked:
            return _failed("a child process of the worker cannot call the host")
        if frames.too_deep(args, depth=_ARGUMENT_DEPTH) or frames.too_deep(
            kwargs, depth=_ARGUMENT_DEPTH
        ):
            return _failed("the arguments nest too deep")
        try:
            data = frames.encode(
                {
                    "t": "call",
                    "call": number,
                    "block": self.block,
                    "name": name,
                    "args": args,
                    "kwargs": kwargs,
                }
            )
        except (TypeError, ValueError, RecursionError) as error:
            return _failed(f"the arguments must be plain JSON values: {error}")
        except ProtocolError as error:
            return _failed(f"the arguments are too large: {error.message}; send less at a time")
        waiter = self._waiting[number] = _Waiter()
        try:
            self.write(data)
            if not _acquired(waiter.ready, self.await_seconds):
                return _failed(f"no reply came within {self.await_seconds:g} seconds")
        finally:
            self._waiting.pop(number, None)
        assert waiter.reply is not None
        return waiter.reply

    def _read(self, handle: Callable[[dict[str, Any]], None]) -> None:
        try:
            self._read_until_closed(handle)
        except (ProtocolError, MemoryError):
            os._exit(HOST_SPOKE_NONSENSE)
        os._exit(0)

    def _read_until_closed(self, handle: Callable[[dict[str, Any]], None]) -> None:
        assembler = frames.Assembler()
        pending = bytearray()
        while data := self._sparing(assembler, os.read, self._read_fd, _READ_BYTES):
            searched = len(pending)
            self._sparing(assembler, pending.extend, data)
            start = 0
            while (end := pending.find(b"\n", max(start, searched))) >= 0:
                frame = self._sparing(assembler, _cut, pending, start, end)
                start = end + 1
                message = self._sparing(assembler, assembler.feed, frame)
                if message is not None:
                    self._sparing(assembler, self._take, message, handle)
            del pending[:start]

    def _sparing(self, assembler: frames.Assembler, do: Callable[..., Any], *args: Any) -> Any:
        """Do it; where no memory is left, again without the message that is under way.

        Whose reply that was cannot be read, so every caller is told.
        """
        try:
            return do(*args)
        except MemoryError:
            assembler.drop()
            for number in list(self._waiting):
                waiter = self._waiting.pop(number, None)
                if waiter is not None:
                    waiter.reply = _failed(_TOO_LITTLE_MEMORY)
                    waiter.ready.release()
            return do(*args)

    def _take(self, message: dict[str, Any], handle: Callable[[dict[str, Any]], None]) -> None:
        if message["t"] != "reply":
            handle(message)
            return
        # A caller that was interrupted, or gave up, has left no waiter.
        number = message.get("call", 0)
        waiter = self._waiting.get(number)
        if waiter is None:
            return
        if waiter.reply is not None and message.get("ok"):
            join(waiter.reply["value"], message["value"])
        else:
            waiter.reply = message
        if not message.get("more"):
            self._waiting.pop(number, None)
            waiter.ready.release()

    def _leave_to_parent(self) -> None:
        self._forked = True
        os.close(self._read_fd)
        os.close(self._write_fd)


def _acquired(lock: LockType, seconds: float) -> bool:
    if fcntl is not None:
        return lock.acquire(timeout=seconds)
    deadline = time.monotonic() + seconds
    while not lock.acquire(timeout=_DEAF_SECONDS):
        if time.monotonic() > deadline:
            return False
    return True


def _cut(pending: bytearray, start: int, end: int) -> bytes:
    return bytes(pending[start:end])


def _failed(message: str) -> dict[str, Any]:
    return {"ok": False, "error": {"kind": "sandbox", "message": message}}
