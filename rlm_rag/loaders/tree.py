"""A folder to documents: which of its files count, in byte order, each read on its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from rlm_rag.loaders.ahead import parsing_ahead
from rlm_rag.loaders.folders import Folders, Listings
from rlm_rag.loaders.git import printable_path
from rlm_rag.loaders.ignore import OWN_IGNORE_REASON, IgnoreFiles
from rlm_rag.loaders.intake import Intake
from rlm_rag.loaders.links import follow_links
from rlm_rag.loaders.listing import OWN_REPOSITORY_REASON, list_by_git
from rlm_rag.loaders.options import Entry, LoadOptions, LoadReport
from rlm_rag.loaders.own import OwnFolders
from rlm_rag.loaders.paths import unique_paths
from rlm_rag.loaders.walk import walk
from rlm_rag.loaders.witness import Sighting


def read_tree(
    root: str,
    intake: Intake,
    *,
    sighting: Sighting | None = None,
) -> Iterator[Entry]:
    """Yield the readable text files beneath the folder `root`, in the byte order of their paths.

    Git's rules say which files count, in a work tree and out of one, and then `.ignore` and
    `.rlmignore` files, which leave more out. Links are followed only where the options say so,
    and never out of the folder. `sighting` says which paths are the source at all, and is told
    what was seen of the folder.

    Raises:
        SourceError: `root` cannot be listed.
        UsageError: an include or exclude is no glob.
    """
    report, limit = intake.report, intake.options.max_file_bytes
    sighting = sighting or Sighting(intake)
    sighting.root = os.path.realpath(root).rstrip("/")
    files, folders = _files(sighting)
    for path, location in parsing_ahead(files, intake.is_new, max_file_bytes=limit):
        if not intake.wants(path):
            continue
        folder = location[: location.rindex("/")]
        if location.endswith("/"):
            report.skip(path, OWN_REPOSITORY_REASON)
        elif not folders.holds(folder):
            report.skip(path, "beneath a symbolic link")
        else:
            yield from intake.read(path, location)


def _files(sighting: Sighting) -> tuple[list[tuple[str, str]], Folders]:
    """Return the path and the location of each file that counts, and the folders above them."""
    root, options, report = sighting.root, sighting.intake.options, sighting.intake.report
    only = sighting.only
    names, by_git = _list(root, options, report, sighting)
    leads = follow_links(root, names, report) if options.follow_symlinks else {}
    report.skipped[:] = [one for one in report.skipped if only(one.path)]
    folders = Folders(root, report, sighting.listings, by_git=by_git)
    # Of an empty one, too.
    folders.holds(root)
    files = [
        (path, f"{root}/{leads.get(name, name)}")
        for path, name in unique_paths([*names, *leads])
        if only(path)
    ]
    return files, folders


def _list(
    root: str, options: LoadOptions, report: LoadReport, sighting: Sighting
) -> tuple[list[str], bool]:
    """Return the files beneath a folder, and whether it was git that listed them."""
    own = OwnFolders.beneath(root)
    if not options.ignore:
        return list(walk(root, options, report, own)), False
    # Nothing listed: the folder itself is ignored, and yet the caller asked for it.
    by_git = list_by_git(f"{root}/", options, report)
    if by_git is not None and by_git.names:
        sighting.listing = by_git
        names, sighting.own = own.leave_out(by_git.names, report)
        return _without_own_ignored(root, names, report, sighting.listings), True
    listed = list(walk(root, options, report, own))
    return _without_own_ignored(root, listed, report, sighting.listings), False


def _without_own_ignored(
    root: str, names: list[str], report: LoadReport, listings: Listings
) -> list[str]:
    def cannot_follow(path: str, pattern: str) -> None:
        report.warn(printable_path(path), f"cannot follow {pattern!r:.300}")

    def names_in(base: str) -> Sequence[str]:
        return listings.ignore_files(f"{root}/{base}".removesuffix("/"))

    files = IgnoreFiles(root, names_in, cannot_follow)
    kept: list[str] = []
    left_out: set[str] = set()
    for name in names:
        found = files.leaves_out(name.removesuffix("/"))
        if found is None:
            kept.append(name)
        else:
            left_out.add(found)
    for found in sorted(left_out):
        report.skip(printable_path(found), OWN_IGNORE_REASON)
    return kept
