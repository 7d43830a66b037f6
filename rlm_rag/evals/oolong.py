"""OOLONG's own files: its synthetic and its real part, as they were published."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from rlm_rag.evals.base import Haystack, Sample, Scorer, TaskOptions
from rlm_rag.evals.data import Row, asked_for, held, read_all, required_data
from rlm_rag.evals.generated import PATH
from rlm_rag.evals.scorers.oolong import real, synthetic
from rlm_rag.models.tokens import count_tokens

FORM = (
    'OOLONG: Parquet, JSON or JSON lines with "id", "context_window_id", "context_window_text", '
    '"question" and "answer"; of oolong-synth also "answer_type" and "dataset".'
)
Part = Literal["synth", "real"]

_DATE = re.compile(r"\[datetime\.date\((\d+), (\d+), (\d+)\)\]")


@dataclass(frozen=True, slots=True)
class OolongTask:
    """The rows of one part; those of one context window share it, and depend on each other."""

    name: str
    part: Part
    ranking: Scorer | None = None

    @property
    def scorer(self) -> Scorer:
        return synthetic if self.part == "synth" else real

    def samples(self, options: TaskOptions) -> Iterator[Sample]:
        """Yield the rows that are no longer than the longest length, in the order of the files.

        The length of a row is its `context_len` where it has one.

        Raises:
            UsageError: no data was given.
            BenchmarkDataError: it is not in the published format.
        """
        rows = read_all(required_data(options, FORM), ("*.parquet", "*.jsonl", "*.json"), FORM)
        gold = _synthetic_gold if self.part == "synth" else _real_gold
        windows: dict[str, Haystack] = {}
        found = (_sample(self.name, row, gold, windows) for row in rows)
        yield from asked_for(found, options)


def _sample(
    name: str, row: Row, gold: Callable[[Row], Any], windows: dict[str, Haystack]
) -> Sample:
    key = f"{name}/{row.text('dataset', '')}/{row.text('context_window_id')}"
    # Each row repeats its window, which may be megabytes: one of equal ones is held.
    text = row.text("context_window_text")
    if key not in windows:
        windows[key] = Haystack(key, held(PATH, text))
    return Sample(
        id=row.text("id"),
        question=row.text("question"),
        haystack=windows[key],
        gold=gold(row),
        length_tokens=_length(row, text),
        cluster=key,
        meta={about: row.text(about, "") for about in ("dataset", "task", "task_group")},
    )


def _length(row: Row, text: str) -> int:
    # OOLONG's own figures are by the length that it names; its real part names none.
    return row.integer("context_len") if "context_len" in row.values else count_tokens(text)


def _synthetic_gold(row: Row) -> dict[str, Any]:
    text, kind = row.text("answer"), row.text("answer_type")
    if found := _DATE.fullmatch(text):
        return {"answer": date(*map(int, found.groups())).isoformat(), "type": kind}
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = None
    if not isinstance(value, list) or not value:
        row.refuse(f"'answer' is {text!r}, no list of the answer")
    return {"answer": value[0], "type": kind}


def _real_gold(row: Row) -> str:
    return row.text("answer")
