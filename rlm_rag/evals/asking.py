"""One sample asked in one way, and scored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from rlm_rag.api import SearchableCorpus
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.lineup import open_lineup
from rlm_rag.engine.pool import Share
from rlm_rag.errors import DivergedError
from rlm_rag.evals.answering import Answering, now
from rlm_rag.evals.base import Response, Sample, Score, Scorer, Task
from rlm_rag.evals.config import RETRIEVAL_ONLY, Models
from rlm_rag.evals.judging import Judge
from rlm_rag.evals.record import SCORER, Record
from rlm_rag.evals.scorers.judge import judged
from rlm_rag.trace.reader import Trace


class Answers(Protocol):
    """Has the sample of a record answered."""

    async def __call__(
        self,
        record: Record,
        corpus: SearchableCorpus,
        traces: Path | None,
        *,
        before: Trace | None = None,
    ) -> Record:
        """Ask it of `corpus`, with its trace in the folder `traces`; it goes on from `before`.

        Raises:
            DivergedError: it does something else now than it had done before.
            RlmRagError: what keeps every sample from being answered.
        """
        ...


class Money(Protocol):
    """What the samples of a run may spend together."""

    def share(self) -> Share:
        """Return a part in it, for one sample."""
        ...

    async def spent(self) -> float:
        """Return what is spent of it, in dollars."""
        ...


class Asker:
    """Asks samples by strategies, with models and limits that stay the same.

    Every sample's run has a share of `pool`. `headers` go with each request. A `judge` scores
    the answers in place of the tasks' rules. `answers` has them answered elsewhere.
    """

    def __init__(
        self,
        models: Models,
        limits: Limits,
        *,
        pool: Money,
        headers: Mapping[str, str] | None = None,
        judge: str | None = None,
        answers: Answers | None = None,
    ) -> None:
        self._judge = (
            None if judge is None else Judge(judge, models, share=pool.share, headers=headers)
        )
        self._models = models
        self._limits = limits
        self._pool = pool
        self._answers = answers or Answering(models, limits, share=pool.share, headers=headers)

    async def check(self) -> None:
        """Open every model once, so that what keeps all samples from being asked is told first.

        Raises:
            ModelKeyError, ModelNotFoundError: a name or a key that cannot be used.
            UsageError: a parameter that cannot be set, or a price that is not known.
        """
        models = self._models
        async with open_lineup(
            models.names, models.asking, limits=self._limits, share=self._pool.share()
        ):
            return

    async def ask(
        self,
        task: Task,
        sample: Sample,
        corpus: SearchableCorpus,
        strategy: str,
        *,
        config: str,
        traces: Path | None,
        before: Trace | None = None,
    ) -> Record:
        """Return the scored record of a sample; an error of its run is in it.

        Traces go to the folder `traces`, None keeps none. What a run that was cut short came to
        `before` is not asked again, unless it does something else now: then it begins anew.

        Raises:
            RlmRagError: one of `FATAL`.
        """
        record = blank(task.name, sample, strategy, config=config)
        record = replace(
            record,
            documents=len(corpus),
            total_bytes=corpus.total_bytes,
            fingerprint=corpus.fingerprint,
        )
        try:
            record = await self._answers(record, corpus, traces, before=before)
        except DivergedError:
            record = await self._answers(record, corpus, traces)
        if record.error is not None:
            return record
        if strategy == RETRIEVAL_ONLY:
            return await scored(record, task.ranking)
        return await self.score(task, record, traces)

    async def score(self, task: Task, record: Record, traces: Path | None) -> Record:
        """Return a record of an answer with its score, the judge's where there is one.

        Raises:
            RlmRagError: one of `FATAL`.
        """
        if self._judge is None:
            return await scored(record, task.scorer)
        ruled: list[Score] = []

        def kept(response: Response, sample: Sample) -> Score:
            ruled.append(task.scorer(response, sample))
            return ruled[0]

        record = await scored(record, kept)
        return await self._judge.score(record, ruled[0], traces=traces) if ruled else record


def blank(task: str, sample: Sample, strategy: str, *, config: str) -> Record:
    """Return the record of a sample that was not asked yet."""
    return Record(
        config=config,
        task=task,
        id=sample.id,
        strategy=strategy,
        question=sample.question,
        query=sample.query,
        gold=sample.gold,
        haystack=sample.haystack.key,
        at=now(),
        length_tokens=sample.length_tokens,
        cluster=sample.cluster,
        joint=sample.joint,
        meta=dict(sample.meta),
    )


async def scored(record: Record, scorer: Scorer | None) -> Record:
    """Return the record with its score, or with what its scorer failed with."""
    if scorer is None:
        return record.failed("no_ranking", f"the task {record.task} does not score ranked paths")
    try:
        score = await asyncio.to_thread(scorer, record.response, record.sample)
        if record.judge is not None:
            score = judged(record.judge.reply, score)
    except Exception as error:  # noqa: BLE001 a scorer may be anyone's, and the answer is paid for
        return record.failed(SCORER, f"{type(error).__name__}: {error}")
    return record.scored(score)
