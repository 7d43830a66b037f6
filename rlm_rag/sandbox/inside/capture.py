"""What model code writes to descriptors 1 and 2, by whatever way: print, threads, os.write, C."""

from __future__ import annotations

import codecs
import os
import sys
from _thread import allocate_lock, start_new_thread

from rlm_rag.sandbox.inside.channel import private_copy
from rlm_rag.sandbox.inside.display import join_cut

try:
    import fcntl
    from os import read
    from select import POLLIN, poll
except ImportError:
    from rlm_rag.sandbox.inside.windows import (  # type: ignore[assignment]
        POLLIN,
        poll,
        read,
        wide_pipe,
    )
else:

    def wide_pipe(size: int) -> tuple[int, int]:
        read_fd, write_fd = os.pipe()
        os.set_blocking(read_fd, False)
        try:  # noqa: SIM105 - contextlib would be a tenth of a worker's start
            fcntl.fcntl(write_fd, fcntl.F_SETPIPE_SZ, size)
        except (OSError, AttributeError):
            pass  # Where it stays small, writers wait for the drain more often, nothing else.
        return read_fd, write_fd


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

DEFAULT_LIMIT_CHARS = 20_000
_PIPE_BYTES = 1 << 20
_READ_BYTES = 1 << 16
# A thread that never stops printing must not keep a finished block from being reported.
_DRAIN_READS = 2 * _PIPE_BYTES // _READ_BYTES


class Tape:
    """Text that arrives as UTF-8 in pieces: its head and tail are kept, the rest is counted."""

    def __init__(self) -> None:
        self.limit_chars = DEFAULT_LIMIT_CHARS
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head = ""
        self._tail = ""
        self._total = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        text = self._decoder.decode(data)
        self._total += len(text)
        half = self.limit_chars // 2
        if not self._tail and len(self._head) < half:
            room = half - len(self._head)
            self._head, text = self._head + text[:room], text[room:]
        if text:
            self._tail = (self._tail + text)[-(self.limit_chars - half) :]

    def take(self) -> tuple[str, int]:
        """Return what was kept, with the cut marked in it, and how many characters were cut."""
        self._finish()
        if not self._total:
            return "", 0
        cut = self._total - len(self._head) - len(self._tail)
        text = join_cut(self._head, self._tail, cut)
        self._head = self._tail = ""
        self._total = 0
        return text, cut

    def _finish(self) -> None:
        rest = self._decoder.decode(b"", True)
        self._total += len(rest)
        self._tail += rest


class _Stream:
    """One of descriptors 1 and 2 as a pipe back into this process, and its file in `sys`."""

    def __init__(self, fd: int, name: str) -> None:
        self._fd = fd
        self._name = name
        self.tape = Tape()
        read_fd, write_fd = wide_pipe(_PIPE_BYTES)
        self.read_fd = private_copy(read_fd)
        self._write_fd = private_copy(write_fd)
        os.close(read_fd)
        os.close(write_fd)
        self._identity = _identity(self._write_fd)
        self._file = _text_file(fd)
        self.restore()

    def restore(self) -> None:
        """Undo what a block did to the descriptor or to the file, and flush the file."""
        if self._identity is None or _identity(self._fd) != self._identity:
            os.dup2(self._write_fd, self._fd)
        # Binding first: a wrapper that goes with this closes the file's buffer beneath it.
        self._bind()
        if not _flushed(self._file):
            self._file = _text_file(self._fd)
            self._bind()

    def _bind(self) -> None:
        if getattr(sys, self._name, None) is not self._file:
            setattr(sys, self._name, self._file)
            setattr(sys, f"__{self._name}__", self._file)

    def drain(self) -> None:
        for _ in range(_DRAIN_READS):
            try:
                data = read(self.read_fd, _READ_BYTES)
            except BlockingIOError:
                return
            self.tape.feed(data)

    def write(self, text: str) -> None:
        data = memoryview(text.encode("utf-8", "backslashreplace"))
        while data:
            data = data[os.write(self._write_fd, data) :]


class Capture:
    """Descriptors 1 and 2 of this process; made once, before any model code runs."""

    def __init__(self) -> None:
        self._draining = allocate_lock()
        self._out = _Stream(1, "stdout")
        self._err = _Stream(2, "stderr")
        self._written = self._poll()
        start_new_thread(self._drain_when_full, ())

    def begin(self, limit_chars: int) -> None:
        """Cap the next block's output, each of the two streams, at `limit_chars`."""
        self._out.tape.limit_chars = self._err.tape.limit_chars = limit_chars

    def note(self, text: str) -> None:
        """Write a line to the block's stderr, whatever model code made of `sys.stderr`."""
        self._err.write(f"{text}\n")

    def end(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """Return stdout and stderr since the last time, each as text and characters cut."""
        self._out.restore()
        self._err.restore()
        with self._draining:
            if self._written.poll(0):
                self._out.drain()
                self._err.drain()
            return self._out.tape.take(), self._err.tape.take()

    def _poll(self) -> poll:
        written = poll()
        written.register(self._out.read_fd, POLLIN)
        written.register(self._err.read_fd, POLLIN)
        return written

    def _drain_when_full(self) -> None:
        written = self._poll()
        while True:
            written.poll()
            with self._draining:
                self._out.drain()
                self._err.drain()


def _identity(fd: int) -> tuple[int, ...] | None:
    try:
        inode, device = os.fstat(fd)[1:3]
    except OSError:
        return None
    # Pipes of Windows are all the same.
    return (inode, device) if inode else None


def _text_file(fd: int) -> TextIO:
    return open(fd, "w", encoding="utf-8", errors="backslashreplace", newline="\n", closefd=False)


def _flushed(file: TextIO) -> bool:
    try:
        file.flush()
    except (OSError, ValueError):
        return False
    return True


def silence_stdin() -> None:
    """Make descriptor 0 a file that is at its end."""
    try:
        fd = os.open(os.devnull, os.O_RDONLY)
    except OSError:
        fd, write_fd = os.pipe()
        os.close(write_fd)
    os.dup2(fd, 0)
    os.close(fd)
