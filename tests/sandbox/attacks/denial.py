"""Harming or starving the host."""

from __future__ import annotations

from tests.sandbox.attacks.attack import Attack


def _attack(name: str, code: str, *, root: bool = False) -> Attack:
    return Attack("denial", name, code, root=root)


_SIGNALS = {
    "kill": "os.kill(F['victim'], 0)",
    "stop and go on": "os.kill(F['victim'], 19); os.kill(F['victim'], 18)",
    "kill the host": "os.kill(F['host'], 0)",
    "kill a group": "os.killpg(F['victim'], 0)",
    "kill everybody": "os.kill(-1, 0)",
    "kill a thread": "call('tkill', F['victim'], 0)",
    "kill a thread of a process": "call('tgkill', F['victim'], F['victim'], 0)",
    "kill with a value": """
call('rt_sigqueueinfo', F['victim'], 0, (ctypes.c_int * 32)(0, 0, -1))
""",
    "kill by descriptor": """
call('pidfd_send_signal', call('pidfd_open', F['victim'], 0), 0, None, 0)
""",
    "kill by a file's owner": "import fcntl; fcntl.fcntl(0, 8, F['victim'])",
}
_SETTINGS = {
    "limit a process": "import resource; resource.prlimit(F['victim'], resource.RLIMIT_NOFILE)",
    "slow a process": "os.setpriority(os.PRIO_PROCESS, F['victim'], 19)",
    "move a process to one processor": "os.sched_setaffinity(F['victim'], {0})",
    "take its disk time": "call('ioprio_set', 1, F['victim'], 3 << 13)",
    "be the last to go when memory ends": "open('/proc/self/oom_score_adj', 'w').write('0')",
    "outlive the host": "checked(libc.prctl(1, 0, 0, 0, 0))",
    "leave its session": """
child = os.fork()
if not child:
    os.setsid()
    os._exit(0)
os.waitpid(child, 0)
""",
}
# A lock, asked about by another who has the file open: F_OFD_GETLK.
_LOCKED = """
import fcntl, struct
mine, theirs = (os.open(F['corpus'], os.O_RDONLY) for _ in range(2))
fcntl.fcntl(mine, {lock}, struct.pack('hhqqi4x', fcntl.F_RDLCK, 0, 0, 1, 0))
wanted = struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 1, 0)
won = struct.unpack('hhqqi4x', fcntl.fcntl(theirs, 36, wanted))[0] == fcntl.F_RDLCK
"""

ATTACKS = (
    *(_attack(name, f"{code}\nwon = True") for name, code in _SIGNALS.items()),
    *(_attack(name, f"{code}\nwon = True") for name, code in _SETTINGS.items()),
    _attack(
        "processes without end",
        """
import time
children = []
try:
    while len(children) < F['processes'] + 40:
        child = os.fork()
        if not child:
            time.sleep(60)
            os._exit(0)
        children.append(child)
    won = True
finally:
    reap(children)
""",
        root=True,
    ),
    _attack(
        "threads without end",
        """
threading.stack_size(1 << 16)
stop = threading.Event()
threads = []
try:
    while len(threads) < F['processes'] + 40:
        threads.append(threading.Thread(target=stop.wait))
        threads[-1].start()
    won = True
finally:
    stop.set()
    for thread in threads[:-1]:
        thread.join()
""",
        root=True,
    ),
    _attack("memory without end", "hoard = bytearray(F['memory'] + (64 << 20)); won = True"),
    _attack(
        "memory in small pieces",
        """
hoard = [bytes(1 << 20) for _ in range((F['memory'] >> 20) + 64)]
won = True
""",
    ),
    _attack(
        "memory that is nobody's",
        """
d = call('memfd_create', b'x', 0)
won = [os.write(d, bytes(1 << 20)) for _ in range(8)]
""",
    ),
    _attack("memory that nobody can read", "won = call('memfd_secret', 0)"),
    _attack(
        "memory shared with nobody",
        """
import mmap
m = mmap.mmap(-1, F['memory'] + (64 << 20))
won = True
""",
    ),
    _attack(
        "memory shared by a device",
        """
import mmap
m = mmap.mmap(os.open('/dev/zero', os.O_RDWR), 1 << 20)
won = True
""",
    ),
    _attack(
        "memory shared by a device, only read",
        """
import mmap
m = mmap.mmap(os.open('/dev/zero', os.O_RDONLY), 1 << 20, prot=mmap.PROT_READ)
won = m[0] == 0
""",
    ),
    _attack(
        "memory that passes for a stack",
        """
libc.mmap.restype = ctypes.c_void_p
size = F['memory'] + (64 << 20)
place = libc.mmap(None, ctypes.c_size_t(size), 3, 0x122, -1, ctypes.c_long(0))
won = place != ctypes.c_void_p(-1).value
""",
    ),
    _attack(
        "memory that grows where it is moved",
        """
libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
page = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(4096), 3, 0x22, -1, ctypes.c_long(0)))
won = libc.mremap(page, ctypes.c_size_t(4096), ctypes.c_size_t(8192), 1) != 2**64 - 1
""",
    ),
    _attack(
        "memory of the kernel's in a socket",
        """
import socket
a, b = socket.socketpair()
a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
won = True
""",
    ),
    _attack(
        "memory of the kernel's in descriptors on their way",
        """
import array, socket
a, b = socket.socketpair()
ends = array.array('i', [a.fileno(), b.fileno()])
a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, ends)])
won = True
""",
    ),
    _attack(
        "memory that outlives its process",
        """
i = call('shmget', 0, 1 << 20, 0o1600)
checked(libc.shmctl(i, 0, None))
won = True
""",
    ),
    _attack(
        "queues that outlive their process",
        """
i = call('msgget', 0, 0o1600)
checked(libc.msgctl(i, 0, None))
won = True
""",
    ),
    _attack(
        "tables for memory that is not there",
        """
import mmap
flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000
m = mmap.mmap(-1, 1 << 38, flags=flags, prot=mmap.PROT_READ)
won = True
""",
    ),
    _attack(
        "memory that cannot be swapped",
        """
b = ctypes.create_string_buffer(1 << 20)
checked(libc.mlock(b, 1 << 20))
won = True
""",
    ),
    _attack(
        "a disk full of bytes",
        """
with open('bomb', 'wb', buffering=0) as bomb:
    try:
        for _ in range(F['scratch'] // (1 << 20) + 8):
            bomb.write(bytes(1 << 20))
        won = os.fstat(bomb.fileno()).st_size > F['scratch'] + (4 << 20)
    finally:
        os.unlink('bomb')
""",
    ),
    _attack(
        "a disk full of files",
        """
os.mkdir('bombs')
try:
    for number in range(F['inodes'] + 50):
        open(f'bombs/{number}', 'x').close()
    won = True
finally:
    for name in os.listdir('bombs'):
        os.unlink(f'bombs/{name}')
""",
    ),
    _attack(
        "descriptors without end",
        """
held = []
try:
    while len(held) < F['files'] + 40:
        held.append(os.dup(0))
    won = True
finally:
    [os.close(d) for d in held]
""",
    ),
    _attack(
        "a file that stays locked for its host",
        """
import fcntl
mine, theirs = (os.open(F['corpus'], os.O_RDONLY) for _ in range(2))
fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
try:
    fcntl.flock(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    won = True
""",
    ),
    _attack("a part of a file that stays locked", _LOCKED.format(lock=37)),
    _attack("locks that no limit counts", _LOCKED.format(lock=6)),
    _attack("larger pipes", "import fcntl; won = fcntl.fcntl(os.pipe()[0], 1031, 1 << 20)"),
)
