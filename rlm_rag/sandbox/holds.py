"""What a host has of a worker's process: to interrupt it, to end it, to ask what it computed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time


class Hold:
    """A process by its number, and by a descriptor where its launcher is another process.

    On Windows a `Job` is one.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], worker: int, worker_handle: int | None
    ) -> None:
        self._process = process
        self._worker = worker
        self._handle = worker_handle

    def cpu_seconds(self) -> float:
        """Return what the worker has computed so far; 0 where it is gone, or the system is odd."""
        # Linux's clock of a process (clock_getcpuclockid(3)): 0.5 us, its line of /proc 20 us,
        # and each call of a batch asks twice.
        try:
            return time.clock_gettime((~self._worker << 3) | 2)
        except OSError:
            return 0.0

    def interrupt(self) -> None:
        """Send the worker a signal."""
        with contextlib.suppress(ProcessLookupError):
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, signal.SIGINT)
            elif self._process.poll() is None:
                self._process.send_signal(signal.SIGINT)

    def end(self) -> None:
        """Kill the worker and what it started."""
        with contextlib.suppress(ProcessLookupError):
            if self._handle is not None:
                # The launcher is spared: it ends once the worker's namespace is empty.
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            elif self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)

    async def gone(self, seconds: float) -> None:
        """Wait until the worker is gone, no longer than `seconds`."""
        # Its launcher may have died first, and then does not stand for the worker's end.
        if self._handle is not None:
            with contextlib.suppress(TimeoutError):
                await _readable(self._handle, seconds)

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)


async def ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait until `process` has ended, without reaping it before `poll` sees it."""
    if process.poll() is not None:
        return True
    try:
        if sys.platform != "linux":
            await asyncio.to_thread(process.wait, seconds)
            return True
        handle = os.pidfd_open(process.pid)
        try:
            await _readable(handle, seconds)
        finally:
            os.close(handle)
    except (TimeoutError, subprocess.TimeoutExpired):
        return False
    return True


async def _readable(descriptor: int, seconds: float) -> None:
    """Wait until `descriptor` has something to read, or has ended.

    Raises:
        TimeoutError: not within `seconds`.
    """
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await asyncio.wait_for(ready.wait(), seconds)
    finally:
        loop.remove_reader(descriptor)
