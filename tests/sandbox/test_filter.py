"""The system call filter, run step by step as the kernel would, for each machine."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest

from rlm_rag.errors import SandboxUnavailableError
from rlm_rag.sandbox.confine.seccomp import OWN_PID, filter_program
from rlm_rag.sandbox.confine.syscalls import MACHINES

ALLOW, KILL = 0x7FFF0000, 0x80000000
REFUSE, UNKNOWN = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
PRETEND = 0x00050000
EACH_MACHINE = pytest.mark.parametrize("machine", MACHINES)


def decide(program: bytes, audit: int, number: int, *arguments: int) -> int:
    """What classic BPF makes of one call (struct seccomp_data)."""
    data = struct.pack("=IIQ6Q", number, audit, 0, *arguments, *[0] * (6 - len(arguments)))
    steps = list(struct.iter_unpack("=HBBI", program))
    held, at = 0, 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        if code == 0x06:
            return value
        if code == 0x20:
            (held,) = struct.unpack_from("=I", data, value)
        elif code == 0x54:
            held &= value
        else:
            met = {0x15: held == value, 0x25: held > value, 0x35: held >= value}[code]
            at += if_true if met else if_false


@EACH_MACHINE
@pytest.mark.parametrize("writing", [True, False])
def test_what_is_listed_passes_and_all_else_is_refused(machine: str, writing: bool) -> None:
    known = MACHINES[machine]
    program = filter_program(writing=writing, machine=machine)
    allowed = {*known.harmless.values(), *(known.writing.values() if writing else ())}
    checked = set(known.checked.values())
    for number in range(520):
        found = decide(program, known.audit, number)
        if number in allowed:
            assert found == ALLOW
        elif number not in checked:
            assert found == (UNKNOWN if number > 462 else REFUSE)
    assert len(program) // 8 <= 4096


@EACH_MACHINE
def test_arguments_decide_where_they_matter(machine: str) -> None:
    known = MACHINES[machine]
    program = filter_program(writing=True, machine=machine)

    def ask(name: str, *arguments: int) -> int:
        return decide(program, known.audit, known.checked[name], *arguments)

    thread, child, namespace = 0x3D0F00, 17, 0x10000000
    assert [ask("clone", flags) for flags in (thread, child, thread | namespace, 0x4100)] == [
        ALLOW,
        REFUSE,
        REFUSE,
        REFUSE,
    ]
    assert ask("clone3") == UNKNOWN
    # Stream pairs of AF_UNIX alone, also made non-blocking.
    assert ask("socketpair", 1, 1 | 0o2000000) == ALLOW
    assert [ask("socketpair", *pair) for pair in ((1, 2), (1, 5), (2, 1))] == [REFUSE] * 3
    assert [ask("mmap", 0, 0, 0, flags) for flags in (0x22, 0x01, 0x21, 0x23)] == [
        ALLOW,
        ALLOW,
        REFUSE,
        REFUSE,
    ]
    assert [ask("kill", pid) for pid in (OWN_PID, 1, 0, 0xFFFFFFFF)] == [ALLOW, *[REFUSE] * 3]
    assert [ask("prlimit64", pid) for pid in (0, OWN_PID, 1)] == [ALLOW, ALLOW, REFUSE]
    assert [ask("ioctl", 0, request) for request in (0x5401, 0x5412, 0x541C)] == [
        ALLOW,
        REFUSE,
        REFUSE,
    ]
    assert [ask("fcntl", 0, what) for what in (3, 8, 10, 1024, 1031)] == [ALLOW, *[REFUSE] * 4]
    assert [ask("fcntl", 0, what) for what in (5, 6, 7, 36, 37, 38)] == [
        ALLOW,
        *[PRETEND] * 2,
        ALLOW,
        *[PRETEND] * 2,
    ]
    assert ask("flock", 0, 2) == PRETEND
    assert [ask("sendto", 3, 0, 1, flags) for flags in (0, 0x4000, 1)] == [ALLOW, ALLOW, REFUSE]
    assert [ask("prctl", what) for what in (15, 1, 4, 22)] == [ALLOW, *[REFUSE] * 3]
    assert [ask("fchmodat", 0, 0, mode) for mode in (0o700, 0o4700, 0o2700)] == [
        ALLOW,
        REFUSE,
        REFUSE,
    ]


@EACH_MACHINE
def test_without_a_scratch_folder_no_file_can_be_changed_by_name_or_mode(machine: str) -> None:
    known = MACHINES[machine]
    program = filter_program(writing=False, machine=machine)
    for name in ("fchmod", "fchmodat"):
        assert decide(program, known.audit, known.checked[name], 0, 0, 0) == REFUSE


def test_calls_of_another_architecture_end_the_process() -> None:
    for machine, known in MACHINES.items():
        program = filter_program(writing=True, machine=machine)
        for other in {0x40000003, *(each.audit for each in MACHINES.values())} - {known.audit}:
            assert decide(program, other, 0) == KILL
    x86 = MACHINES["x86_64"]
    program = filter_program(writing=True, machine="x86_64")
    assert decide(program, x86.audit, 0x40000000 | 39) == KILL


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(SandboxUnavailableError, match="are not known"):
        filter_program(writing=True, machine="vax")


HEADERS = {
    "x86_64": ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", r"#define __NR_(\w+)\s+(\d+)"),
    "aarch64": ("/usr/include/asm-generic/unistd.h", r"#define __NR(?:3264)?_(\w+)\s+(\d+)"),
}


@pytest.mark.parametrize("machine", HEADERS)
def test_the_numbers_of_calls_are_those_of_the_systems_headers(machine: str) -> None:
    path, pattern = HEADERS[machine]
    if not Path(path).exists():
        pytest.skip(f"{path} is not installed")
    theirs = {name: int(n) for name, n in re.findall(pattern, Path(path).read_text())}
    known = MACHINES[machine]
    ours = {**known.harmless, **known.writing, **known.checked}
    ours["fstatat"] = ours.pop("newfstatat")
    theirs.setdefault("fstatat", theirs.get("newfstatat", -1))
    compared = {name: number for name, number in ours.items() if name in theirs}
    assert len(compared) > 100
    assert compared == {name: theirs[name] for name in compared}
