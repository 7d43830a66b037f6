"""What a git repository held at a revision, or changed between two; read from its objects alone.

Nothing is checked out, so no filter, hook or attribute of the repository has a say.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rlm_rag.errors import SourceError
from rlm_rag.loaders.files import too_large_reason
from rlm_rag.loaders.git import (
    GitFailure,
    end_git,
    git_outputs,
    git_program,
    printable_path,
    split_names,
    start_git,
)
from rlm_rag.loaders.intake import Intake
from rlm_rag.loaders.options import Entry
from rlm_rag.loaders.paths import unique_paths

_RANGE = re.compile(r"(.*?)(\.{2,3})(.*)")
_KINDS = {"120000": "symbolic link", "160000": "git submodule"}
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SHOWN_HASH_DIGITS = 12


class _Blob(NamedTuple):
    path: str
    mode: str
    hash: str


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit of the repository that `folder` lies in, and the one it is compared with, if any.

    `name` is how the caller called it. `commit` and `base` are full hashes.
    """

    folder: str
    name: str
    commit: str
    base: str | None = None

    @property
    def commits(self) -> str:
        """The full hash, or both of a range."""
        return self.commit if self.base is None else f"{self.base}..{self.commit}"


def find_revision(folder: str, name: str) -> Revision | None:
    """Find `name` (a tag, branch, hash, or a range `a..b` or `a...b`) in a repository.

    An end of a range that is left out is HEAD; three dots compare with where the two parted.
    None where the repository has none of that name.

    Raises:
        SourceError: git is not installed.
    """
    git = require_git(f"read {name} of {folder}")
    found = _RANGE.fullmatch(name)
    if found is None:
        commit = _commit(git, folder, name)
        return None if commit is None else Revision(folder, name, commit)
    base = _commit(git, folder, found[1] or "HEAD")
    commit = _commit(git, folder, found[3] or "HEAD")
    if base is None or commit is None:
        return None
    if found[2] == "...":
        base = git_outputs(git, folder, ("merge-base", base, commit))[0].decode("ascii").strip()
    return Revision(folder, name, commit, base)


def read_revision(revision: Revision, intake: Intake) -> Iterator[Entry]:
    """Yield the files of a revision, in byte order.

    Of a range these are the files that changed, as they are at its end, after a document of
    the changes themselves, `a..b.diff`.

    Raises:
        SourceError: git cannot read the repository.
    """
    git = require_git(f"read {revision.name}")
    try:
        if revision.base is not None:
            yield from _diff(git, revision, intake)
        blobs = list(_blobs(git, revision, intake))
        names = {blob.path: blob for blob in blobs}
        wanted: list[tuple[str, _Blob]] = []
        for path, name in unique_paths(list(names)):
            blob = names[name]
            if not intake.wants(path):
                continue
            if blob.mode in _KINDS:
                intake.report.skip(path, _KINDS[blob.mode])
            else:
                wanted.append((path, blob))
        yield from _contents(git, revision, wanted, intake)
    except (GitFailure, OSError) as error:
        raise SourceError(
            f"git cannot read {revision.name} of {revision.folder}: {error}.",
            hint="Check the repository with `git fsck`; a partial clone lacks objects.",
        ) from error


def require_git(purpose: str) -> str:
    """Return where git is.

    Raises:
        SourceError: it is not installed.
    """
    git = git_program()
    if git is None:
        raise SourceError(
            f"git is needed to {purpose}.", hint="Install git, or give a folder without it."
        )
    return git


def _commit(git: str, folder: str, name: str) -> str | None:
    if not name or name.startswith("-"):
        return None
    command = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    try:
        output = git_outputs(git, folder, command)[0].decode("ascii", "replace").strip()
    except (GitFailure, OSError, ValueError):
        return None
    found = _HASH.search(output)
    return found[0] if found else None


def _blobs(git: str, revision: Revision, intake: Intake) -> Iterator[_Blob]:
    """List a revision's files below its folder; of a range those that differ from its base."""
    if revision.base is None:
        listed = git_outputs(git, revision.folder, ("ls-tree", "-r", "-z", revision.commit))[0]
        for line in split_names(listed):
            about, _, path = line.partition("\t")
            mode, _, digest = about.split(" ")
            yield _Blob(path, mode, digest)
        return
    command = ("diff-tree", "-r", "-z", "--no-renames", "--relative", revision.base)
    fields = split_names(git_outputs(git, revision.folder, (*command, revision.commit))[0])
    for about, path in zip(fields[::2], fields[1::2], strict=True):
        _, mode, _, digest, status = about.split(" ")
        if status == "D":
            intake.report.skip(printable_path(path), f"deleted in {revision.name}")
        else:
            yield _Blob(path, mode, digest)


def _diff(git: str, revision: Revision, intake: Intake) -> Iterator[Entry]:
    path = f"{revision.name.replace('/', '_')}.diff"
    if not intake.wants(path):
        return
    assert revision.base is not None
    command = ("diff-tree", "-p", "-r", "-M", "--relative", "--no-ext-diff", "--no-textconv")
    plain = ("--no-color", "--full-index", revision.base, revision.commit)
    yield from intake.take(path, git_outputs(git, revision.folder, (*command, *plain))[0])


def _contents(
    git: str, revision: Revision, wanted: list[tuple[str, _Blob]], intake: Intake
) -> Iterator[Entry]:
    limit = intake.options.max_file_bytes
    process = start_git(git, revision.folder, ("cat-file", "--batch"), stdin=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    try:
        for path, blob in wanted:
            process.stdin.write(f"{blob.hash}\n".encode("ascii"))
            process.stdin.flush()
            about = process.stdout.readline().decode("ascii", "replace").split()
            if len(about) != 3:
                intake.report.miss(path, "not readable: the repository lacks its object")
                continue
            size_bytes = int(about[2])
            if size_bytes > limit:
                _pass_over(process, size_bytes + 1)
                intake.report.miss(path, too_large_reason(limit))
                continue
            data = process.stdout.read(size_bytes + 1)[:-1]
            if len(data) != size_bytes:
                raise GitFailure("it ended before it had written all")
            yield from intake.take(path, data)
    finally:
        end_git(process)


def _pass_over(process: subprocess.Popen[bytes], size_bytes: int) -> None:
    assert process.stdout is not None
    while size_bytes > 0 and (data := process.stdout.read(min(size_bytes, 1 << 20))):
        size_bytes -= len(data)


def shown_hash(commit: str) -> str:
    """Return the start of a hash, as people write it."""
    return commit[:_SHOWN_HASH_DIGITS]
