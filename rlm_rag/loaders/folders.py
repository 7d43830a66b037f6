"""The folders of a tree, each looked at once: whether a link leads to it, and what is no file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from rlm_rag.loaders.files import kind_reason
from rlm_rag.loaders.git import printable_path
from rlm_rag.loaders.options import LoadReport


@dataclass(slots=True)
class Folders:
    """Those at and beneath `root`, by their locations.

    Without `by_git`, whoever listed them has told of pipes, sockets and devices; git names none.
    """

    root: str
    report: LoadReport
    by_git: bool
    _known: dict[str, bool] = field(default_factory=dict)

    def holds(self, folder: str) -> bool:
        """Tell whether no part of a folder's path is a link; a tracked one may have become so."""
        known = self._known.get(folder)
        if known is None:
            known = folder == self.root or (
                self.holds(folder[: folder.rindex("/")]) and not os.path.islink(folder)  # noqa: PTH114
            )
            self._known[folder] = known
            if known and self.by_git:
                self._tell_special(folder)
        return known

    def _tell_special(self, folder: str) -> None:
        try:
            with os.scandir(folder or "/") as entries:
                special = [entry for entry in entries if _is_special(entry)]
        except OSError:
            # Its files can be read all the same; git has said what it could not list.
            return
        for entry in sorted(special, key=lambda entry: entry.name):
            reason = kind_reason(entry.stat(follow_symlinks=False).st_mode)
            path = f"{folder}/{entry.name}"[len(self.root) + 1 :]
            self.report.skip(printable_path(path), reason)


def _is_special(entry: os.DirEntry[str]) -> bool:
    if entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False):
        return False
    return not entry.is_symlink()
