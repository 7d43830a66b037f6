"""What a worker's interrupts and its capture of output are made of, as Windows has it.

Each name does what that of POSIX does, as far as a worker needs it.
"""

from __future__ import annotations

import msvcrt
import os
import time
from _signal import SIGINT, raise_signal  # type: ignore[import-not-found]
from _thread import start_new_thread
from _winapi import CreatePipe, PeekNamedPipe  # type: ignore[attr-defined]

POLLIN = 1
# An alarm is an interrupt.
SIGALRM = SIGINT
ITIMER_REAL = 0
# Nothing tells when a pipe has something to read.
_LOOK_SECONDS = 0.02

_timer = 0


def pthread_kill(_thread: int, number: int) -> None:
    """Have the main thread, which alone hears signals, hear one."""
    raise_signal(number)


def setitimer(_which: int, seconds: float, interval: float = 0.0) -> None:
    """Raise `SIGALRM` in `seconds`, and then every `interval`; with 0 never again."""
    global _timer
    _timer += 1
    if seconds:
        start_new_thread(_ring, (_timer, seconds, interval))


def _ring(number: int, seconds: float, interval: float) -> None:
    time.sleep(seconds)
    while number == _timer:
        raise_signal(SIGALRM)
        time.sleep(interval)


def wide_pipe(size: int) -> tuple[int, int]:
    """Return the reading and the writing descriptor of a pipe that holds `size` bytes."""
    reading, writing = CreatePipe(None, size)
    return (
        msvcrt.open_osfhandle(reading, os.O_RDONLY | os.O_BINARY),  # type: ignore[attr-defined]
        msvcrt.open_osfhandle(writing, os.O_WRONLY | os.O_BINARY),  # type: ignore[attr-defined]
    )


def _waiting_bytes(fd: int) -> int:
    count: int = PeekNamedPipe(msvcrt.get_osfhandle(fd), 0)[0]  # type: ignore[attr-defined]
    return count


def read(fd: int, most: int) -> bytes:
    """Read what is there.

    Raises:
        BlockingIOError: nothing is.
    """
    waiting = _waiting_bytes(fd)
    if not waiting:
        raise BlockingIOError
    return os.read(fd, min(waiting, most))


class poll:
    """Waits until one of its pipes has something to read."""

    def __init__(self) -> None:
        self._fds: list[int] = []

    def register(self, fd: int, _events: int) -> None:
        """Wait for `fd` too."""
        self._fds.append(fd)

    def poll(self, timeout: int | None = None) -> list[tuple[int, int]]:
        """Return the pipes that have something, at once where there is a timeout."""
        while True:
            found = [(fd, POLLIN) for fd in self._fds if _waiting_bytes(fd)]
            if found or timeout is not None:
                return found
            time.sleep(_LOOK_SECONDS)
