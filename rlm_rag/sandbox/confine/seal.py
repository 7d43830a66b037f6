"""Closes a worker's process from inside, before its program begins: a script, run as given code.

Any step that fails ends the process: there is no weaker confinement to fall back to.
"""

from __future__ import annotations

import os

# ctypes itself takes 3 ms to import, which each worker would wait for; this is what it wraps.
from _ctypes import (
    FUNCFLAG_CDECL,
    FUNCFLAG_USE_ERRNO,
    Array,
    CFuncPtr,
    _SimpleCData,
    addressof,
    dlopen,
    dlsym,
    get_errno,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_SET_DEATH_SIGNAL, _SET_DUMPABLE, _KEEP_CAPABILITIES, _SET_SECCOMP = 1, 4, 8, 22
_BOUNDING_READ, _BOUNDING_DROP = 23, 24
_SET_NO_NEW_PRIVILEGES, _AMBIENT, _AMBIENT_CLEAR_ALL = 38, 47, 4
_SECCOMP_FILTER = 2
_KILL = 9
_CAPABILITY_VERSION_3 = 0x20080522
_REMOUNT_PRIVATE = 32 | 2 | 4 | 8  # MS_REMOUNT, nosuid, nodev, noexec
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1

# Rights of Landlock (linux/landlock.h); the rights that each version knows are the lowest bits.
_KNOWN_BITS = (0, 13, 14, 15, 15, 16)
_WRITE_FILE, _READ_FILE, _READ_FOLDER, _TRUNCATE = 1 << 1, 1 << 2, 1 << 3, 1 << 14
_REMOVE, _MAKE_FOLDER, _MAKE_FILE, _MAKE_LINK, _MOVE = 3 << 4, 1 << 7, 1 << 8, 1 << 12, 1 << 13
_READ = _READ_FILE | _READ_FOLDER
_WRITE = _WRITE_FILE | _TRUNCATE | _REMOVE | _MAKE_FOLDER | _MAKE_FILE | _MAKE_LINK | _MOVE
_ON_FILES = _WRITE_FILE | _READ_FILE | _TRUNCATE
_TCP = 3  # Binding and connecting, since version 4.
_SCOPES = 3  # Abstract sockets and signals, since version 6.


class _Long(_SimpleCData):  # type: ignore[type-arg]
    _type_ = "l"


class _Byte(_SimpleCData):  # type: ignore[type-arg]
    _type_ = "B"


class _Function(CFuncPtr):
    _flags_ = FUNCFLAG_CDECL | FUNCFLAG_USE_ERRNO
    _restype_ = _Long


_libc = dlopen(None, 0)  # type: ignore[arg-type]


def _call(name: str, *arguments: int | bytes | None) -> int:
    values = [_Long(value) if isinstance(value, int) else value for value in arguments]
    result: int = _Function(dlsym(_libc, name))(*values)
    if result < 0:
        raise OSError(get_errno(), f"{name}{arguments[:1]}: {os.strerror(get_errno())}")
    return result


def _words(*values: int, size: int = 8) -> bytes:
    return b"".join(value.to_bytes(size, "little") for value in values)


def _restrict_files(grants: Iterable[tuple[list[str], int]], lowest_version: int) -> None:
    version = _call("syscall", _CREATE_RULESET, None, 0, _ASK_VERSION)
    if version < lowest_version:
        raise OSError(f"Landlock is of version {version} here, not {lowest_version} or later")
    handled = (1 << _KNOWN_BITS[min(version, len(_KNOWN_BITS) - 1)]) - 1
    attributes = [handled]
    if version >= 4:
        attributes.append(_TCP)
    if version >= 6:
        attributes.append(_SCOPES)
    size = 8 * len(attributes)
    rules = _call("syscall", _CREATE_RULESET, _words(*attributes), size, 0)
    for paths, rights in grants:
        for path in paths:
            _allow(rules, path, rights & handled)
    _call("syscall", _RESTRICT_SELF, rules, 0)
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    if os.fstat(place).st_mode & 0o170000 != 0o040000:
        rights &= _ON_FILES
    rule = _words(rights) + _words(place, size=4)
    _call("syscall", _ADD_RULE, rules, _PATH_BENEATH, rule, 0)
    os.close(place)


def _drop_bounding_set() -> None:
    for capability in range(64):
        try:
            if _call("prctl", _BOUNDING_READ, capability, 0, 0, 0):
                _call("prctl", _BOUNDING_DROP, capability, 0, 0, 0)
        except OSError:
            # The last one is passed, or dropping is a privilege that this process never had; the
            # set only matters to programs started later, and none can be.
            break


def _become(user: int, saved: int) -> None:
    _call("prctl", _KEEP_CAPABILITIES, 1, 0, 0, 0)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, saved)


def _keep_capabilities(kept: int) -> None:
    _call("prctl", _AMBIENT, _AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = _words(_CAPABILITY_VERSION_3, 0, size=4)
    _call("capset", header, _words(kept, kept, 0, 0, 0, 0, size=4))


def _close_process() -> None:
    # Becoming another user has cleared it.
    _call("prctl", _SET_DEATH_SIGNAL, _KILL, 0, 0, 0)
    _call("prctl", _SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    _call("prctl", _SET_DUMPABLE, 0, 0, 0, 0)


def _refuse_calls(program: bytes) -> None:
    class Buffer(Array):  # type: ignore[type-arg]
        _type_ = _Byte
        _length_ = len(program)

    held: Any = Buffer.from_buffer_copy(program)
    described = _words(len(program) // 8, addressof(held))
    _call("prctl", _SET_SECCOMP, _SECCOMP_FILTER, described, 0, 0)


def seal(
    *,
    calls: bytes,
    own_pid: bytes,
    readable: list[str],
    listed: list[str],
    writable: list[str],
    landlock: int,
    scratch: str,
    bounds: str,
    user: int,
    saved: int,
    kept: int,
) -> None:
    """Give up all that the worker's program shall not have.

    `calls` is a seccomp program in which `own_pid` stands for this process' id; `readable`,
    `listed` (names alone) and `writable` are paths, each with all beneath it; `landlock` is the
    lowest version that will do. `scratch` is a folder ("" for none), `bounds` its mount options
    ("" where it has them already); `user` is who to become (0 to stay), `saved` the saved user id
    then; `kept` is a mask of capabilities.

    Raises:
        OSError: a step failed.
    """
    if bounds:
        _call("mount", None, scratch.encode(), None, _REMOUNT_PRIVATE, bounds.encode())
    if user and scratch:
        os.chown(scratch, user, user)
    _drop_bounding_set()
    if user:
        _become(user, saved)
    _keep_capabilities(kept)
    _close_process()
    grants = ((readable, _READ), (listed, _READ_FOLDER), (writable, _READ | _WRITE))
    _restrict_files(grants, landlock)
    _refuse_calls(calls.replace(own_pid, _words(os.getpid(), size=4)))
