"""What tells, without listing a folder again, that it would be listed as it was.

A folder's times change whenever something in it is added, removed or renamed, and what git leaves
out of it is decided by files that have times as well.
"""

from __future__ import annotations

import os
import re
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlm_rag.loaders.folders import Listings
from rlm_rag.loaders.git_rules import (
    REPOSITORY_MARKS,
    environment_of_git,
    files_of_rules,
    left_out_whole,
)
from rlm_rag.loaders.intake import Intake
from rlm_rag.loaders.listing import GitListing, is_left_out_by_name
from rlm_rag.loaders.memory import FileStatus, differing, status_numbers
from rlm_rag.loaders.own import own_places
from rlm_rag.own_folders import CACHE_TAG_NAME

_MOUNTS = Path("/proc/self/mountinfo")
_MOUNT_POINT, _TYPE_AFTER = 4, " - "
# Spaces, tabs, line feeds and backslashes, in octal digits.
_ESCAPED = re.compile(r"\\([0-7]{3})")
# A program may make up no times for folders; those of FAT are not kept for its topmost, and are
# left alone by others that write to the same disk; those of another machine go by its clock.
_FOREIGN = (
    *("fuse", "vfat", "msdos", "exfat"),
    *("nfs", "cifs", "smb", "9p", "virtiofs", "vboxsf", "prl_fs"),
    *("afs", "ceph", "lustre", "gfs2", "ocfs2"),
)
_LONG_AGO = FileStatus(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Witness:
    """Paths that were looked at, with their statuses (`status_numbers`), and where nothing was.

    `environment` is what of the process decided besides.
    """

    environment: str
    paths: Sequence[str]
    statuses: array[int]
    absent: Sequence[str]

    def holds(self) -> bool:
        """Tell whether all is as it was."""
        return (
            _environment() == self.environment
            and not any(map(os.path.lexists, self.absent))
            and not differing(self.paths, self.statuses, look=os.stat)
        )


@dataclass(slots=True)
class Sighting:
    """What a load sees of the folder `root`; `listing` is None until git has listed it.

    `own` are the folders of this program that were left out of it.
    """

    intake: Intake
    root: str = ""
    listing: GitListing | None = None
    own: Sequence[str] = ()
    listings: Listings = field(default_factory=Listings)


def witness_of(sightings: Iterable[Sighting], settled_before_ns: int) -> Witness | None:
    """Return what tells that all folders of a load would be listed as they were.

    None where that cannot be told: on Windows, in file systems whose folders may have no times,
    with repositories within, or where something changed after `settled_before_ns`.
    """
    environment = _environment()
    if environment is None or os.name != "posix":
        return None
    statuses: dict[str, FileStatus] = {}
    absent: dict[str, None] = {}
    for sighting in sightings:
        paths = _paths_of(sighting)
        if paths is None:
            return None
        for path in paths:
            try:
                statuses[path] = FileStatus.of(os.stat(path))  # noqa: PTH116
            except (FileNotFoundError, NotADirectoryError):
                absent[path] = None
            except OSError:
                return None
    looked_at = [*statuses.values(), *map(_nearest, absent)]
    if any(one.changed_ns > settled_before_ns for one in looked_at):
        return None
    return Witness(environment, [*statuses], status_numbers(statuses.values()), [*absent])


def _environment() -> str | None:
    """Return what of the process decides what is listed; None where it cannot be told."""
    of_git = environment_of_git()
    if of_git is None:
        return None
    # Under another one the kept names may be none.
    return "\0".join((sys.getfilesystemencoding(), of_git, *own_places()))


def _nearest(path: str) -> FileStatus:
    """Return the status of the folder in which a path would come to be.

    Of a repository's marks it is that of long ago: none was there when git looked for them.
    """
    parents = () if Path(path).name in REPOSITORY_MARKS else Path(path).parents
    for parent in parents:
        try:
            return FileStatus.of(parent.stat())
        except (FileNotFoundError, NotADirectoryError):
            continue
    return _LONG_AGO


def _paths_of(sighting: Sighting) -> list[str] | None:
    root, listing, options = sighting.root, sighting.listing, sighting.intake.options
    # What a link leads to may change without a trace here, and so may a file beyond a limit.
    is_more = options.follow_symlinks or options.max_total_bytes is not None
    if listing is None or not listing.is_whole or is_more or _is_foreign(root):
        return None
    folders = [name.removesuffix("/") for name in listing.ignored if name.endswith("/")]
    if listing.outside:
        passed = {one for one in folders if is_left_out_by_name(one, options)}
    else:
        whole = left_out_whole(root, folders)
        if whole is None:
            return None
        passed = whole
    own = [f"{root}/{name}" for name in sighting.own]
    beneath = _looked_into(
        root, sighting.listings, {f"{root}/{name}" for name in passed}.union(own)
    )
    files = None if beneath is None else files_of_rules(root, outside=listing.outside)
    if beneath is None or files is None:
        return None
    # Without it one that is not of this user would be a folder like others.
    tags = filter(os.path.lexists, (f"{folder}/{CACHE_TAG_NAME}" for folder in own))
    return [*beneath, *tags, *files]


def _looked_into(root: str, listings: Listings, passed: set[str]) -> list[str] | None:
    """Return the folders that git looks into, and the files of rules in them.

    None where one cannot be listed, or is a repository of its own.
    """
    found: list[str] = []
    pending = [root]
    while pending:
        folder = pending.pop()
        listed = listings.of(folder)
        if listed is None or (listed.is_repository and folder != root):
            return None
        found.append(folder or "/")
        found += (f"{folder}/{name}" for name in listed.rules)
        beneath = (f"{folder}/{name}" for name in listed.folders)
        pending += (path for path in beneath if path not in passed)
    return found


def _is_foreign(root: str) -> bool:
    """Tell whether a folder lies in a file system whose folders' times do not tell of changes.

    Or holds such a one.
    """
    try:
        lines = os.fsdecode(_MOUNTS.read_bytes()).splitlines()
    except OSError:
        # No Linux.
        return False
    here = f"{root}/"
    mounts = [(_mount_point(line), line.partition(_TYPE_AFTER)[2]) for line in lines]
    nearest = max((point for point, _ in mounts if here.startswith(point)), key=len, default="/")
    return any(
        kind.startswith(_FOREIGN) and (point == nearest or point.startswith(here))
        for point, kind in mounts
    )


def _mount_point(line: str) -> str:
    escaped = line.split(" ")[_MOUNT_POINT].rstrip("/")
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), escaped) + "/"
