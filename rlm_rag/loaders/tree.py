"""A folder to documents: which of its files count, in byte order, each read on its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from rlm_rag.corpus import Skipped
from rlm_rag.errors import SourceError
from rlm_rag.loaders.files import FOLDER_REASON, TELLING_REASONS, failure_reason, read_file
from rlm_rag.loaders.git import list_work_tree, printable_path
from rlm_rag.loaders.ignore import IGNORE_FILE_NAME, IgnoreRules
from rlm_rag.loaders.options import NOT_SELECTED, Entry, LoadOptions, LoadReport
from rlm_rag.loaders.secrets import may_hold_secrets

_VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".jj", ".bzr"})
_JUNK = frozenset(
    (
        "node_modules",
        "bower_components",
        "__pycache__",
        ".venv",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".hypothesis",
        ".gradle",
        ".terraform",
        ".DS_Store",
    )
)


def read_tree(root: str, options: LoadOptions, report: LoadReport) -> Iterator[Entry]:
    """Yield the readable text files beneath the folder `root`, in the byte order of their paths.

    Inside a git work tree the files are those that git lists; elsewhere the folder is walked,
    and `.gitignore` files hold as they would in git. Links are never followed.

    Raises:
        SourceError: `root` cannot be listed.
        UsageError: an include or exclude is no glob.
    """
    selects = options.selector()
    root = os.path.realpath(root).rstrip("/")
    folders = {"": True}
    for path, relative in _unique_paths(_list(root, options, report)):
        if not selects(path):
            report.skip(path, NOT_SELECTED)
            continue
        if relative.endswith("/"):
            report.skip(path, "a git repository of its own")
            continue
        if not _is_inside(root, relative.rpartition("/")[0], folders):
            report.skip(path, "beneath a symbolic link")
            continue
        location = f"{root}/{relative}"
        found = read_file(location, path, max_file_bytes=options.max_file_bytes)
        if isinstance(found, Skipped):
            reason = "git submodule" if found.reason == FOLDER_REASON else found.reason
            _skip(report, path, reason)
            continue
        if found.warning is not None:
            report.warn(path, found.warning)
        yield Entry(path, found.content, found.encoding)


def numbered_path(path: str, number: int) -> str:
    """A file's path with `~number` before its suffix, which says of what type the file is."""
    suffix = PurePosixPath(path).suffix
    return f"{path.removesuffix(suffix)}~{number}{suffix}"


def _list(root: str, options: LoadOptions, report: LoadReport) -> list[str]:
    if options.ignore:
        listed = list_work_tree(f"{root}/", report)
        # Nothing listed: the folder itself is ignored, and yet the caller asked for it.
        if listed:
            return listed
    return list(_walk(root, options, report))


def _walk(root: str, options: LoadOptions, report: LoadReport) -> Iterator[str]:
    pending = [("", IgnoreRules())]
    while pending:
        base, rules = pending.pop()
        try:
            with os.scandir(f"{root}/{base}") as scanned:
                entries = sorted(scanned, key=lambda entry: entry.name)
        except OSError as error:
            if not base:
                raise SourceError(
                    f"Cannot list the folder {root or '/'}: {error.strerror}.",
                    hint="Check that you may read it.",
                ) from error
            _skip(report, printable_path(base[:-1]), failure_reason(error))
            continue
        if options.ignore:
            rules = _with_ignore_file(rules, root, base, report)
        for entry in entries:
            folder = entry.is_dir(follow_symlinks=False)
            path = base + entry.name
            reason = _reason_to_skip(entry, path, folder, rules, options)
            if reason is not None:
                report.skip(printable_path(path), reason)
            elif folder:
                pending.append((path + "/", rules))
            else:
                yield path


def _skip(report: LoadReport, path: str, reason: str) -> None:
    report.skip(path, reason)
    if reason.startswith(TELLING_REASONS):
        report.warn(path, f"{reason}, so it was left out")


def _with_ignore_file(rules: IgnoreRules, root: str, base: str, report: LoadReport) -> IgnoreRules:
    inner = rules.within(base, f"{root}/{base}{IGNORE_FILE_NAME}")
    if inner is not rules:
        for pattern in inner.unfollowed:
            report.warn(printable_path(base + IGNORE_FILE_NAME), f"cannot follow {pattern!r}")
    return inner


def _reason_to_skip(
    entry: os.DirEntry[str], path: str, folder: bool, rules: IgnoreRules, options: LoadOptions
) -> str | None:
    if entry.name in _VERSION_CONTROL:
        return "version control data"
    if options.ignore:
        if entry.name in _JUNK:
            return "generated by tools"
        if folder and os.path.lexists(f"{entry.path}/pyvenv.cfg"):
            return "Python virtual environment"
        if rules.ignores(path, folder=folder):
            return "ignored by .gitignore"
    # A secret gets that reason, not this one.
    if entry.name.startswith(".") and not options.hidden and not may_hold_secrets(path):
        return "hidden"
    return None


def _unique_paths(relatives: list[str]) -> list[tuple[str, str]]:
    """Pair each path with its printable form, all different, in the byte order of these."""
    taken: set[str] = set()
    pairs = []
    # Names that need no change come first, so that no other takes theirs.
    for relative in sorted(relatives, key=lambda name: (printable_path(name) != name, name)):
        path = name = printable_path(relative).removesuffix("/")
        number = 2
        while path in taken:
            path = numbered_path(name, number)
            number += 1
        taken.add(path)
        pairs.append((path, relative))
    return sorted(pairs, key=lambda pair: pair[0].encode("utf-8"))


def _is_inside(root: str, folder: str, known: dict[str, bool]) -> bool:
    """Tell whether no part of a folder's path is a link; a tracked one may have become so."""
    if folder not in known:
        location = Path(f"{root}/{folder}")
        known[folder] = location.resolve() == location
    return known[folder]
