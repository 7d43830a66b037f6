"""Questions whose right places are known, and the documents they are asked of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
