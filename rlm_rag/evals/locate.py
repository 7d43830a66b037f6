"""`locate`: the text of an issue -> the files that its fix changed, in the release it is about."""

from __future__ import annotations

import tarfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO

from rlm_rag.errors import BenchmarkDataError
from rlm_rag.evals.base import Haystack, Sample, Scorer, TaskOptions
from rlm_rag.evals.data import Row, one_of, read_rows, required_data
from rlm_rag.evals.scorers.rankings import RankingScorer
from rlm_rag.indexes.kinds import Kind, kind_of
from rlm_rag.loaders.source import Source

FORM = (
    'locate: a folder of issues.jsonl or issues.jsonl.gz ("id", "query", "gold": paths, and '
    '"sdist": NAME==VERSION), and of NAME-VERSION.tar.gz or a folder NAME-VERSION for each.'
)
_ROWS = ("issues.jsonl", "issues.jsonl.gz", "locate_issues.jsonl.gz")
_ASK_FOR_FILES = (
    "\n\nWhich files of this code have to be changed for this issue? List their paths, the most "
    "likely first, ten at most, one a line."
)


def _is_other_test(path: str, sample: Sample) -> bool:
    # A fix comes with tests, and an issue's text is nearest to them.
    return path not in sample.gold and kind_of(path) is Kind.TEST


_MRR = RankingScorer("mrr", _is_other_test)
# Longer files of a source tree are data; the loaders' limit is higher.
MAX_FILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class LocateTask:
    """Issues of releases, scored by MRR over files that are no tests; one cluster a project."""

    name: str = "locate"
    scorer: Scorer = _MRR
    ranking: Scorer | None = _MRR

    def samples(self, options: TaskOptions) -> Iterator[Sample]:
        """Yield a sample for each issue, those of a release after one another.

        Raises:
            UsageError: no data was given.
            BenchmarkDataError: a row is not in the form, or a release is missing.
        """
        folder = required_data(options, FORM)
        rows: dict[str, list[Row]] = defaultdict(list)
        for row in islice(read_rows(one_of(folder, _ROWS, FORM), FORM), options.count):
            rows[row.text("sdist")].append(row)
        for release, of_release in sorted(rows.items()):
            tree = _tree(folder if folder.is_dir() else folder.parent, release)
            haystack = Haystack(f"locate/{release}", partial(_documents, tree))
            yield from (_sample(row, release, haystack) for row in of_release)


def _sample(row: Row, release: str, haystack: Haystack) -> Sample:
    query = row.text("query")
    return Sample(
        id=row.text("id"),
        question=query + _ASK_FOR_FILES,
        query=query,
        haystack=haystack,
        gold=row.texts("gold"),
        cluster=release.partition("==")[0],
    )


def _tree(folder: Path, release: str) -> Path:
    """Return the folder or the archive of a release, whose name may be spelled in two ways."""
    name, _, version = release.partition("==")
    for spelled in (name, name.replace("-", "_"), name.lower().replace("-", "_")):
        for suffix in ("", ".tar.gz"):
            path = folder / f"{spelled}-{version}{suffix}"
            if path.exists():
                return path
    raise BenchmarkDataError(
        f"there is no source release of {release} in {folder}",
        hint=f"pip download --no-deps --no-binary :all: --no-build-isolation -d {folder} {release}",
    )


def _documents(tree: Path) -> Source:
    return str(tree) if tree.is_dir() else _of_archive(tree)


def _of_archive(path: Path) -> Iterator[tuple[str, str]]:
    with path.open("rb") as archive:
        yield from tar_documents(archive, strip_folders=1)


def tar_documents(archive: IO[bytes], *, strip_folders: int) -> Iterator[tuple[str, str]]:
    """Yield `(path, content)` of the text files of a tar stream, without its leading folders.

    Files above 1 MiB, with NUL bytes, or in another encoding than UTF-8 are left out.
    """
    with tarfile.open(fileobj=archive, mode="r|*") as members:
        for member in members:
            stream = members.extractfile(member) if member.isfile() else None
            if stream is None or member.size > MAX_FILE_BYTES:
                continue
            data = stream.read()
            path = "/".join(member.name.split("/")[strip_folders:])
            if b"\0" in data or not path:
                continue
            try:
                yield path, data.decode("utf-8")
            except UnicodeDecodeError:
                continue
