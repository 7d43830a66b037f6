"""Builds the seccomp filter of a sealed worker: what it may ask of the kernel, all else refused."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from rlm_rag.errors import SandboxUnavailableError
from rlm_rag.sandbox.confine.syscalls import MACHINES, Machine

# Stands in the filter for the process' own id, which is known only inside.
OWN_PID = 0x6B9D21F7

_LOAD, _JUMP_EQUAL, _JUMP_GREATER, _JUMP_AT_LEAST = 0x20, 0x15, 0x25, 0x35
_AND, _RETURN = 0x54, 0x06
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_PRETEND = _ERRNO
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16

# The last call of Linux 6.12; a C library asks for newer ones and expects to hear of their lack.
_LAST_KNOWN = 462

_AF_UNIX, _SOCK_STREAM = 1, 1
_ANY_BIT = 0xFFFFFFFF
_MAP_SHARED_ANONYMOUS = 0x21
_MAP_GROWS_DOWN = 0x100
_SET_ID_BITS = 0o6000
# CLONE_VM, CLONE_SIGHAND and CLONE_THREAD must be there; what else a thread library sets may be.
_THREAD = 0x00010900
_THREAD_EXTRAS = 0x017C0600
_LISTED_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # TCGETS ... FIONBIO, FIO(N)CLEX
# No owner, signal or lease of a descriptor, no larger pipe: duplicates, flags, asking for locks.
_LISTED_FCNTLS = (*range(6), 36, 1030, 1032, 1034)
# F_SETLK, F_SETLKW and their like for open files.
_LOCKING_FCNTLS = (6, 7, 37, 38)
# Names of threads and maps; what only tells. Not the parent-death signal, nor dumpability.
_LISTED_PRCTLS = (3, 15, 16, 21, 23, 39, 0x53564D41)


@dataclass(frozen=True, slots=True)
class _Check:
    """Refuses a call unless its argument, masked, is one of `values`; with `unless`, if it is."""

    argument: int
    values: tuple[int, ...]
    mask: int = _ANY_BIT
    unless: bool = False


@dataclass(frozen=True, slots=True)
class _Pretence:
    """Answers a call with success, undone, where its argument is one of `values`."""

    argument: int
    values: tuple[int, ...]


_NO_SET_ID = _Check(1, (0,), mask=_SET_ID_BITS)
_NO_SET_ID_AT = _Check(2, (0,), mask=_SET_ID_BITS)
# Bytes out of band have let programs into the kernel (CVE-2025-38236), and serve nobody.
_NOT_OUT_OF_BAND = _Check(3, (0,), mask=1)
_CHECKS = {
    # A pair of datagram sockets could still send to the address of any other.
    "socketpair": (_Check(0, (_AF_UNIX,)), _Check(1, (_SOCK_STREAM,), mask=0xF)),
    "sendto": (_NOT_OUT_OF_BAND,),
    "recvfrom": (_NOT_OUT_OF_BAND,),
    "clone": (_Check(0, (_THREAD,), mask=_ANY_BIT & ~_THREAD_EXTRAS),),
    "mmap": (
        _Check(3, (_MAP_SHARED_ANONYMOUS,), mask=_MAP_SHARED_ANONYMOUS, unless=True),
        # The kernel takes it for a stack, which the limit on data does not count.
        _Check(3, (0,), mask=_MAP_GROWS_DOWN),
    ),
    "ioctl": (_Check(1, _LISTED_IOCTLS),),
    "fcntl": (_Pretence(1, _LOCKING_FCNTLS), _Check(1, _LISTED_FCNTLS)),
    "prctl": (_Check(0, _LISTED_PRCTLS),),
    "kill": (_Check(0, (OWN_PID,)),),
    "tgkill": (_Check(0, (OWN_PID,)),),
    "prlimit64": (_Check(0, (0, OWN_PID)),),
    "chmod": (_NO_SET_ID,),
    "fchmod": (_NO_SET_ID,),
    "fchmodat": (_NO_SET_ID_AT,),
    "fchmodat2": (_NO_SET_ID_AT,),
}
_OF_WRITERS = frozenset({"chmod", "fchmod", "fchmodat", "fchmodat2"})


@cache
def filter_program(*, writing: bool, machine: str | None = None) -> bytes:
    """Return the filter as an array of `struct sock_filter`; `OWN_PID` in it is to be replaced.

    `writing` says that the worker has a scratch folder, whose files it may create and change.
    Locks are granted and not taken: a worker shares its files with nobody but the host, whose own
    locks they would hold up, and no limit counts them. What is refused fails with EPERM; `clone3`
    and what is newer than this module with ENOSYS, so that C libraries fall back; another
    architecture's calls end the process.

    Raises:
        SandboxUnavailableError: the calls of `machine` (default: this one) are not known.
    """
    known = MACHINES.get(machine or os.uname().machine)
    if known is None:
        raise SandboxUnavailableError(f"the system calls of {os.uname().machine} are not known")
    return b"".join(_instructions(known, writing=writing))


def _instructions(machine: Machine, *, writing: bool) -> Iterator[bytes]:
    yield _step(_LOAD, _ARCHITECTURE_AT)
    yield _step(_JUMP_EQUAL, machine.audit, 1, 0)
    yield _step(_RETURN, _KILL_PROCESS)
    yield _step(_LOAD, _NUMBER_AT)
    if machine.first_foreign:
        yield _step(_JUMP_AT_LEAST, machine.first_foreign, 0, 1)
        yield _step(_RETURN, _KILL_PROCESS)
    allowed = {**machine.harmless, **(machine.writing if writing else {})}
    for number in allowed.values():
        yield from _answer(number, _ALLOW)
    for name, checks in _CHECKS.items():
        if name in machine.checked and (writing or name not in _OF_WRITERS):
            body = b"".join(step for check in checks for step in _steps_of(check))
            body += _step(_RETURN, _ALLOW)
            yield _step(_JUMP_EQUAL, machine.checked[name], 0, len(body) // 8)
            yield body
    yield from _answer(machine.checked["flock"], _PRETEND)
    yield from _answer(machine.checked["clone3"], _ERRNO | errno.ENOSYS)
    yield _step(_JUMP_GREATER, _LAST_KNOWN, 0, 1)
    yield _step(_RETURN, _ERRNO | errno.ENOSYS)
    yield _step(_RETURN, _ERRNO | errno.EPERM)


def _answer(number: int, answer: int) -> Iterator[bytes]:
    yield _step(_JUMP_EQUAL, number, 0, 1)
    yield _step(_RETURN, answer)


def _steps_of(check: _Check | _Pretence) -> Iterator[bytes]:
    if isinstance(check, _Check):
        return _checked(check)
    return _pretended(check)


def _pretended(pretence: _Pretence) -> Iterator[bytes]:
    yield _step(_LOAD, _ARGUMENTS_AT + 8 * pretence.argument)
    for value in pretence.values:
        yield from _answer(value, _PRETEND)


def _checked(check: _Check) -> Iterator[bytes]:
    # Each of these arguments is an int, or flags below 2^32: the kernel heeds the low half alone.
    yield _step(_LOAD, _ARGUMENTS_AT + 8 * check.argument)
    if check.mask != _ANY_BIT:
        yield _step(_AND, check.mask)
    refuse = _step(_RETURN, _ERRNO | errno.EPERM)
    left = len(check.values)
    for value in check.values:
        left -= 1
        # To the refusal that follows the last value, or past it.
        if check.unless:
            yield _step(_JUMP_EQUAL, value, left, 0 if left else 1)
        else:
            yield _step(_JUMP_EQUAL, value, left + 1, 0)
    yield refuse


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
