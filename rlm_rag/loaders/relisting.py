"""What came and went in a folder since it was listed: those of its folders that changed looked at.

Git is asked about what came and went alone; all else of the folder is as it was while the files
that say what git lists are.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from rlm_rag.loaders.folders import FILE, FOLDER, LINK, RULES, SPECIAL, Listings, entries_of
from rlm_rag.loaders.holders import holders
from rlm_rag.loaders.ignore import OWN_IGNORE_FILES
from rlm_rag.loaders.listing import ENVIRONMENT_MARK, GitListing, LeftOut, list_again
from rlm_rag.loaders.memory import STATUS_NUMBERS, UNSETTLED, FileStatus
from rlm_rag.loaders.options import LoadOptions
from rlm_rag.loaders.witness import Witness, is_foreign, looked_into, passed_by
from rlm_rag.own_folders import CACHE_TAG_NAME

# Of more, listing all takes as long; and they go into git's command.
_MOST_CHANGES = 1000
_MOST_COMMAND_BYTES = 100_000
# They decide about others than themselves.
_DECIDING = frozenset((*OWN_IGNORE_FILES, CACHE_TAG_NAME, ENVIRONMENT_MARK))
# In a folder that git is not asked about, its rules do so, too.
_DECIDING_IN_KNOWN = _DECIDING.union(RULES)


@dataclass(frozen=True, slots=True)
class Relisted:
    """How the folder `root` is listed now; files and links go by their names in it.

    Those `removed` are not there any more, and those `listed` are new, or went and git names them
    still. What else there is, is as it was. `left_out` is None where nothing came or went.
    """

    root: str
    removed: frozenset[str]
    listed: Sequence[str]
    left_out: LeftOut | None
    witness: Witness


def relist(
    witness: Witness,
    left_out: LeftOut | None,
    locations: Sequence[str],
    options: LoadOptions,
    settled_before_ns: int,
) -> Relisted | None:
    """Look at the folders that changed since they were witnessed, and at no others.

    `locations` are of files that were read then. None where that does not tell what listing all
    would: where `left_out` is not known, where what decides about other files came, went or
    changed, or where a folder may be left out as a whole now, or was.
    """
    differences = witness.differences(_MOST_CHANGES)
    if differences is None:
        return None
    changes = _Changes(witness, options, settled_before_ns)
    if not changes.look_at(differences.rows):
        return None
    if changes.came or changes.went:
        return left_out and changes.listed(left_out, locations, differences.back)
    if differences.back:
        return None
    now = changes.witness_now() if differences.rows else witness
    return Relisted(changes.root, frozenset(), (), None, now)


@dataclass(slots=True)
class _Changes:
    """What `came` and `went` are names in the root, each after the letter that says what it is.

    `folders` are those that changed or came, by their locations, `rules` the files of rules that
    came.
    """

    witness: Witness
    options: LoadOptions
    settled_before_ns: int
    root: str = field(init=False)
    came: set[str] = field(default_factory=set)
    went: set[str] = field(default_factory=set)
    listings: Listings = field(default_factory=Listings)
    folders: dict[str, tuple[FileStatus, str]] = field(default_factory=dict)
    rules: dict[str, FileStatus] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root = self.witness.paths[0].rstrip("/")

    def look_at(self, rows: Sequence[int]) -> bool:
        """Compare the folders in some rows of the witness; False where that is not enough."""
        paths, count = self.witness.paths, len(self.witness.contents)
        # Those above come first.
        for row in sorted((row for row in rows if row < count), key=paths.__getitem__):
            if not self._look_into(row):
                return False
        # What is there now may be on another disk.
        if self.folders and is_foreign(os.path.commonpath(self.folders).rstrip("/")):
            return False
        beneath = self._locations_beneath(self.went)
        return all(_is_rule_in(paths[row], beneath) for row in rows if row >= count)

    def _look_into(self, row: int) -> bool:
        folder = self.witness.paths[row].rstrip("/")
        if f"{folder}/".startswith(self._locations_beneath(self.went)):
            return True
        listed, status = self.listings.of(folder), self._status(folder)
        if listed is None or status is None or (listed.is_repository and row):
            return False
        before, now = entries_of(self.witness.contents[row]), entries_of(listed.contents)
        if any(one[0] == SPECIAL or one[1:] in _DECIDING_IN_KNOWN for one in before ^ now):
            return False
        base = f"{folder}/".removeprefix(f"{self.root}/")
        self.went.update(one[0] + base + one[1:] for one in before - now)
        self.came.update(one[0] + base + one[1:] for one in now - before)
        self.folders[folder or "/"] = status, listed.contents
        return True

    def listed(
        self, left_out: LeftOut, locations: Sequence[str], back: Sequence[str]
    ) -> Relisted | None:
        """Return what git says now; None as `relist`."""
        asked = sorted({one[1:] for one in self.came | self.went})
        size_bytes = sum(len(os.fsencode(name)) + 1 for name in asked)
        if len(asked) > _MOST_CHANGES or size_bytes > _MOST_COMMAND_BYTES:
            return None
        again = list_again(f"{self.root}/", asked, self.options, outside=left_out.outside)
        removed = self._removed()
        if again is None or removed is None or not self._follow(again):
            return None
        if not {f"{self.root}/{name}" for name in again.names}.issuperset(back):
            return None
        holder_of = holders(asked)
        kept = [name for name in left_out.names if holder_of(f"{name}/") is None]
        now = LeftOut(sorted((*kept, *again.ignored)), left_out.outside)
        if not self._stand_by_themselves(locations, removed, (*left_out.names, *now.names)):
            return None
        return Relisted(self.root, removed, again.names, now, self.witness_now())

    def _removed(self) -> frozenset[str] | None:
        """Return the files and links that went, and those in folders that did."""
        files = {one[1:] for one in self.went if one[0] in (FILE, LINK)}
        beneath = self._locations_beneath(self.went)
        for folder, contents in zip(self.witness.paths, self.witness.contents, strict=False):
            if f"{folder}/".startswith(beneath) and not self._take_files(folder, contents, files):
                return None
        return frozenset(files)

    def _follow(self, again: GitListing) -> bool:
        """Look into the folders that came; False where git does not tell of all that is there."""
        root, options = self.root, self.options
        passed = passed_by(root, again.ignored, options, outside=again.outside)
        files = {one[1:] for one in self.came if one[0] in (FILE, LINK)}
        no_folders = tuple(f"{name}/" for name in files)
        if passed is None:
            return False
        for location in (f"{root}/{one[1:]}" for one in self.came if one[0] == FOLDER):
            if location not in passed and not self._enter(location, passed, files):
                return False
        listed = set(again.names)
        holder_of = holders(name.removesuffix("/") for name in again.ignored)
        return all(holder_of(f"{name}/") is not None for name in files - listed) and not any(
            name.endswith("/") or name.startswith(no_folders) for name in listed - files
        )

    def _enter(self, top: str, passed: set[str], files: set[str]) -> bool:
        listed = self.listings.of(top)
        if listed is None or listed.is_repository:
            return False
        seen = looked_into(top, self.listings, passed)
        if seen is None:
            return False
        for folder, contents in seen.folders.items():
            status = self._status(folder)
            if status is None or not self._take_files(folder, contents, files):
                return False
            self.folders[folder] = status, contents
        for rule in seen.others:
            # One that is gone by now, or changes, is met by the next load.
            self.rules[rule] = self._status(rule) or UNSETTLED
        return True

    def _take_files(self, folder: str, contents: str, files: set[str]) -> bool:
        """Add the files and links of a folder; False where one decides about others."""
        base = f"{folder}/"[len(self.root) + 1 :]
        for one in entries_of(contents):
            if one[0] == SPECIAL or one[1:] in _DECIDING:
                return False
            if one[0] != FOLDER:
                files.add(base + one[1:])
        return True

    def _stand_by_themselves(
        self, locations: Sequence[str], removed: frozenset[str], left_out: Iterable[str]
    ) -> bool:
        """Tell whether what is left out near what came and went is so without its folder.

        Git names a folder in place of all in it where it leaves out all of it. Of `locations`
        each that was not removed keeps the folders above it from that, before and now.
        """
        tops = {name.partition("/")[0] for name in left_out if "/" in name}
        within = {one[1:].rpartition("/")[0] for one in self.came | self.went}
        folders = [name for name in within if name and name.partition("/")[0] in tops]
        if not folders:
            return True
        start = len(self.root) + 1
        ordered = sorted(one for one in locations if one[start:] not in removed)
        for folder in folders:
            beneath = f"{self.root}/{folder}/"
            place = bisect_left(ordered, beneath)
            if place == len(ordered) or not ordered[place].startswith(beneath):
                return False
        return True

    def witness_now(self) -> Witness:
        """Return what tells later that all is as it is now."""
        witness, count = self.witness, len(self.witness.contents)
        beneath = self._locations_beneath(self.went)
        statuses: dict[str, Sequence[int]] = {
            path: witness.statuses[STATUS_NUMBERS * row : STATUS_NUMBERS * (row + 1)]
            for row, path in enumerate(witness.paths)
            if not (f"{path}/".startswith(beneath) if row < count else _is_rule_in(path, beneath))
        }
        contents = {
            path: contents
            for path, contents in zip(witness.paths[:count], witness.contents, strict=True)
            if path in statuses
        }
        others = [path for path in statuses if path not in contents]
        contents |= {path: contents for path, (_, contents) in self.folders.items()}
        statuses |= {path: status for path, (status, _) in self.folders.items()} | self.rules
        paths = [*contents, *others, *self.rules]
        numbers = array("q", chain.from_iterable(statuses[path] for path in paths))
        return replace(witness, paths=paths, statuses=numbers, contents=[*contents.values()])

    def _status(self, location: str) -> FileStatus | None:
        """Return a status that tells of later changes, and none that it could have already."""
        try:
            status = FileStatus.of(os.stat(location or "/"))  # noqa: PTH116
        except OSError:
            return None
        return UNSETTLED if status.changed_ns > self.settled_before_ns else status

    def _locations_beneath(self, entries: Iterable[str]) -> tuple[str, ...]:
        return tuple(f"{self.root}/{one[1:]}/" for one in entries if one[0] == FOLDER)


def _is_rule_in(path: str, folders: tuple[str, ...]) -> bool:
    """Tell whether a file is one of rules that go with the folder that they are in."""
    return path.startswith(folders) and path.rpartition("/")[2] in RULES
