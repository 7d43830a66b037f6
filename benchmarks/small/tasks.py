"""The three groups as tasks of `rlm_rag.evals`, in two sets: sixty, and thirty held out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

from benchmarks.entry_points import registered
from benchmarks.small import documents, records, repositories, scoring
from benchmarks.small.questions import Question
from benchmarks.small.sources import Files, repository
from rlm_rag.evals.base import Haystack, Sample, Scorer, TaskOptions
from rlm_rag.evals.config import SYSTEMS
from rlm_rag.evals.tasks import ENTRY_POINTS
from rlm_rag.loaders.source import Source

PREFIX = "small:"


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """So many questions of each group, from a seed; what is `held` out is never shown."""

    seed: int
    count: int
    held: bool


SETS = {"sixty": QuestionSet(0, 20, held=False), "held": QuestionSet(1, 10, held=True)}


@dataclass(frozen=True, slots=True)
class SmallTask:
    """One group: `draw` makes its questions, `read` the files of a corpus of a seed."""

    group: str
    draw: Callable[[int, int], Iterator[Question]]
    read: Callable[[int, str], Files]
    scorer: Scorer = scoring.score
    ranking: Scorer | None = None

    @property
    def name(self) -> str:
        return PREFIX + self.group

    def samples(self, options: TaskOptions) -> Iterator[Sample]:
        """Yield 20 samples, or `count`, those of one corpus after one another."""
        drawn = list(enumerate(self.draw(options.seed, options.count or SETS["sixty"].count)))
        corpora = list(dict.fromkeys(question.corpus for _, question in drawn))
        drawn.sort(key=lambda each: corpora.index(each[1].corpus))
        for number, question in drawn:
            corpus = question.corpus
            yield Sample(
                id=f"{options.seed}/{number:02}",
                question=question.text,
                haystack=Haystack(
                    f"{self.name}/{options.seed}/{corpus}",
                    partial(self._documents, options.seed, corpus),
                ),
                gold=question.gold,
                meta={"kind": question.kind, "corpus": corpus},
            )

    def _documents(self, seed: int, corpus: str) -> Source:
        return list(self.read(seed, corpus))


def repositories_task() -> SmallTask:
    return SmallTask(
        repositories.GROUP,
        repositories.repository_questions,
        lambda _seed, name: repository(name),
    )


def documents_task() -> SmallTask:
    return SmallTask(
        documents.GROUP,
        documents.document_questions,
        lambda seed, size: documents.heap(seed, size).files(),
    )


def records_task() -> SmallTask:
    return SmallTask(records.GROUP, records.record_questions, records.files)


GROUPS = (repositories.GROUP, documents.GROUP, records.GROUP)


def found_by_evals() -> AbstractContextManager[None]:
    """Let `rlm_rag.evals` find the tasks, and the systems that they are asked of."""
    return registered(
        {
            ENTRY_POINTS: {f"{PREFIX}{group}": f"{__name__}:{group}_task" for group in GROUPS},
            SYSTEMS: {
                "alone": "benchmarks.small.alone:Alone",
                "rlms": "benchmarks.small.rlms:Rlms",
            },
        }
    )
