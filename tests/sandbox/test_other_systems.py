"""What is generated for the layers of systems that these tests do not run on."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any

import pytest

from rlm_rag.errors import SandboxUnavailableError
from rlm_rag.sandbox import layers
from rlm_rag.sandbox.boot import boot_command
from rlm_rag.sandbox.confine.job import enter_job, extended_limits
from rlm_rag.sandbox.confine.seatbelt import Seatbelt, profile
from rlm_rag.sandbox.confine.view import Layer, WorkerLimits
from rlm_rag.sandbox.confine.windows import JobObject, in_job
from rlm_rag.sandbox.process import open_worker


def rules() -> list[str]:
    text = profile(
        "/opt/py/bin/python3",
        readable=["/opt/py/lib", '/odd "path"\\x'],
        hidden=["/opt/py/lib/site-packages"],
        scratch="/private/tmp/scratch",
    )
    return text.split("\n")


def test_a_profile_denies_all_that_it_does_not_allow() -> None:
    lines = rules()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert all(line.count("(") == line.count(")") for line in lines)
    assert {line.split()[0] for line in lines[2:]} == {"(allow", "(deny"}
    assert not any("network" in line or "fork" in line for line in lines if "(allow" in line)


def test_a_profile_writes_to_the_scratch_folder_and_the_null_device_alone() -> None:
    writes = [line for line in rules() if "file-write" in line]
    assert writes == [
        '(allow file-write-data (literal "/dev/null"))',
        '(allow file-read* file-write* (subpath "/private/tmp/scratch"))',
    ]


def test_a_profile_hides_packages_after_it_showed_what_is_around_them() -> None:
    lines = rules()
    shown = lines.index('(allow file-read* (subpath "/opt/py/lib"))')
    assert lines.index('(deny file-read-data (subpath "/opt/py/lib/site-packages"))') > shown
    assert '(allow file-read* (subpath "/odd \\"path\\"\\\\x"))' in lines


def test_a_profile_starts_the_interpreter_alone() -> None:
    execs = [line for line in rules() if "process" in line]
    assert execs == [
        '(allow process-exec (literal "/opt/py/bin/python3"))',
        "(deny process-fork)",
    ]


def test_the_limits_of_a_job_have_the_shape_of_the_systems_structure() -> None:
    limits = extended_limits(3 << 30)
    assert len(limits) == 144
    flags, active, memory = (
        struct.unpack_from(form, limits, at) for form, at in (("<I", 16), ("<I", 40), ("<Q", 112))
    )
    assert (flags, active, memory) == ((0x2508,), (1,), (3 << 30,))


def test_a_worker_enters_its_job_before_its_program_runs() -> None:
    command = in_job(boot_command("C:/src", "python.exe"), 1 << 30)
    assert command[:-1] == boot_command("C:/src", "python.exe")[:-1]
    line = command[-1]
    compile(line, "<line>", "exec")
    assert line.index("enter_job") < line.index("rlm_rag.sandbox.inside")


@pytest.mark.parametrize("layer", [Seatbelt(), JobObject()], ids=lambda layer: layer.name)
def test_a_layer_of_another_system_says_so(layer: Layer) -> None:
    with pytest.raises(SandboxUnavailableError, match="alone"):
        layer.launch(boot_command, packed_path=None, limits=WorkerLimits(), info_fd=3)


class Kernel:
    """Stands in for `kernel32`; `failing` is the call that answers no."""

    def __init__(self, failing: str = "") -> None:
        self.asked: list[tuple[str, tuple[Any, ...]]] = []
        for name, answer in (
            ("CreateJobObjectW", 77),
            ("SetInformationJobObject", 1),
            ("AssignProcessToJobObject", 1),
            ("GetCurrentProcess", 2**64 - 1),
            ("GetLastError", 5),
        ):
            setattr(self, name, self._function(name, 0 if name == failing else answer))

    def _function(self, name: str, answer: int) -> Callable[..., int]:
        def function(*arguments: Any) -> int:
            self.asked.append((name, arguments))
            return answer

        return function


def test_a_process_enters_its_job_when_all_limits_of_it_are_set() -> None:
    kernel = Kernel()
    enter_job(kernel, 1 << 30)
    assert [asked for asked in kernel.asked if asked[0] != "GetCurrentProcess"] == [
        ("CreateJobObjectW", (None, None)),
        ("SetInformationJobObject", (77, 9, extended_limits(1 << 30), 144)),
        ("SetInformationJobObject", (77, 4, b"\xff\0\0\0", 4)),
        ("AssignProcessToJobObject", (77, 2**64 - 1)),
    ]


@pytest.mark.parametrize(
    "failing", ["CreateJobObjectW", "SetInformationJobObject", "AssignProcessToJobObject"]
)
def test_a_process_that_cannot_enter_its_job_goes_no_further(failing: str) -> None:
    with pytest.raises(OSError, match="error 5"):
        enter_job(Kernel(failing), 1 << 30)


def test_a_weak_layer_is_never_chosen_and_says_what_it_leaves_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setattr(layers, "_CONFINING", (JobObject(),))
    monkeypatch.setattr(layers, "_verdicts", {})
    for name in ("auto", "job"):
        with pytest.raises(SandboxUnavailableError, match=r"it is weak: .* files and network open"):
            layers.choose_layer(name)


def test_no_worker_starts_on_windows_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    with pytest.raises(SandboxUnavailableError, match="on Windows yet"):
        asyncio.run(open_worker(layers.choose_layer("none"), None))
