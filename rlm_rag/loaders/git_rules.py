"""Which files, besides those of a folder, say what git lists of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence

from rlm_rag.loaders.git import (
    GitFailure,
    end_git,
    git_outputs,
    git_program,
    split_names,
    start_git,
)

# Without the last three, git takes a folder for no repository.
_OF_REPOSITORY = (
    "index",
    "info/exclude",
    "config",
    "config.worktree",
    "info/sparse-checkout",
    "HEAD",
    "objects",
    "refs",
)
REPOSITORY_MARKS = (".git", "HEAD")
_FILE_ORIGIN = "file:"
# How a list of patterns begins that git looks for where it is installed, or only if it is there.
_ELSEWHERE = ("%", ":")
# It ends with 1 where it finds none.
_DONE = (0, 1)


def environment_of_git() -> str | None:
    """Return what of the environment decides what git lists; None where it cannot be told."""
    git, home, own = git_program(), os.environ.get("HOME", ""), os.environ.get("XDG_CONFIG_HOME")
    # git would look for any other in the folder that it lists.
    if git is None or not all(map(os.path.isabs, (home, own or home))):
        return None
    return "\0".join((git, home, own or ""))


def files_of_rules(root: str, *, outside: bool) -> list[str] | None:
    """Return the files that decide what git lists of the folder `root`, there or not.

    `outside` says that it lies in no work tree. None where not all can be told: a configuration
    includes others, or moves the work tree.
    """
    git = git_program()
    if git is None:
        return None
    names = () if outside else ("--show-toplevel", *_git_paths())
    commands = [("config", "--list", "--show-origin", "-z")]
    try:
        if outside:
            (told,), lines = git_outputs(git, root or "/", *commands), []
        else:
            told, paths = git_outputs(git, root or "/", *commands, ("rev-parse", *names))
            lines = os.fsdecode(paths).removesuffix("\n").split("\n")
    except (OSError, GitFailure):
        return None
    if lines and len(lines) != 1 + len(_OF_REPOSITORY):
        return None
    top = lines[0].rstrip("/") if lines else None
    of_configuration = _files_of_configuration(root if top is None else top, split_names(told))
    if of_configuration is None:
        return None
    # git's of the system, where it is not installed beneath /usr (its Makefile: sysconfdir).
    of_configuration.append(f"{git.rpartition('/bin/')[0]}/etc/gitconfig")
    of_repository = [os.path.join(root or "/", name) for name in lines[1:]]  # noqa: PTH118
    return [git, *of_configuration, *of_repository, *_above(root, top)]


def left_out_whole(root: str, folders: Sequence[str]) -> set[str] | None:
    """Return those folders of a work tree into which git does not look, by their paths in it.

    None where git does not say.
    """
    git = git_program()
    if git is None or not folders:
        return set() if git else None
    try:
        process = start_git(
            git, root or "/", ("check-ignore", "-z", "--stdin"), stdin=subprocess.PIPE
        )
    except OSError:
        return None
    try:
        asked = b"".join(os.fsencode(folder) + b"\0" for folder in folders)
        output, _ = process.communicate(asked)
        return set(split_names(output)) if process.returncode in _DONE else None
    finally:
        end_git(process)


def _git_paths() -> Iterator[str]:
    for name in _OF_REPOSITORY:
        yield from ("--git-path", name)


def _files_of_configuration(top: str, told: Sequence[str]) -> list[str] | None:
    """Return the files of git's configuration, and the list of patterns that they name.

    `top` is the work tree, where git looks for what they name by no whole path.
    """
    home = os.environ.get("HOME", "")
    own = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    patterns = f"{own}/git/ignore"
    found = dict.fromkeys((f"{home}/.gitconfig", f"{own}/git/config", "/etc/gitconfig"))
    for origin, setting in zip(told[::2], told[1::2], strict=False):
        name, _, value = setting.partition("\n")
        if name.startswith("include") or name == "core.worktree":
            return None
        if origin.startswith(_FILE_ORIGIN):
            place = origin.removeprefix(_FILE_ORIGIN)
            found[os.path.join(top or "/", place)] = None  # noqa: PTH118
        if name == "core.excludesfile":
            if value.startswith(_ELSEWHERE):
                return None
            patterns = os.path.join(top or "/", os.path.expanduser(value))  # noqa: PTH111, PTH118
    return [*found, patterns]


def _above(root: str, top: str | None) -> Iterator[str]:
    """Yield what a repository nearer to `root` would be told by, and the rules above it."""
    if top is not None and os.path.isfile(f"{top}/.git"):  # noqa: PTH113
        yield f"{top}/.git"
    folder = root
    while folder != top:
        yield from (f"{folder}/{name}" for name in REPOSITORY_MARKS)
        if not folder:
            return
        folder = folder.rpartition("/")[0]
        if top is not None:
            yield f"{folder}/.gitignore"
