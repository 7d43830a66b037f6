"""A job object of Windows around a worker: ends it with its host, and may bound what it uses."""

from __future__ import annotations

import ctypes
import struct
import sys
from types import SimpleNamespace
from typing import Any, Self

from rlm_rag.sandbox.confine.privileges import drop_privileges

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

    def __init__(self, system: Any, job: int, process: int) -> None:
        self._system = system
        self._job = job
        self._process = process

    @classmethod
    def around(cls, pid: int, memory_bytes: int, *, system: Any = None) -> Self:
        """Put a process of this host, that still runs, into a new job.

        `memory_bytes` bounds the private memory that it may commit, and it can then start no
        process and has no privilege; 0 leaves all this open. `system` has the functions of
        `kernel32` and `advapi32`, this system's unless given.

        Raises:
            OSError: a step failed; the process may have been ended.
        """
        system = system or _system()
        job = system.CreateJobObjectW(None, None)
        process = system.OpenProcess(_ACCESS, 0, pid)
        try:
            if not job or not process:
                raise _failure(system)
            _restrict(system, job, process, memory_bytes)
            if memory_bytes:
                drop_privileges(system, process)
        except OSError:
            for handle in filter(None, (job, process)):
                system.CloseHandle(handle)
            raise
        return cls(system, job, process)

    def holds(self) -> bool:
        """Whether the system says that the process is in the job."""
        inside = ctypes.c_int(0)
        asked = self._system.IsProcessInJob(self._process, self._job, ctypes.byref(inside))
        return bool(asked and inside.value)

    def cpu_seconds(self) -> float:
        """Return what the process has computed so far; 0 where the system does not say."""
        times = [ctypes.c_uint64() for _ in range(4)]
        if not self._system.GetProcessTimes(self._process, *map(ctypes.byref, times)):
            return 0.0
        return (times[2].value + times[3].value) / _TICKS_IN_SECOND

    def interrupt(self) -> None:
        """Do nothing: to a process without a console no signal comes, and its frames must do."""

    def end(self) -> None:
        """End all that is in it."""
        if self._job:
            self._system.TerminateJobObject(self._job, _ENDED)

    async def gone(self, seconds: float) -> None:
        """Return at once: the process that was started is the worker."""

    def close(self) -> None:
        """End all that is in it, and forget it; idempotent."""
        job, process, self._job, self._process = self._job, self._process, 0, 0
        if job:
            self._system.CloseHandle(job)
            self._system.CloseHandle(process)


def _restrict(system: Any, job: int, process: int, memory_bytes: int) -> None:
    limits, restrictions = extended_limits(memory_bytes), struct.pack("<I", _ALL_UI_LIMITS)
    wanted = [(_EXTENDED_LIMIT_INFORMATION, limits)]
    # A job of such limits cannot be within another, as where a terminal puts its programs in one.
    within = ctypes.c_int(0)
    system.IsProcessInJob(process, None, ctypes.byref(within))
    if memory_bytes and not within.value:
        wanted.append((_BASIC_UI_RESTRICTIONS, restrictions))
    for number, data in wanted:
        if not system.SetInformationJobObject(job, number, data, len(data)):
            raise _failure(system)
    if not system.AssignProcessToJobObject(job, process):
        raise _failure(system)


def _failure(system: Any) -> OSError:
    error = system.GetLastError()
    return OSError(f"the worker could not be put into a job object: error {error}")


def _system() -> Any:
    if sys.platform != "win32":
        raise OSError("job objects exist on Windows alone")
    handle, number, text = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p
    found = SimpleNamespace()
    for library, result, name, *arguments in (
        ("kernel32", handle, "CreateJobObjectW", handle, handle),
        ("kernel32", handle, "OpenProcess", number, number, number),
        ("kernel32", number, "SetInformationJobObject", handle, number, text, number),
        ("kernel32", number, "AssignProcessToJobObject", handle, handle),
        ("kernel32", number, "IsProcessInJob", handle, handle, handle),
        ("kernel32", number, "GetProcessTimes", *(handle,) * 5),
        ("kernel32", number, "TerminateJobObject", handle, number),
        ("kernel32", number, "CloseHandle", handle),
        ("kernel32", number, "GetLastError"),
        ("advapi32", number, "OpenProcessToken", handle, number, handle),
        ("advapi32", number, "GetTokenInformation", handle, number, handle, number, handle),
        ("advapi32", number, "AdjustTokenPrivileges", handle, number, text, number, handle, handle),
    ):
        function = getattr(ctypes.WinDLL(library), name)
        function.restype, function.argtypes = result, arguments
        setattr(found, name, function)
    return found
