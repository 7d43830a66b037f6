"""Takes a process of Windows the privileges of its user, such as to shut the machine down."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

# winnt.h: TOKEN_QUERY and _ADJUST_PRIVILEGES, TokenPrivileges, SE_PRIVILEGE_REMOVED.
_ACCESS, _PRIVILEGES, _REMOVED = 0x8 | 0x20, 3, 4
# SeChangeNotifyPrivilege, without which a path may be closed for a folder on its way.
_TRAVERSE = 23
_COUNT, _ENTRY = struct.Struct("<I"), struct.Struct("<QI")


def drop_privileges(system: Any, process: int) -> None:
    """Remove, for good, every privilege of a process but that to walk through folders.

    `system` has the functions of `kernel32` and `advapi32`; `process` is a handle that may query.

    Raises:
        OSError: a step failed, or privileges are left.
    """
    token = ctypes.c_void_p()
    if not system.OpenProcessToken(process, _ACCESS, ctypes.byref(token)):
        raise OSError(f"its token cannot be opened: error {system.GetLastError()}")
    try:
        found = _privileges(system, token)
        removed = b"".join(_ENTRY.pack(each, _REMOVED) for each in found)
        system.AdjustTokenPrivileges(token, 0, _COUNT.pack(len(found)) + removed, 0, None, None)
        if _privileges(system, token):
            raise OSError(f"it keeps privileges: error {system.GetLastError()}")
    finally:
        system.CloseHandle(token)


def _privileges(system: Any, token: Any) -> list[int]:
    """Return the numbers of those that are to go."""
    size = ctypes.c_uint32()
    system.GetTokenInformation(token, _PRIVILEGES, None, 0, ctypes.byref(size))
    data = ctypes.create_string_buffer(size.value)
    if not system.GetTokenInformation(token, _PRIVILEGES, data, size, ctypes.byref(size)):
        raise OSError(f"its privileges cannot be read: error {system.GetLastError()}")
    (count,) = _COUNT.unpack_from(data, 0)
    entries = _ENTRY.iter_unpack(data.raw[_COUNT.size : _COUNT.size + count * _ENTRY.size])
    return [number for number, _ in entries if number != _TRAVERSE]
