"""Reading what is the host's."""

from __future__ import annotations

from tests.sandbox.attacks.attack import Attack


def _attack(name: str, code: str, *, root: bool = False) -> Attack:
    return Attack("secrets", name, code, root=root)


ATTACKS = (
    _attack("a file of the user", "won = open(F['secret']).read() == F['marker']"),
    _attack(
        "a file by way of the root of /proc",
        """
won = open('/proc/self/root' + F['secret']).read()
""",
    ),
    _attack(
        "a file by way of another process' root",
        """
won = open(f"/proc/{F['host']}/root{F['secret']}").read()
""",
        root=True,
    ),
    _attack(
        "a file by climbing out",
        """
won = open('../' * 40 + F['secret'].lstrip('/')).read()
""",
    ),
    _attack(
        "a file relative to a descriptor of /",
        """
won = os.read(os.open(F['secret'][1:], os.O_RDONLY, dir_fd=os.open('/', os.O_PATH)), 10)
""",
    ),
    _attack("the folder of the user", "won = os.listdir(F['folder'])"),
    _attack("the home folder", "won = set(F['home_names']) & set(os.listdir(F['home']))"),
    _attack("the list of users", "won = 'root' in open('/etc/passwd').read()"),
    _attack("the passwords", "won = open('/etc/shadow').read()", root=True),
    _attack("the project's own sources", "won = open(F['project'] + '/pyproject.toml').read()"),
    _attack(
        "the environment of a process",
        """
won = F['key'] in open(f"/proc/{F['victim']}/environ").read()
""",
    ),
    _attack(
        "the arguments of a process",
        """
won = open(f"/proc/{F['victim']}/cmdline").read()
""",
    ),
    _attack("the maps of a process", "won = open(f\"/proc/{F['victim']}/maps\").read()"),
    _attack("the memory of a process", "won = open(f\"/proc/{F['victim']}/mem\", 'rb')"),
    _attack(
        "an open file of the host",
        """
won = open(f"/proc/{F['host']}/fd/{F['descriptor']}").read()
""",
    ),
    _attack(
        "a process, by attaching to it",
        """
checked(libc.ptrace(16, F['victim'], None, None))
os.waitpid(F['victim'], 0x40000000)
checked(libc.ptrace(17, F['victim'], None, None))
won = True
""",
    ),
    _attack(
        "a process, by seizing it",
        """
checked(libc.ptrace(0x4206, F['victim'], None, None))
checked(libc.ptrace(0x4207, F['victim'], None, None))
os.waitpid(F['victim'], 0x40000000)
checked(libc.ptrace(17, F['victim'], None, None))
won = True
""",
    ),
    *(
        _attack(
            f"a process' memory with process_vm_{verb}",
            f"""
span = (ctypes.c_size_t * 2)(0, 8)
try:
    call('process_vm_{verb}', F['victim'], ctypes.byref(span), 1, ctypes.byref(span), 1, 0)
except OSError as error:
    won = error.errno == 14  # It was allowed, and the address was none.
    if not won:
        raise
""",
        )
        for verb in ("readv", "writev")
    ),
    _attack(
        "a file by its handle",
        """
handle = ctypes.create_string_buffer(bytes.fromhex(F['handle']))
won = os.read(call('open_by_handle_at', os.open('/', os.O_RDONLY), handle, 0), 10)
""",
        root=True,
    ),
    _attack(
        "a descriptor of another process",
        """
won = call('pidfd_getfd', call('pidfd_open', F['host'], 0), F['descriptor'], 0)
""",
    ),
    _attack(
        "whether two processes share files",
        """
won = call('kcmp', F['host'], F['victim'], 2, 0, 0) >= 0
""",
        root=True,
    ),
    _attack("the keys of the session", "won = call('keyctl', 0, -3, 1)"),
    _attack("the kernel's log", "won = call('syslog', 10, None, 0)", root=True),
    _attack("a disk", "won = os.read(os.open(F['disk'], os.O_RDONLY), 512)", root=True),
    _attack("the machine's hardware", "won = os.listdir('/sys/class')"),
    _attack(
        "what changes in a folder",
        """
won = checked(libc.inotify_add_watch(checked(libc.inotify_init1(0)), F['folder'].encode(), 0x100))
""",
    ),
    _attack("what changes on the machine", "won = call('fanotify_init', 0, 0) >= 0", root=True),
)
