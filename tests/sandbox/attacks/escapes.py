"""Leaving the sandbox, or asking the kernel for what helps to."""

from __future__ import annotations

from tests.sandbox.attacks.attack import Attack


def _attack(name: str, code: str, *, root: bool = False, alone: bool = False) -> Attack:
    return Attack("escapes", name, code, root=root, alone=alone)


def _apart(code: str) -> str:
    """`code` in a process of its own where there can be one, since it would change the runner's."""
    return (
        f"def escape():\n    {code.strip().replace(chr(10), chr(10) + '    ')}\nwon = apart(escape)"
    )


_IN_ITSELF = {
    "a user namespace": "checked(libc.unshare(0x10000000))",
    "a mount namespace": "checked(libc.unshare(0x20000))",
    "a network namespace": "checked(libc.unshare(0x40000000))",
    "a process namespace": "checked(libc.unshare(0x20000000))",
    "the host's network": "checked(libc.setns(os.open(f\"/proc/{F['host']}/ns/net\", 0), 0))",
    "the host's files": "checked(libc.setns(call('pidfd_open', F['host'], 0), 0x20000))",
    "a file system of its own": """
checked(libc.unshare(0x20000))
checked(libc.mount(b'x', b'/mnt', b'tmpfs', 0, None))
""",
    "a root of its own": "os.chroot('/')",
    "a root in place of the old": """
checked(libc.unshare(0x20000))
checked(libc.mount(None, b'/', None, 0x44000, None))
checked(libc.mount(b'x', b'/mnt', b'tmpfs', 0, None))
os.mkdir('/mnt/old')
call('pivot_root', b'/mnt', b'/mnt/old')
""",
    "to be root": "checked(libc.setresuid(0, 0, 0))",
    "to be somebody else": "checked(libc.setresuid(1234, 1234, 1234))",
    "to belong to a group": "os.setgroups([4])",
    "capabilities": """
header = (ctypes.c_uint32 * 2)(0x20080522, 0)
checked(libc.capset(header, (ctypes.c_uint32 * 6)(1 << 21, 1 << 21)))
""",
    "another name for the machine": """
checked(libc.unshare(0x04000000))
checked(libc.sethostname(b'x', 1))
""",
    "executable data": "call('personality', 0x0400000)",
    "to be traced": "checked(libc.ptrace(0, 0, None, None))",
    "to be dumped": "checked(libc.prctl(4, 1, 0, 0, 0))",
}

ATTACKS = (
    *(
        _attack(
            name,
            _apart(code),
            root=name not in ("to be traced", "to be dumped", "executable data"),
        )
        for name, code in _IN_ITSELF.items()
    ),
    _attack(
        "a process",
        """
os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)
won = True
""",
    ),
    _attack("a process by fork", "child = os.fork() or os._exit(0)\nwon = os.waitpid(child, 0)"),
    _attack(
        "a shell",
        """
import subprocess
won = subprocess.run(['/bin/sh', '-c', 'true']).returncode == 0
""",
    ),
    _attack(
        "a daemon",
        """
child = os.fork()
if not child:
    os.setsid()
    os._exit(os.fork() and 0)
won = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
""",
    ),
    _attack(
        "a process without the library",
        """
pid = call('clone', 17, None, None, None, None)
if not pid:
    os._exit(0)
os.waitpid(pid, 0)
won = True
""",
    ),
    _attack(
        "a process by clone3",
        """
a = (ctypes.c_uint64 * 8)(0, 0, 0, 0, 17)
pid = call('clone3', ctypes.byref(a), 64)
if not pid:
    os._exit(0)
os.waitpid(pid, 0)
won = True
""",
    ),
    _attack(
        "a process in new namespaces",
        """
pid = call('clone', 0x10000000 | 17, None, None, None, None)
if not pid:
    os._exit(0)
os.waitpid(pid, 0)
won = True
""",
    ),
    _attack("another program in this process", "os.execv('/bin/true', ['true'])", alone=True),
    _attack(
        "to type into a terminal",
        """
import fcntl, pty
master, slave = pty.openpty()
fcntl.ioctl(slave, 0x5412, b'x')
won = True
""",
        root=True,
    ),
    _attack(
        "a program in the kernel",
        """
won = call('bpf', 0, (ctypes.c_uint32 * 18)(2, 4, 8, 1), 72)
""",
        root=True,
    ),
    _attack(
        "to hold up the kernel's faults",
        """
won = call('userfaultfd', 0o2000000)
""",
        root=True,
    ),
    _attack(
        "to measure the kernel",
        """
won = call('perf_event_open', (ctypes.c_uint32 * 32)(1, 128), 0, -1, -1, 0)
""",
        root=True,
    ),
    _attack("to leave a key behind", "won = call('add_key', b'user', b'rlm-rag', b'x', 1, -1)"),
    _attack("a file system without mounting", "won = call('fsopen', b'tmpfs', 0)", root=True),
    _attack("a copy of a mount", "won = call('open_tree', -100, b'/', 1)", root=True),
    _attack(
        "bytes out of band",
        """
a, b = socket.socketpair()
a.send(b'x', socket.MSG_OOB)
won = b.recv(1, socket.MSG_OOB) == b'x'
""",
    ),
)
