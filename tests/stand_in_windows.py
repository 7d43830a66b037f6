"""Code that makes a POSIX interpreter lack what Windows lacks, and have what Windows has."""

from __future__ import annotations

WITHOUT_POSIX = """
import asyncio, select, signal, subprocess, sys, os, fcntl, _signal
_ioctl = fcntl.ioctl
for _module in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty"):
    sys.modules[_module] = None
for _holder, _names in (
    (os, "fork register_at_fork pread getuid geteuid setsid"),
    (os, "pidfd_open memfd_create O_NOFOLLOW O_DIRECTORY O_CLOEXEC O_NONBLOCK fchmod"),
    (signal, "SIGALRM SIGHUP ITIMER_REAL ITIMER_PROF pthread_kill setitimer"),
    (_signal, "SIGALRM SIGHUP ITIMER_REAL ITIMER_PROF pthread_kill setitimer"),
    (select, "poll POLLIN"),
):
    for _name in _names.split():
        if hasattr(_holder, _name):
            delattr(_holder, _name)
"""

WITH_WINDOWS = """
def _waiting(handle, _size):
    count = bytearray(4)
    _ioctl(handle, 0x541B, count)
    return int.from_bytes(count, "little"), 0
_module = type(sys)
_msvcrt, _winapi = _module("msvcrt"), _module("_winapi")
_msvcrt.open_osfhandle = lambda handle, flags: handle
_msvcrt.get_osfhandle = lambda fd: fd
_winapi.CreatePipe = lambda attributes, size: os.pipe()
_winapi.PeekNamedPipe = _waiting
os.O_BINARY = 0
del os.set_blocking
sys.modules["msvcrt"], sys.modules["_winapi"] = _msvcrt, _winapi
"""
