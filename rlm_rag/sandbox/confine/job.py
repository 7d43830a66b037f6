"""A job object of Windows around a worker: bounds memory and processes, and confines nothing else.

A script, run as given code before the worker's; workers do not run on Windows yet.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# winnt.h: JOB_OBJECT_LIMIT_ACTIVE_PROCESS, _PROCESS_MEMORY, _DIE_ON_UNHANDLED_EXCEPTION and
# _KILL_ON_JOB_CLOSE.
_LIMIT_FLAGS = 0x8 | 0x100 | 0x400 | 0x2000
# Every JOB_OBJECT_UILIMIT: no desktop, clipboard, handle of a window or system parameter of others.
_ALL_UI_LIMITS = 0xFF
_BASIC_UI_RESTRICTIONS, _EXTENDED_LIMIT_INFORMATION = 4, 9


def extended_limits(memory_bytes: int) -> bytes:
    """Return the JOBOBJECT_EXTENDED_LIMIT_INFORMATION (64-bit) of one process of that memory."""
    basic = struct.pack("<qqI4xQQI4xQII", 0, 0, _LIMIT_FLAGS, 0, 0, 1, 0, 0, 0)
    counters = bytes(48)
    return basic + counters + struct.pack("<QQQQ", memory_bytes, 0, 0, 0)


def enter_job(kernel: Any, memory_bytes: int) -> None:
    """Put this process into a job of its own; `kernel` is `ctypes.windll.kernel32`.

    Raises:
        OSError: a step failed.
    """
    import ctypes

    kernel.CreateJobObjectW.restype = kernel.GetCurrentProcess.restype = ctypes.c_void_p
    kernel.AssignProcessToJobObject.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    kernel.SetInformationJobObject.argtypes = (
        *(ctypes.c_void_p, ctypes.c_int),
        *(ctypes.c_char_p, ctypes.c_uint32),
    )
    job = kernel.CreateJobObjectW(None, None)
    limits, restrictions = extended_limits(memory_bytes), struct.pack("<I", _ALL_UI_LIMITS)
    done = (
        job
        and kernel.SetInformationJobObject(job, _EXTENDED_LIMIT_INFORMATION, limits, len(limits))
        and kernel.SetInformationJobObject(
            job, _BASIC_UI_RESTRICTIONS, restrictions, len(restrictions)
        )
        and kernel.AssignProcessToJobObject(job, kernel.GetCurrentProcess())
    )
    if not done:
        raise OSError(f"the job object could not be entered: error {kernel.GetLastError()}")
