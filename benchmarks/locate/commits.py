"""A commit's subject -> the files that it changed, in the tree as it was before all of them."""

from __future__ import annotations

import io
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from benchmarks.locate.questions import Question, QuestionSet
from rlm_rag.evals.locate import tar_documents

_MOST_FILES = 8
_LEAST_WORDS = 4
_ROUTINE = re.compile(
    r"(?i)^(?:merge|revert|release|bump|update (?:dependency|changelog)|v?\d)"
    r"|\b(?:bump|changelog|deps|dependabot|renovate|typos?)\b"
)
# Of a squashed pull request: its number says nothing to a tree.
_NUMBER = re.compile(r"\s*\(#\d+\)$")


def commit_set(repository: Path, *, group: str, count: int) -> QuestionSet:
    """Take the newest `count` commits that changed 1 to 8 files which existed before all of them.

    Merges, releases and updates of dependencies are left out; tests count as changed files.

    Raises:
        subprocess.CalledProcessError: the folder is no git repository, or has no commits.
    """
    kept: list[tuple[str, str, frozenset[str]]] = []
    for commit, subject, files in _log(repository):
        if _wanted(subject, files):
            kept.append((commit, subject, files))
            if len(kept) == count:
                break
    oldest = kept[-1][0] if kept else "HEAD"
    archive = _git(repository, "archive", "--format=tar", f"{oldest}~1")
    documents = list(tar_documents(io.BytesIO(archive), strip_folders=0))
    present = frozenset(path for path, _ in documents)
    questions = [
        Question(commit, _NUMBER.sub("", subject), gold)
        for commit, subject, files in kept
        if (gold := files & present)
    ]
    return QuestionSet("commits", group, documents, questions)


def _wanted(subject: str, files: frozenset[str]) -> bool:
    return (
        1 <= len(files) <= _MOST_FILES
        and len(subject.split()) >= _LEAST_WORDS
        and _ROUTINE.search(subject) is None
    )


def _log(repository: Path) -> Iterator[tuple[str, str, frozenset[str]]]:
    options = ("--no-merges", "--no-renames", "--diff-filter=MD", "--name-only")
    shown = _git(
        repository,
        "-c",
        "core.quotePath=false",
        "log",
        *options,
        "-n",
        "6000",
        "--format=%x1e%H%x1f%s",
    )
    for record in shown.decode("utf-8", "replace").split("\x1e")[1:]:
        head, *files = record.strip().split("\n")
        commit, _, subject = head.partition("\x1f")
        yield commit, subject, frozenset(file for file in files if file)


def _git(repository: Path, *arguments: str) -> bytes:
    return subprocess.run(
        ["git", "-C", str(repository), *arguments], check=True, stdout=subprocess.PIPE
    ).stdout
