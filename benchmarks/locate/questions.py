"""Questions whose right places are known, and the documents they are asked of."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

# Longer files of a source tree are data; the loaders' limit is higher.
MAX_FILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and where the answer lies.

    `files` are the right files. Where `line` is set there is one of them, and a hit has to
    hold that line (1-based) too; `gold_line` is then a line that a good snippet shows.
    """

    name: str
    text: str
    files: frozenset[str]
    line: int | None = None
    gold_line: int | None = None


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions of one tree; results of sets of one `kind` and `group` are reported together.

    Where `tests_count` is false, hits in files of tests are passed over.
    """

    kind: str
    group: str
    documents: Sequence[tuple[str, str]]
    questions: Sequence[Question]
    tests_count: bool = True


def tar_documents(archive: IO[bytes], *, strip_folders: int) -> Iterator[tuple[str, str]]:
    """Yield `(path, content)` of the text files of a tar stream, without its leading folders."""
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
