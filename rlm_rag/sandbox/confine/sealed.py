"""Makes the command line of a worker that seals itself before its program begins."""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from rlm_rag.sandbox.confine.identity import Identity
from rlm_rag.sandbox.confine.seccomp import OWN_PID, filter_program

_SCRIPT = Path(__file__).with_name("seal.py")
# Compiled by the host, whose interpreter the worker's is; a worker would take 2 ms for it.
# It first waits for a byte, or the end, of its input: a host can bound it only until it is sealed.
_LINE = """\
{ends}import posix
posix.read(0, 1)
import marshal
names = {{}}
exec(marshal.loads(bytes.fromhex("{script}")), names)
names["seal"](**{facts!r})
del marshal, names, posix
exec(compile({code!r}, "<string>", "exec"))
"""
# Before anything else, since what has been read cannot be handed on.
_TAKE_ENDS = """\
import posix, sys
for end in (1, 0):
    number = int(sys.argv.pop())
    posix.dup2(number, end)
    posix.close(number)
del end, number, sys
"""


def sealed(
    command: Sequence[str],
    *,
    readable: Sequence[str],
    writable: Sequence[str],
    listed: Iterable[str] = (),
    landlock: int,
    identity: Identity,
    scratch: str = "",
    bounds: str = "",
    parent_is_root: bool = False,
    takes_ends: bool = False,
) -> list[str]:
    """Return `command`, an interpreter with `-c CODE`, changed to close itself before CODE.

    `readable`, `listed` (names alone) and `writable` are what Landlock (at least version
    `landlock`) leaves, as paths seen inside; without a writable folder, calls that create or
    change files are refused too. `scratch` is a mount of the worker's own, to be bounded by the
    options `bounds` ("" where it is already), for which it needs CAP_SYS_ADMIN at its start.
    `parent_is_root` says that its parent is root without privileges, whose death the kernel only
    signals to root's processes: its saved user id then stays root's, which the filter keeps it
    from using. `takes_ends` has it move the descriptors that its last two arguments name to its
    stdin and stdout.

    Raises:
        SandboxUnavailableError: this machine's system calls are not known.
    """
    facts = {
        **_files(readable, listed, writable),
        "own_pid": OWN_PID.to_bytes(4, "little"),
        "landlock": landlock,
        "scratch": scratch,
        "bounds": bounds,
        "user": identity.user,
        "saved": 0 if parent_is_root else identity.user,
        "kept": identity.kept,
    }
    return _with_seal(command, facts, _TAKE_ENDS if takes_ends else "")


def _files(
    readable: Iterable[str], listed: Iterable[str], writable: Sequence[str]
) -> dict[str, object]:
    writes = any(not path.startswith("/dev/") for path in writable)
    return {
        "calls": filter_program(writing=writes),
        "readable": list(readable),
        "listed": list(listed),
        "writable": list(writable),
    }


def _with_seal(command: Sequence[str], facts: Mapping[str, object], ends: str) -> list[str]:
    at = command.index("-c") + 1
    line = _LINE.format(ends=ends, script=_compiled(), facts=facts, code=command[at])
    return [*command[:at], line, *command[at + 1 :]]


@cache
def _compiled() -> str:
    code = compile(_SCRIPT.read_bytes(), "<seal>", "exec", dont_inherit=True, optimize=2)
    return marshal.dumps(code).hex()
