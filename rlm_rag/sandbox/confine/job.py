"""A job object of Windows around a worker: ends it with its host, and may bound what it uses."""

from __future__ import annotations

import ctypes
import struct
import sys
from typing import Any, Self

# winnt.h: JOB_OBJECT_LIMIT_ACTIVE_PROCESS, _PROCESS_MEMORY, _DIE_ON_UNHANDLED_EXCEPTION and
# _KILL_ON_JOB_CLOSE.
_BOUNDED, _KILL_ON_CLOSE = 0x8 | 0x100 | 0x400, 0x2000
# Every JOB_OBJECT_UILIMIT: no desktop, clipboard, handle of a window or system parameter of others.
_ALL_UI_LIMITS = 0xFF
_BASIC_UI_RESTRICTIONS, _EXTENDED_LIMIT_INFORMATION = 4, 9
# PROCESS_TERMINATE, _SET_QUOTA and _QUERY_INFORMATION.
_ACCESS = 0x1 | 0x100 | 0x400
_ENDED = 1
_TICKS_IN_SECOND = 10_000_000


def extended_limits(memory_bytes: int) -> bytes:
    """Return the JOBOBJECT_EXTENDED_LIMIT_INFORMATION (64-bit) of one process of that memory.

    0 bounds neither memory nor processes. In both cases the job's end is that of its processes.
    """
    flags = _KILL_ON_CLOSE | (_BOUNDED if memory_bytes else 0)
    basic = struct.pack("<qqI4xQQI4xQII", 0, 0, flags, 0, 0, 1 if memory_bytes else 0, 0, 0, 0)
    counters = bytes(48)
    return basic + counters + struct.pack("<QQQQ", memory_bytes, 0, 0, 0)


class Job:
    """A job that one process of this host, and what that starts, cannot leave.

    This host alone holds it, so that it ends with the host, whatever way that ends.
    """

    def __init__(self, kernel: Any, job: int, process: int) -> None:
        self._kernel = kernel
        self._job = job
        self._process = process

    @classmethod
    def around(cls, pid: int, memory_bytes: int, *, kernel: Any = None) -> Self:
        """Put a process of this host, that still runs, into a new job.

        `memory_bytes` bounds the private memory that it may commit, and it can then start no
        process; with 0 there is no bound. `kernel` is `kernel32`, this system's unless given.

        Raises:
            OSError: a step failed; the process is left as it was.
        """
        kernel = kernel or _kernel()
        job = kernel.CreateJobObjectW(None, None)
        process = kernel.OpenProcess(_ACCESS, 0, pid)
        if job and process:
            _restrict(kernel, job, process, memory_bytes)
            if kernel.AssignProcessToJobObject(job, process):
                return cls(kernel, job, process)
        raise _failure(kernel, job, process)

    def holds(self) -> bool:
        """Whether the system says that the process is in the job."""
        inside = ctypes.c_int(0)
        asked = self._kernel.IsProcessInJob(self._process, self._job, ctypes.byref(inside))
        return bool(asked and inside.value)

    def cpu_seconds(self) -> float:
        """Return what the process has computed so far; 0 where the system does not say."""
        times = [ctypes.c_uint64() for _ in range(4)]
        if not self._kernel.GetProcessTimes(self._process, *map(ctypes.byref, times)):
            return 0.0
        return (times[2].value + times[3].value) / _TICKS_IN_SECOND

    def interrupt(self) -> None:
        """Do nothing: to a process without a console no signal comes, and its frames must do."""

    def end(self) -> None:
        """End all that is in it."""
        if self._job:
            self._kernel.TerminateJobObject(self._job, _ENDED)

    async def gone(self, seconds: float) -> None:
        """Return at once: the process that was started is the worker."""

    def close(self) -> None:
        """End all that is in it, and forget it; idempotent."""
        job, process, self._job, self._process = self._job, self._process, 0, 0
        if job:
            self._kernel.CloseHandle(job)
            self._kernel.CloseHandle(process)


def _restrict(kernel: Any, job: int, process: int, memory_bytes: int) -> None:
    limits, restrictions = extended_limits(memory_bytes), struct.pack("<I", _ALL_UI_LIMITS)
    if not kernel.SetInformationJobObject(job, _EXTENDED_LIMIT_INFORMATION, limits, len(limits)):
        raise _failure(kernel, job, process)
    # A job of such limits cannot be within another, as where a terminal puts its programs in one.
    within = ctypes.c_int(0)
    kernel.IsProcessInJob(process, None, ctypes.byref(within))
    if memory_bytes and not within.value:
        size = len(restrictions)
        if not kernel.SetInformationJobObject(job, _BASIC_UI_RESTRICTIONS, restrictions, size):
            raise _failure(kernel, job, process)


def _failure(kernel: Any, *handles: int) -> OSError:
    error = kernel.GetLastError()
    for handle in handles:
        if handle:
            kernel.CloseHandle(handle)
    return OSError(f"the worker could not be put into a job object: error {error}")


def _kernel() -> Any:
    if sys.platform != "win32":
        raise OSError("job objects exist on Windows alone")
    kernel = ctypes.WinDLL("kernel32")
    handle, number = ctypes.c_void_p, ctypes.c_uint32
    kernel.CreateJobObjectW.restype = kernel.OpenProcess.restype = handle
    kernel.OpenProcess.argtypes = (number, ctypes.c_int, number)
    kernel.SetInformationJobObject.argtypes = (handle, ctypes.c_int, ctypes.c_char_p, number)
    kernel.AssignProcessToJobObject.argtypes = (handle, handle)
    kernel.IsProcessInJob.argtypes = (handle, handle, handle)
    kernel.GetProcessTimes.argtypes = (handle,) * 5
    kernel.TerminateJobObject.argtypes = (handle, number)
    kernel.CloseHandle.argtypes = (handle,)
    return kernel
