"""A benchmark of a few questions, and the table of tasks with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from rlm_rag.evals import tasks
from rlm_rag.evals.base import Haystack, Response, Sample, Score, Scorer, TaskOptions
from rlm_rag.evals.record import Record


def exact(response: Response, sample: Sample) -> Score:
    """1 where the answer is the gold, in a form that is a number."""
    text = response.text.strip()
    return Score(value=float(text == sample.gold), parsed=text, parse_ok=text.isdigit())


def first_path(response: Response, sample: Sample) -> Score:
    return Score(value=float((response.ranked or ("",))[0] == f"{sample.gold}.txt"))


@dataclass
class Toy:
    """`count` questions of each length; the answer to number n is n."""

    name: str = "toy"
    scorer: Scorer = exact
    ranking: Scorer | None = first_path
    loads: list[str] = field(default_factory=list)
    per_haystack: int = 2

    def samples(self, options: TaskOptions) -> Iterator[Sample]:
        for length in options.lengths or (1024,):
            for number in range(options.count or 4):
                key = f"{length}/{number // self.per_haystack}"
                yield Sample(
                    id=f"{length}/{number}",
                    question=f"Which number is question {number} of {length}?",
                    haystack=Haystack(key, lambda key=key: self._documents(key)),
                    gold=str(number),
                    length_tokens=length,
                    cluster=key,
                )

    def _documents(self, key: str) -> list[tuple[str, str]]:
        self.loads.append(key)
        return [(f"{n}.txt", f"question {n} has the number {n}\n") for n in range(4)]


def install(patch: pytest.MonkeyPatch, toy: Toy) -> None:
    """Put a toy into the table of tasks for one test."""
    entry = tasks.TaskEntry(name=toy.name, summary="a toy", needs="nothing", create=lambda: toy)
    patch.setitem(tasks.TASKS, toy.name, entry)


def record(
    number: int = 0,
    score: float | None = 1.0,
    *,
    strategy: str = "rlm",
    length: int | None = 8192,
    **given: object,
) -> Record:
    """A record as a run would keep it."""
    made = Record(
        config="c",
        task="toy",
        id=str(number),
        strategy=strategy,
        question=f"question {number}",
        gold=str(number),
        haystack="h",
        at="2026-01-01T00:00:00+00:00",
        length_tokens=length,
        score=score,
        parse_ok=True,
        stop_reason="answered",
        seconds=1.0,
        **given,  # type: ignore[arg-type]
    )
    return made if score is not None else made.failed("model_timeout", "too late")
