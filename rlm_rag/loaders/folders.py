"""The folders of a tree, each listed once: whether a link leads to it, and what is no file."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rlm_rag.loaders.files import kind_reason
from rlm_rag.loaders.git import printable_path
from rlm_rag.loaders.ignore import GIT_IGNORE_FILES, OWN_IGNORE_FILES
from rlm_rag.loaders.options import LoadReport


class Listed(NamedTuple):
    """What a folder holds besides plain files and folders; `special` with what each of them is.

    `ignore_files` are those of `OWN_IGNORE_FILES` that may be there, `rules` these and git's.
    `folders` are those in it but git's own, by which `is_repository` tells one. `contents` is all
    else that it holds, as `entries_of` takes it apart.
    """

    links: Collection[str] = ()
    special: Sequence[tuple[str, str]] = ()
    ignore_files: Sequence[str] = ()
    rules: Sequence[str] = ()
    folders: Sequence[str] = ()
    is_repository: bool = False
    contents: str = ""


# Each is before a name.
FILE, LINK, FOLDER, SPECIAL = "fldo"
RULES = (*GIT_IGNORE_FILES, *OWN_IGNORE_FILES)
"""The files that may leave out others of their folder and of those in it."""
_NOTHING = Listed()
_REPOSITORY = ".git"


@dataclass(slots=True)
class Listings:
    """Lists folders by their locations, each once."""

    _known: dict[str, Listed | None] = field(default_factory=dict)

    def of(self, folder: str) -> Listed | None:
        """Return what a folder holds; None where it cannot be listed."""
        if folder not in self._known:
            self._known[folder] = _list(folder)
        return self._known[folder]

    def ignore_files(self, folder: str) -> Sequence[str]:
        """Return which ignore files of our own may be in a folder."""
        listed = self.of(folder)
        # Its files can be read all the same.
        return OWN_IGNORE_FILES if listed is None else listed.ignore_files

    def holds_link(self, folder: str, name: str) -> bool:
        """Tell whether a name in a folder is a link, by its listing if there is one."""
        listed = self._known.get(folder)
        if listed is None:
            return os.path.islink(f"{folder}/{name}")  # noqa: PTH114
        return name in listed.links


@dataclass(slots=True)
class Folders:
    """Those at and beneath `root`, by their locations.

    Without `by_git`, whoever listed them has told of pipes, sockets and devices; git names none.
    """

    root: str
    report: LoadReport
    listings: Listings
    by_git: bool
    _known: dict[str, bool] = field(default_factory=dict)

    def holds(self, folder: str) -> bool:
        """Tell whether no part of a folder's path is a link; a tracked one may have become so."""
        known = self._known.get(folder)
        if known is None:
            known = folder == self.root or self._leads_to(*folder.rsplit("/", 1))
            self._known[folder] = known
            if known and self.by_git:
                self._tell_special(folder)
        return known

    def _leads_to(self, parent: str, name: str) -> bool:
        return self.holds(parent) and not self.listings.holds_link(parent, name)

    def _tell_special(self, folder: str) -> None:
        listed = self.listings.of(folder)
        # Of one that cannot be listed git has said so.
        for name, reason in () if listed is None else listed.special:
            path = f"{folder}/{name}"[len(self.root) + 1 :]
            self.report.skip(printable_path(path), reason)


def entries_of(contents: str) -> set[str]:
    """Return the names of what a folder holds, each after the letter that says what it is."""
    return set(contents.split("/")) if contents else set()


def _list(folder: str) -> Listed | None:
    contents: list[str] = []
    links: list[str] = []
    special: list[tuple[str, str]] = []
    rules: list[str] = []
    folders: list[str] = []
    is_repository = False
    try:
        with os.scandir(folder or "/") as entries:
            for entry in entries:
                name = entry.name
                if name == _REPOSITORY:
                    is_repository = True
                elif entry.is_file(follow_symlinks=False):
                    contents.append(FILE + name)
                    if name in RULES:
                        rules.append(name)
                elif entry.is_symlink():
                    contents.append(LINK + name)
                    links.append(name)
                elif entry.is_dir(follow_symlinks=False):
                    contents.append(FOLDER + name)
                    folders.append(name)
                else:
                    contents.append(SPECIAL + name)
                    reason = kind_reason(entry.stat(follow_symlinks=False).st_mode)
                    special.append((name, reason))
    except OSError:
        return None
    if not (contents or is_repository):
        return _NOTHING
    # The later file's rules are over the earlier's.
    own = [name for name in OWN_IGNORE_FILES if name in rules]
    all_of_it = "/".join(contents)
    return Listed(frozenset(links), sorted(special), own, rules, folders, is_repository, all_of_it)
