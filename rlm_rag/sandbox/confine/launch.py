"""Builds a worker's namespaces and becomes the worker: a script, run by a bare interpreter.

    launch parent PID info FD spaces new|own [bind SOURCE TARGET | hide FOLDER |
           link PATH TARGET | device PATH]... scratch FOLDER BYTES INODES run COMMAND...
    launch parent PID plain FOLDER run COMMAND...

`spaces own` is for a privileged host: its user namespace is kept, and with it the privileges
that the command then needs to become another user. It imports as little as it can, since each
worker's start waits for it. Nothing in its arguments is secret. Any step that fails
ends it: there is no weaker confinement to fall back to.
"""

from __future__ import annotations

import ctypes
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_NEW_MOUNT, _NEW_CGROUP, _NEW_UTS, _NEW_IPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
_NEW_USER, _NEW_PID, _NEW_NET = 0x10000000, 0x20000000, 0x40000000
_SPACES = _NEW_USER | _NEW_MOUNT | _NEW_PID | _NEW_NET | _NEW_IPC | _NEW_UTS

_NOSUID, _NODEV, _NOEXEC, _BIND, _RECURSIVE, _PRIVATE = 2, 4, 8, 1 << 12, 1 << 14, 1 << 18
_DETACH = 2
_READ_ONLY = 1
_AT_CWD, _AT_RECURSIVE = -100, 0x8000

_DEATH_SIGNAL, _DUMPABLE, _BOUNDING_DROP, _NO_NEW_PRIVILEGES, _AMBIENT = 1, 4, 24, 38, 47
_AMBIENT_CLEAR_ALL = 4
_KILL = 9
_JOIN_SESSION_KEYRING = 1
_CAPABILITY_VERSION_3 = 0x20080522

# Numbers of (pivot_root, keyctl); mount_setattr is 442 everywhere.
_MOUNT_SETATTR = 442
_SYSCALLS = {"x86_64": (155, 250), "aarch64": (41, 219), "riscv64": (41, 219)}
_OLD_ROOT = "/.old"
_INSIDE_ID = 1000
_ALL_DESCRIPTORS = 1 << 20

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    arguments = (source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags))
    _checked(_libc.mount(*arguments, data.encode()), f"mount {target}")


def _protect(target: str, attributes: int, *, recursive: bool) -> None:
    wanted = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    arguments = (_AT_CWD, target.encode(), _AT_RECURSIVE if recursive else 0)
    size = ctypes.c_size_t(ctypes.sizeof(wanted))
    result = _libc.syscall(_MOUNT_SETATTR, *arguments, ctypes.byref(wanted), size)
    _checked(result, f"protect {target} (needs Linux 5.12)")


def _prctl(option: int, value: int, what: str) -> None:
    zero = ctypes.c_ulong(0)
    _checked(_libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero), what)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _die_with_parent() -> None:
    _prctl(_DEATH_SIGNAL, _KILL, "parent-death signal")


def _enter_namespaces(*, new_user_space: bool) -> None:
    if not new_user_space:
        _checked(_libc.unshare(_SPACES & ~_NEW_USER), "unshare")
        _libc.unshare(_NEW_CGROUP)
        return
    user, group = os.geteuid(), os.getegid()
    try:
        os.setgroups([])
    except PermissionError:
        pass  # Only a privileged user may leave the groups; no file that is visible heeds them.
    _checked(_libc.unshare(_SPACES), "unshare (user namespaces may be closed to this user)")
    _libc.unshare(_NEW_CGROUP)  # Some kernels lack them; no cgroup file system is visible anyway.
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{_INSIDE_ID} {user} 1")
    _write("/proc/self/gid_map", f"{_INSIDE_ID} {group} 1")
    try:
        _write("/proc/sys/user/max_user_namespaces", "0")
    except OSError:
        pass  # A container may have /proc/sys read-only; with no capability left, a second bar.


def _build_root(steps: list[list[str]], pivot_root: int) -> None:
    _mount("none", "/", "", _RECURSIVE | _PRIVATE)
    # /proc is the one folder sure to exist, and is not needed any more.
    _mount("tmpfs", "/proc", "tmpfs", _NOSUID | _NODEV, "mode=755,size=1m")
    os.chdir("/proc")
    os.mkdir(_OLD_ROOT[1:])
    _checked(_libc.syscall(pivot_root, b".", _OLD_ROOT[1:].encode()), "pivot_root")
    os.chdir("/")
    for verb, *operands in steps:
        _STEPS[verb](*operands)
    _checked(_libc.umount2(_OLD_ROOT.encode(), _DETACH), "leave the old root")
    os.rmdir(_OLD_ROOT)
    _protect("/", _READ_ONLY | _NOSUID | _NODEV, recursive=False)


def _place(source: str, target: str) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def _bind(source: str, target: str) -> None:
    _place(_OLD_ROOT + source, target)
    # Recursive, since the kernel refuses to uncover what lies beneath a locked mount.
    _mount(_OLD_ROOT + source, target, "", _BIND | _RECURSIVE)
    _protect(target, _READ_ONLY | _NOSUID | _NODEV, recursive=True)


def _device(path: str) -> None:
    _place(_OLD_ROOT + path, path)
    _mount(_OLD_ROOT + path, path, "", _BIND)
    _protect(path, _READ_ONLY | _NOSUID | _NOEXEC, recursive=False)


def _hide(folder: str) -> None:
    _mount("tmpfs", folder, "tmpfs", _NOSUID | _NODEV | _READ_ONLY, "mode=755,nr_inodes=1")


def _link(path: str, target: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(target, path)


def _scratch(folder: str, size: str, inodes: str) -> None:
    os.makedirs(folder)
    limits = f"mode=700,size={size},nr_inodes={inodes}"
    _mount("tmpfs", folder, "tmpfs", _NOSUID | _NODEV | _NOEXEC, limits)


_STEPS: dict[str, Callable[..., None]] = {
    "bind": _bind,
    "hide": _hide,
    "link": _link,
    "device": _device,
    "scratch": _scratch,
}
_OPERANDS = {
    "parent": 1,
    "info": 1,
    "spaces": 1,
    "bind": 2,
    "hide": 1,
    "link": 2,
    "device": 1,
    "scratch": 3,
}


def _leave_session(keyctl: int) -> None:
    _libc.sethostname(b"sandbox", ctypes.c_size_t(7))
    # Keys of the host's session must not come along; kernels without keyrings have none.
    _libc.syscall(keyctl, _JOIN_SESSION_KEYRING, None)


def _drop_privileges() -> None:
    for capability in range(64):
        if _libc.prctl(_BOUNDING_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            break
    _prctl(_AMBIENT, _AMBIENT_CLEAR_ALL, "clear ambient capabilities")
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _checked(_libc.capset(ctypes.byref(header), ctypes.byref(nothing)), "drop capabilities")
    _prctl(_NO_NEW_PRIVILEGES, 1, "no new privileges")


def _become(command: list[str], folder: str) -> None:
    os.umask(0o077)
    os.chdir(folder)
    os.closerange(3, _ALL_DESCRIPTORS)
    os.execv(command[0], command)


def _launch_confined(
    steps: list[list[str]], info: int, command: list[str], *, new_user_space: bool
) -> int:
    machine = os.uname().machine
    if machine not in _SYSCALLS:
        raise OSError(f"the system calls of {machine} are not known")
    pivot_root, keyctl = _SYSCALLS[machine]
    _enter_namespaces(new_user_space=new_user_space)
    # Entering a user namespace may clear it, so it is asked for again.
    _die_with_parent()
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        _die_with_parent()
        # Nothing comes where the launcher died before its death could be noticed.
        if os.read(ready, 1) != b"g":
            os._exit(1)
        os.setsid()
        _build_root(steps, pivot_root)
        _leave_session(keyctl)
        if new_user_space:
            _drop_privileges()
        _become(command, steps[-1][1])
    os.write(info, b'{"child-pid": %d}' % child)
    os.write(go, b"g")
    os.closerange(0, _ALL_DESCRIPTORS)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def main(arguments: list[str]) -> int:
    """Carry out the arguments; return the exit code that the worker ended with."""
    steps: list[list[str]] = []
    options: dict[str, str] = {}
    at = 0
    while arguments[at] not in ("run", "plain"):
        verb = arguments[at]
        operands = arguments[at + 1 : at + 1 + _OPERANDS[verb]]
        at += 1 + len(operands)
        if verb in _STEPS:
            steps.append([verb, *operands])
        else:
            options[verb] = operands[0]
    _die_with_parent()
    if os.getppid() != int(options["parent"]):
        return 1
    if arguments[at] == "plain":
        _become(arguments[at + 3 :], arguments[at + 1])
    return _launch_confined(
        steps,
        int(options["info"]),
        arguments[at + 1 :],
        new_user_space=options["spaces"] == "new",
    )


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except OSError as error:
        sys.stderr.write(f"launch: {error}\n")
        code = 1
    sys.stderr.flush()
    os._exit(code)
