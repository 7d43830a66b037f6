"""A folder walked without git: its ignore files are read here, as git would read them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rlm_rag.errors import SourceError
from rlm_rag.loaders.files import failure_reason
from rlm_rag.loaders.git import printable_path
from rlm_rag.loaders.ignore import GIT_IGNORE_FILES, IgnoreFiles, IgnoreRules
from rlm_rag.loaders.listing import (
    ENVIRONMENT_MARK,
    ENVIRONMENT_REASON,
    IGNORED_REASON,
    OWN_REPOSITORY_REASON,
    reason_by_name,
)
from rlm_rag.loaders.options import LoadOptions, LoadReport
from rlm_rag.loaders.own import OwnFolders


def walk(root: str, options: LoadOptions, report: LoadReport, own: OwnFolders) -> Iterator[str]:
    """Yield the paths of the files beneath `root`, relative to it.

    Where `root` lies in a work tree, hidden files count, and the rules of the folders above hold
    and those of `.git/info/exclude`; repositories within it are left out.

    Raises:
        SourceError: `root` cannot be listed.
    """
    top = _work_tree_of(root)
    prefix = "" if top is None else f"{root.removeprefix(top)}/".removeprefix("/")

    def cannot_follow(path: str, pattern: str) -> None:
        shown = printable_path(path).removeprefix(prefix)
        report.warn(shown, f"cannot follow {pattern!r:.300} without git")

    within = root if top is None else top
    files = IgnoreFiles(within, lambda _: GIT_IGNORE_FILES, cannot_follow)
    rules = _rules_above(files, prefix, top is not None) if options.ignore else IgnoreRules()
    pending = [("", rules)]
    while pending:
        base, rules = pending.pop()
        entries = _scan(root, base, report)
        if options.ignore:
            rules = files.within(rules, prefix + base)
        for entry in entries:
            folder = entry.is_dir(follow_symlinks=False)
            path = base + entry.name
            reason = reason_by_name(entry.name, path, options, in_work_tree=top is not None)
            if reason is None and folder:
                reason = own.reason(path) or _reason_against_folder(
                    entry, options, in_work_tree=top is not None
                )
            if reason is None and options.ignore and rules.ignores(prefix + path, folder=folder):
                reason = IGNORED_REASON
            if reason is not None:
                report.skip(printable_path(path), reason)
            elif folder:
                pending.append((f"{path}/", rules))
            else:
                yield path


def _scan(root: str, base: str, report: LoadReport) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(f"{root}/{base}") as scanned:
            return sorted(scanned, key=lambda entry: entry.name)
    except OSError as error:
        if not base:
            raise SourceError(
                f"Cannot list the folder {root or '/'}: {error.strerror}.",
                hint="Check that you may read it.",
            ) from error
        report.miss(printable_path(base[:-1]), failure_reason(error))
        return []


def _reason_against_folder(
    entry: os.DirEntry[str], options: LoadOptions, *, in_work_tree: bool
) -> str | None:
    if in_work_tree:
        inner = options.ignore and _is_work_tree(Path(entry.path))
        return OWN_REPOSITORY_REASON if inner else None
    marked = options.ignore and os.path.lexists(f"{entry.path}/{ENVIRONMENT_MARK}")
    return ENVIRONMENT_REASON if marked else None


def _work_tree_of(root: str) -> str | None:
    """Return the nearest folder at or above `root` that is a work tree of git."""
    folder = Path(root or "/")
    for candidate in (folder, *folder.parents):
        if _is_work_tree(candidate):
            return str(candidate).rstrip("/")
    return None


def _is_work_tree(folder: Path) -> bool:
    mark = folder / ".git"
    # Path.is_file raises where the folder may not be entered.
    return os.path.lexists(mark / "HEAD") or os.path.isfile(mark)  # noqa: PTH113


def _rules_above(files: IgnoreFiles, prefix: str, in_work_tree: bool) -> IgnoreRules:
    """Return the rules of the work tree's own list and of the folders above the root."""
    if not in_work_tree:
        return IgnoreRules()
    rules = IgnoreRules("", tuple(files.read(".git/info/exclude")))
    place = 0
    while prefix and (base := prefix[:place]) != prefix:
        rules = files.within(rules, base)
        place = prefix.index("/", place) + 1
    return rules
