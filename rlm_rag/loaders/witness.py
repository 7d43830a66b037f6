"""What tells, without listing a folder again, that it would be listed as it was.

A folder's times change whenever something in it is added, removed or renamed, and what git leaves
out of it is decided by files that have times as well.
"""

from __future__ import annotations

import os
import re
import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

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
from rlm_rag.loaders.options import LoadOptions
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


class Differences(NamedTuple):
    """The rows of paths that are not as they were, and the files that are there again."""

    rows: Sequence[int]
    back: Sequence[str]


@dataclass(frozen=True, slots=True)
class Witness:
    """Paths that were looked at, with their statuses (`status_numbers`), and where nothing was.

    The first paths are folders, as many as there are `contents` (as in `Listed`); the first of all
    is the root of a load of one folder. `gone` are files that git names and that are not there,
    `environment` is what of the process decided besides.
    """

    environment: str
    paths: Sequence[str]
    statuses: array[int]
    absent: Sequence[str]
    contents: Sequence[str]
    gone: Sequence[str]

    def differences(self, most: int) -> Differences | None:
        """Return what is otherwise; None where that is too much, or what was absent decides now."""
        if _environment() != self.environment or any(map(os.path.lexists, self.absent)):
            return None
        rows = differing(self.paths, self.statuses, most=most, look=os.stat)
        if len(rows) > most:
            return None
        return Differences(rows, [path for path in self.gone if os.path.lexists(path)])


@dataclass(slots=True)
class Sighting:
    """What a load sees of the folder `root`; `listing` is None until git has listed it.

    `own` are the folders of this program that were left out of it. `only` tells which paths are
    the source at all; with `is_prefixed` another one stands before them in the corpus.
    """

    intake: Intake
    root: str = ""
    only: Callable[[str], bool] = lambda path: True
    is_prefixed: bool = False
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
    folders: dict[str, str] = {}
    others: dict[str, None] = {}
    absent: dict[str, None] = {}
    gone: dict[str, None] = {}
    for sighting in sightings:
        seen = _seen(sighting)
        if seen is None:
            return None
        folders |= seen.folders
        others |= dict.fromkeys(seen.others)
        gone |= dict.fromkeys(sighting.intake.memory.gone)
    statuses: dict[str, FileStatus] = {}
    for path in (*folders, *others):
        try:
            statuses[path] = FileStatus.of(os.stat(path))  # noqa: PTH116
        except (FileNotFoundError, NotADirectoryError):
            if path in folders:
                return None
            absent[path] = None
        except OSError:
            return None
    looked_at = [*statuses.values(), *map(_nearest, (*absent, *gone))]
    if any(one.changed_ns > settled_before_ns for one in looked_at):
        return None
    numbers, contents = status_numbers(statuses.values()), [*folders.values()]
    return Witness(environment, [*statuses], numbers, [*absent], contents, [*gone])


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


class Seen(NamedTuple):
    """The folders that git looked into, each with its contents, and other files that decide."""

    folders: dict[str, str]
    others: Sequence[str]


def _seen(sighting: Sighting) -> Seen | None:
    root, listing, options = sighting.root, sighting.listing, sighting.intake.options
    # What a link leads to may change without a trace here, and so may a file beyond a limit.
    is_more = options.follow_symlinks or options.max_total_bytes is not None
    if listing is None or not listing.is_whole or is_more or is_foreign(root):
        return None
    passed = passed_by(root, listing.ignored, options, outside=listing.outside)
    if passed is None:
        return None
    own = [f"{root}/{name}" for name in sighting.own]
    passed.update(own)
    beneath = looked_into(root, sighting.listings, passed)
    files = None if beneath is None else files_of_rules(root, outside=listing.outside)
    # One that is both may go with its folder, and decide elsewhere.
    if beneath is None or files is None or not set(files).isdisjoint(beneath.others):
        return None
    # Without it one that is not of this user would be a folder like others.
    tags = filter(os.path.lexists, (f"{folder}/{CACHE_TAG_NAME}" for folder in own))
    return Seen(beneath.folders, [*beneath.others, *tags, *files])


def passed_by(
    root: str, ignored: Iterable[str], options: LoadOptions, *, outside: bool
) -> set[str] | None:
    """Return the locations of the folders that git does not look into, of those left out.

    None where git does not say.
    """
    names = [name.removesuffix("/") for name in ignored if name.endswith("/")]
    if outside:
        passed = {name for name in names if is_left_out_by_name(name, options)}
    else:
        whole = left_out_whole(root, names)
        if whole is None:
            return None
        passed = whole
    return {f"{root}/{name}" for name in passed}


def looked_into(top: str, listings: Listings, passed: set[str]) -> Seen | None:
    """Return the folders that git looks into at and beneath one, and the files of rules in them.

    None where one cannot be listed, or is a repository of its own.
    """
    folders: dict[str, str] = {}
    rules: list[str] = []
    pending = [top]
    while pending:
        folder = pending.pop()
        listed = listings.of(folder)
        if listed is None or (listed.is_repository and folder != top):
            return None
        folders[folder or "/"] = listed.contents
        rules += (f"{folder}/{name}" for name in listed.rules)
        beneath = (f"{folder}/{name}" for name in listed.folders)
        pending += (path for path in beneath if path not in passed)
    return Seen(folders, rules)


def is_foreign(root: str) -> bool:
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
