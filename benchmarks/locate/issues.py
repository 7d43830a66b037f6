"""Issue text -> the files that its fix changed, of the source releases on PyPI.

The rows are the development split of SWE-bench (MIT; issue texts by their authors), the gold
files are those of its patches.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from benchmarks.locate.questions import Question, QuestionSet
from rlm_rag.evals.locate import tar_documents

ROWS = Path(__file__).resolve().parent.parent / "data" / "locate_issues.jsonl.gz"
BUILD_TOOLS = ("setuptools<70", "wheel")


def issue_sets(cache: Path) -> Iterator[QuestionSet]:
    """Yield a set for each release, downloading those that are not in the cache folder.

    Raises:
        subprocess.CalledProcessError: pip cannot download a release.
    """
    rows = defaultdict(list)
    with gzip.open(ROWS, "rt", encoding="utf-8") as stream:
        for line in stream:
            row = json.loads(line)
            rows[row["sdist"]].append(Question(row["id"], row["query"], frozenset(row["gold"])))
    for release, questions in sorted(rows.items()):
        with _archive(cache, release).open("rb") as stream:
            documents = list(tar_documents(stream, strip_folders=1))
        project = release.split("==")[0]
        yield QuestionSet("issues", project, documents, questions, tests_count=False)


def _archive(cache: Path, release: str) -> Path:
    path = cache / f"{release.replace('==', '-')}.tar.gz"
    if not path.exists():
        options = ("--no-deps", "--no-binary", ":all:", "--no-build-isolation", "-q")
        tools = os.pathsep.join(filter(None, (str(_tools(cache)), os.environ.get("PYTHONPATH"))))
        subprocess.run(
            [sys.executable, "-m", "pip", "download", *options, "-d", str(cache), release],
            check=True,
            env={**os.environ, "PYTHONPATH": tools},
        )
    return path


def _tools(cache: Path) -> Path:
    """Return a folder with what pip reads the releases' metadata with: tools of their years."""
    folder = cache / "tools"
    if not folder.exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder)]
        subprocess.run([*command, *BUILD_TOOLS], check=True)
    return folder
