"""Symbolic links of a folder, followed where they stay within it."""

from __future__ import annotations

import os
import stat

from rlm_rag.loaders.git import printable_path
from rlm_rag.loaders.options import LoadReport
from rlm_rag.loaders.secrets import SECRET_REASON, may_hold_secrets


def follow_links(root: str, names: list[str], report: LoadReport) -> dict[str, str]:
    """Take the links out of `names` and return further names, each with the name it leads to.

    A link to a folder stands for the files listed beneath that folder. What is not itself
    listed is not led to: so nothing that lies outside, or that a rule leaves out, comes in by a
    link. Links beneath a linked folder are not followed again, which ends every loop.
    """
    links = [name for name in names if _is_link(f"{root}/{name}")]
    taken = set(links)
    names[:] = [name for name in names if name not in taken]
    files = set(names)
    leads: dict[str, str] = {}
    for link in links:
        target = os.path.realpath(f"{root}/{link}")
        if not target.startswith(f"{root}/"):
            report.skip(printable_path(link), "symbolic link out of the source, or to all of it")
            continue
        found = _behind(link, target.removeprefix(f"{root}/"), files)
        leads |= found
        if not found:
            report.skip(printable_path(link), "symbolic link to what is left out or missing")
    return {name: target for name, target in leads.items() if not _is_secret(name, target, report)}


def _is_secret(name: str, target: str, report: LoadReport) -> bool:
    secret = may_hold_secrets(target)
    if secret:
        report.skip(printable_path(name), SECRET_REASON)
    return secret


def _is_link(location: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(location).st_mode)
    except OSError:
        return False


def _behind(link: str, target: str, files: set[str]) -> dict[str, str]:
    if target in files:
        return {link: target}
    beneath = f"{target}/"
    if f"{link}/".startswith(beneath):
        # A folder above the link itself.
        return {}
    return {f"{link}/{name[len(beneath) :]}": name for name in files if name.startswith(beneath)}
