"""Changing what is not the worker's."""

from __future__ import annotations

from tests.sandbox.attacks.attack import Attack


def _attack(name: str, code: str, *, root: bool = False) -> Attack:
    return Attack("writes", name, code, root=root)


ATTACKS = (
    _attack("append to a file", "won = open(F['target'], 'a').write('x')"),
    _attack(
        "make a file",
        """
open(F['folder'] + '/made', 'x').close()
os.unlink(F['folder'] + '/made')
won = True
""",
    ),
    _attack(
        "make a folder",
        """
os.mkdir(F['folder'] + '/made')
os.rmdir(F['folder'] + '/made')
won = True
""",
    ),
    _attack(
        "remove a file",
        """
os.rename(F['target'], F['target'] + '.gone')
os.rename(F['target'] + '.gone', F['target'])
won = True
""",
    ),
    _attack("shorten a file", "os.truncate(F['target'], 0); won = True"),
    _attack("open a file to all", "os.chmod(F['target'], 0o777); won = True"),
    _attack("give a file away", "os.chown(F['target'], 0, 0); won = True", root=True),
    _attack("forge a file's time", "os.utime(F['target'], (1, 1)); won = True"),
    _attack(
        "note something on a file",
        """
os.setxattr(F['target'], 'user.note', b'x')
won = True
""",
    ),
    _attack(
        "link to a file",
        """
os.link(F['secret'], 'linked')
won = open('linked').read()
os.unlink('linked')
""",
    ),
    _attack(
        "follow a link of its own",
        """
os.symlink(F['secret'], 'symlinked')
won = open('symlinked').read()
""",
    ),
    _attack(
        "write through a link of its own",
        """
os.symlink(F['target'], 'written')
won = open('written', 'a').write('x')
""",
    ),
    _attack("change the corpus", "won = open(F['corpus'], 'a').write('')  == 0"),
    _attack(
        "change the worker's source",
        """
won = open(F['sources'] + '/rlm_rag/errors.py', 'a').write('') == 0
""",
    ),
    _attack("change the compiled source", "won = open(F['compiled'], 'ab').write(b'') == 0"),
    _attack("change the standard library", "won = open(os.__file__, 'a').write('') == 0"),
    _attack(
        "change the interpreter",
        """
s = os.stat(sys.executable)
os.utime(sys.executable, ns=(s.st_atime_ns, s.st_mtime_ns))
won = True
""",
    ),
    _attack(
        "make a device",
        """
os.mknod('device', 0o20666, os.makedev(1, 1))
os.unlink('device')
won = True
""",
        root=True,
    ),
    _attack(
        "make a pipe elsewhere",
        """
os.mkfifo(F['folder'] + '/pipe')
os.unlink(F['folder'] + '/pipe')
won = True
""",
    ),
    _attack(
        "make a program that runs as its owner",
        """
open('run', 'w').close()
os.chmod('run', 0o4755)
won = os.stat('run').st_mode & 0o4000
os.unlink('run')
""",
    ),
    _attack(
        "make one by its descriptor",
        """
f = open('run', 'w')
os.fchmod(f.fileno(), 0o6755)
won = os.fstat(f.fileno()).st_mode & 0o6000
os.unlink('run')
""",
    ),
    _attack(
        "write to shared memory",
        """
open('/dev/shm/rlm-rag-made', 'x').close()
os.unlink('/dev/shm/rlm-rag-made')
won = True
""",
    ),
    _attack("write to a device", "won = os.open('/dev/random', os.O_WRONLY)"),
    _attack("write to the kernel's log", "won = os.open('/dev/kmsg', os.O_WRONLY)", root=True),
    _attack(
        "change a kernel setting",
        """
won = open('/proc/sys/kernel/core_pattern', 'r+')
""",
        root=True,
    ),
)
