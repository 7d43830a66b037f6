"""The job object of Windows: what the system is asked for, over a stand-in for its calls."""

from __future__ import annotations

import ctypes
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from rlm_rag.errors import SandboxUnavailableError
from rlm_rag.sandbox import layers, spawn
from rlm_rag.sandbox.confine import job as jobs
from rlm_rag.sandbox.confine.job import Job, extended_limits
from rlm_rag.sandbox.confine.view import Launch
from rlm_rag.sandbox.confine.windows import JobObject

ONE_GIB = 1 << 30


class BasicLimits(ctypes.Structure):
    """JOBOBJECT_BASIC_LIMIT_INFORMATION of winnt.h, 64-bit."""

    _fields_ = (
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", ctypes.c_uint32),
        ("MinimumWorkingSetSize", ctypes.c_uint64),
        ("MaximumWorkingSetSize", ctypes.c_uint64),
        ("ActiveProcessLimit", ctypes.c_uint32),
        ("Affinity", ctypes.c_uint64),
        ("PriorityClass", ctypes.c_uint32),
        ("SchedulingClass", ctypes.c_uint32),
    )


class ExtendedLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION of winnt.h, 64-bit."""

    _fields_ = (
        ("BasicLimitInformation", BasicLimits),
        ("IoInfo", ctypes.c_uint64 * 6),
        ("ProcessMemoryLimit", ctypes.c_uint64),
        ("JobMemoryLimit", ctypes.c_uint64),
        ("PeakProcessMemoryUsed", ctypes.c_uint64),
        ("PeakJobMemoryUsed", ctypes.c_uint64),
    )


class Kernel:
    """Stands in for `kernel32`: notes what is asked; `failing` is the call that answers no.

    `within` says whether the process is in the job of a terminal or the like already, and
    `kept` whether the system leaves it in ours.
    """

    def __init__(self, failing: str = "", *, within: bool = False, kept: bool = True) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.privileges = [19, 23, 1 << 33]
        self.lasting: set[int] = set()
        self._inside = {None: within, 77: kept}
        for name, answer in (
            ("CreateJobObjectW", 77),
            ("OpenProcess", 88),
            ("SetInformationJobObject", 1),
            ("AssignProcessToJobObject", 1),
            ("TerminateJobObject", 1),
            ("CloseHandle", 1),
            ("OpenProcessToken", 1),
            ("GetLastError", 5),
        ):
            setattr(self, name, self._function(name, 0 if name == failing else answer))

    def _function(self, name: str, answer: int) -> Callable[..., int]:
        def function(*arguments: Any) -> int:
            self.asked.append((name, *arguments))
            return answer

        return function

    def IsProcessInJob(self, process: int, job: int | None, answer: Any) -> int:
        answer._obj.value = self._inside[job]
        return 1

    def GetTokenInformation(self, token: Any, kind: int, data: Any, size: Any, needed: Any) -> int:
        assert kind == 3
        told = struct.pack("<I", len(self.privileges))
        told += b"".join(struct.pack("<QI", number, 2) for number in self.privileges)
        needed._obj.value = len(told)
        if data is None:
            return 0
        data.raw = told
        return 1

    def AdjustTokenPrivileges(self, token: Any, all_: int, state: bytes, *nothing: Any) -> int:
        for number, attributes in struct.iter_unpack("<QI", state[4:]):
            assert attributes == 4
            if number not in self.lasting:
                self.privileges.remove(number)
        return 1

    def GetProcessTimes(self, process: int, *times: Any) -> int:
        for time, ticks in zip(times, (1 << 60, 0, 5_000_000, 12_500_000), strict=True):
            time._obj.value = ticks
        return 1


@pytest.mark.parametrize(
    ("memory", "flags", "processes"), [(3 * ONE_GIB, 0x2508, 1), (0, 0x2000, 0)]
)
def test_the_limits_of_a_job_fill_the_systems_structure(
    memory: int, flags: int, processes: int
) -> None:
    limits = ExtendedLimits.from_buffer_copy(extended_limits(memory))
    assert len(extended_limits(memory)) == ctypes.sizeof(ExtendedLimits) == 144
    basic = limits.BasicLimitInformation
    assert (basic.LimitFlags, basic.ActiveProcessLimit) == (flags, processes)
    assert limits.ProcessMemoryLimit == memory
    assert bytes(limits).replace(b"\0", b"") == b"".join(
        value.to_bytes(8, "little") for value in (flags, processes, memory)
    ).replace(b"\0", b"")


def test_a_process_is_put_into_its_job_when_all_limits_of_it_are_set() -> None:
    kernel = Kernel()
    Job.around(1234, ONE_GIB, system=kernel)
    assert kernel.asked[:5] == [
        ("CreateJobObjectW", None, None),
        ("OpenProcess", 0x501, 0, 1234),
        ("SetInformationJobObject", 77, 9, extended_limits(ONE_GIB), 144),
        ("SetInformationJobObject", 77, 4, b"\xff\0\0\0", 4),
        ("AssignProcessToJobObject", 77, 88),
    ]
    assert kernel.privileges == [23]


@pytest.mark.parametrize(("memory", "within"), [(ONE_GIB, True), (0, False)])
def test_a_job_within_another_or_without_limits_leaves_the_desktop_open(
    memory: int, within: bool
) -> None:
    kernel = Kernel(within=within)
    Job.around(1234, memory, system=kernel)
    assert [asked[2] for asked in kernel.asked if asked[0] == "SetInformationJobObject"] == [9]


@pytest.mark.parametrize(
    "failing",
    [
        *("CreateJobObjectW", "OpenProcess", "SetInformationJobObject"),
        *("AssignProcessToJobObject", "OpenProcessToken"),
    ],
)
def test_a_step_that_fails_is_an_error_and_leaves_no_handle(failing: str) -> None:
    kernel = Kernel(failing)
    with pytest.raises(OSError, match="error 5"):
        Job.around(1234, ONE_GIB, system=kernel)
    closed = {asked[1] for asked in kernel.asked if asked[0] == "CloseHandle"}
    assert closed == {77, 88} - {{"CreateJobObjectW": 77, "OpenProcess": 88}.get(failing)}


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in does not reach the process")
@pytest.mark.parametrize(
    "kernel",
    [Kernel("AssignProcessToJobObject"), Kernel("OpenProcessToken"), Kernel(kept=False)],
    ids=["not assigned", "privileged", "not kept"],
)
def test_a_process_that_is_not_in_its_job_goes_no_further(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_system", lambda: kernel)
    launch = Launch((), {}, None, job_memory_bytes=ONE_GIB)
    waiting = [sys.executable, "-S", "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE) as process:
        with pytest.raises(OSError, match=r"job object|token"):
            spawn._job_around(process, launch)
        assert process.returncode == -signal.SIGKILL
    for handle in (77, 88):
        assert ("CloseHandle", handle) in kernel.asked


def test_a_process_that_keeps_a_privilege_is_an_error_unless_nothing_bounds_it() -> None:
    kernel = Kernel()
    kernel.lasting = {19}
    with pytest.raises(OSError, match="keeps privileges"):
        Job.around(1234, ONE_GIB, system=kernel)
    Job.around(1234, 0, system=kernel)
    assert kernel.privileges == [19, 23]


def test_a_job_tells_whether_it_has_its_process_and_what_that_computed() -> None:
    assert Job.around(1, 0, system=Kernel()).holds()
    lost = Job.around(1, 0, system=Kernel(kept=False))
    assert not lost.holds()
    assert lost.cpu_seconds() == 1.75


def test_a_job_is_ended_and_closed_once() -> None:
    kernel = Kernel()
    job = Job.around(1, 0, system=kernel)
    kernel.asked.clear()
    job.interrupt()
    job.end()
    for _ in range(2):
        job.close()
    job.end()
    assert kernel.asked == [("TerminateJobObject", 77, 1), ("CloseHandle", 77), ("CloseHandle", 88)]


@pytest.fixture
def on_windows(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The choice of layers as it is on Windows, where the self-test of the job passed."""
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setattr(layers, "_CONFINING", (JobObject(),))
    monkeypatch.setattr(layers, "_verdicts", {"job": ""})
    return monkeypatch


def test_a_weak_layer_is_not_chosen_unless_it_is_named(on_windows: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        SandboxUnavailableError, match=r"it is weak: .* files and network open"
    ) as no:
        layers.choose_layer("auto")
    assert no.value.hint is not None
    assert "`--sandbox job`" in no.value.hint
    assert "bubblewrap" not in no.value.hint
    assert layers.choose_layer("job").name == "job"


def test_a_job_that_bounds_nothing_does_not_start_where_it_is_named(
    on_windows: pytest.MonkeyPatch,
) -> None:
    on_windows.setitem(layers._verdicts, "job", "start a process: OPEN")
    with pytest.raises(SandboxUnavailableError, match="start a process: OPEN") as no:
        layers.choose_layer("job")
    assert "--sandbox auto" not in str(no.value.hint)
