"""What git lists as the files of a work tree; nothing that the repository configures is run."""

from __future__ import annotations

import os
import shutil
import subprocess

from rlm_rag.loaders.options import LoadReport

_CONFIG = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    # A tree of another owner is only listed, so its ownership is no danger.
    "safe.directory=*",
)
_NO_WORK_TREE = ("not a git repository", "must be run in a work tree")


def list_work_tree(folder: str, report: LoadReport) -> list[str] | None:
    """List tracked and untracked files beneath `folder` that no ignore rule leaves out.

    Paths are relative to `folder`, with `/`, unsorted; one that ends with `/` is a repository
    of its own. What the rules leave out is skipped in the report, a folder as one entry. None
    where `folder` lies in no work tree, git is not installed, or git fails; the last is a
    warning of the report.
    """
    git = shutil.which("git")
    if git is None:
        return None
    try:
        listed = _names(git, folder, "--cached", "--others", "--exclude-standard")
        ignored = _names(git, folder, "--others", "--ignored", "--exclude-standard", "--directory")
    except OSError as error:
        report.warn(".", f"git could not be run ({error.strerror}); .gitignore read without it")
        return None
    except subprocess.CalledProcessError as error:
        message = error.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        if not any(phrase in message for phrase in _NO_WORK_TREE):
            report.warn(".", f"git cannot list this tree ({message}); .gitignore read without it")
        return None
    # Nothing listed: the folder itself is ignored, and its caller wants it all the same.
    for path in sorted(ignored - listed) if listed else ():
        report.skip(printable_path(path.removesuffix("/")), "ignored by git's rules")
    return list(listed)


def printable_path(relative: str) -> str:
    """Write the bytes of a name that are no UTF-8 as `\\xNN`."""
    return os.fsencode(relative).decode("utf-8", "backslashreplace")


def _names(git: str, folder: str, *arguments: str) -> set[str]:
    command = [git, "--no-pager", *(part for item in _CONFIG for part in ("-c", item))]
    done = subprocess.run(
        [*command, "ls-files", "-z", *arguments],
        cwd=folder,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    names = {os.fsdecode(name) for name in done.stdout.split(b"\0") if name}
    return {name for name in names if not name.startswith(("/", "../", "./"))}


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {
        # No fetch of missing objects: its transport could be a command of the repository.
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
