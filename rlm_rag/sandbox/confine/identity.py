"""Who a worker is where its host is root: a user that owns nothing and runs nothing else."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

CHOWN, READ_ALL, SET_GROUP, SET_USER, SET_BOUNDING, ADMINISTER = (
    1 << number for number in (0, 2, 6, 7, 8, 21)
)

# What systemd hands out for a service's lifetime (its UIDS-GIDS document): nobody owns files so.
_FIRST_USER, _USERS = 61184, 4336
_turn = itertools.count()


@dataclass(frozen=True, slots=True)
class Identity:
    """The user, by kernel id, that a worker becomes; 0 where it stays what its host is.

    `kept` is the mask of capabilities that it keeps: at most CAP_DAC_READ_SEARCH, where what it
    is to read is closed to others; what there is to read is bounded by its view, or by Landlock.
    """

    user: int = 0
    kept: int = 0


def worker_identity(readable: Iterable[str], *, needs: int, whole_path: bool = False) -> Identity:
    """Return who a new worker is, that is to read the files and folders `readable`.

    A host that is root with the capabilities `needs` gives it a user of its own, so that its
    number of processes is limited and files' modes hold. `whole_path` says that it reaches
    what is readable by its path on the host, not by a mount.
    """
    if os.geteuid() != 0:
        return Identity()
    is_open = all(_is_open(Path(path), whole_path=whole_path) for path in readable)
    kept = 0 if is_open else READ_ALL
    # One that lacks what would be kept, as root in a container may, can still read as the owner.
    needs |= SET_GROUP | SET_USER | SET_BOUNDING | kept
    if _capabilities() & needs != needs:
        return Identity()
    user = _FIRST_USER + (os.getpid() * 64 + next(_turn)) % _USERS
    if not _is_mapped(user):
        return Identity()
    return Identity(user, kept)


def _capabilities() -> int:
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def _is_mapped(user: int) -> bool:
    rows = (row.split() for row in Path("/proc/self/uid_map").read_text("ascii").splitlines())
    return any(int(first) <= user < int(first) + int(count) for first, _, count in rows)


def _is_open(path: Path, *, whole_path: bool) -> bool:
    mode = path.stat().st_mode
    others = 0o5 if path.is_dir() else 0o4
    above = path.parents if whole_path else ()
    return mode & others == others and all(folder.stat().st_mode & 0o1 for folder in above)
