"""One sample asked in one way: of a model by a strategy, or of the index alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rlm_rag.api import SearchableCorpus
from rlm_rag.engine.answer import Answer
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.lineup import ModelNames, ModelSettings, open_lineup
from rlm_rag.engine.pool import Pool
from rlm_rag.errors import (
    ModelKeyError,
    ModelNotFoundError,
    RlmRagError,
    SandboxUnavailableError,
    UsageError,
)
from rlm_rag.evals.base import Response, Sample, Score, Scorer, Task
from rlm_rag.evals.config import RETRIEVAL_ONLY, Models
from rlm_rag.evals.judging import Judge
from rlm_rag.evals.record import BUDGET, SCORER, SYSTEM, Record, Spent
from rlm_rag.evals.scorers.judge import judged
from rlm_rag.evals.systems import find_system
from rlm_rag.indexes.requests import MAX_QUERY_CHARS, SearchRequest, SearchResult
from rlm_rag.models.base import Usage
from rlm_rag.rlm import RLM
from rlm_rag.setting_table import STRATEGIES
from rlm_rag.trace.events import Event, ReplyReceived, Retrieved, RunStarted

RANKED_WINDOWS = 400
"""Windows that retrieval alone is asked for; published rules look at 100 documents at most."""
MAX_SPANS = 1_000

# What is wrong for one sample is wrong for all.
FATAL = (UsageError, ModelKeyError, ModelNotFoundError, SandboxUnavailableError)


@dataclass(slots=True)
class Watch:
    """What a run tells while it is under way: how deep it goes, what it sees and costs."""

    depth: int = 0
    usage: Usage = field(default_factory=Usage)
    spans: dict[tuple[str, int, int], None] = field(default_factory=dict)

    def __call__(self, event: Event) -> None:
        match event:
            case RunStarted():
                self.depth = max(self.depth, event.depth)
            case ReplyReceived():
                self.usage += _usage(event.usage)
            case Retrieved():
                self.spans.update(((path, a, b), None) for path, a, b in event.seen)

    @property
    def retrieved(self) -> tuple[tuple[str, int, int], ...]:
        """Spans of the corpus that were shown, in their order, capped."""
        return tuple(self.spans)[:MAX_SPANS]


def _usage(figures: Mapping[str, Any]) -> Usage:
    known = Usage.__dataclass_fields__
    return Usage(**{name: value for name, value in figures.items() if name in known})


class Asker:
    """Asks samples by strategies, with models and limits that stay the same.

    Every sample's run has a share of `pool`. `headers` go with each request. A `judge` scores
    the answers in place of the tasks' rules.
    """

    def __init__(
        self,
        models: Models,
        limits: Limits,
        *,
        pool: Pool,
        headers: Mapping[str, str] | None = None,
        judge: str | None = None,
    ) -> None:
        self._judge = None if judge is None else Judge(judge, models, pool=pool, headers=headers)
        self._models = models
        self._limits = limits
        self._pool = pool
        self._headers = headers or {}

    async def check(self) -> None:
        """Open every model once, so that what keeps all samples from being asked is told first.

        Raises:
            ModelKeyError, ModelNotFoundError: a name or a key that cannot be used.
            UsageError: a parameter that cannot be set, or a price that is not known.
        """
        models = self._models
        names = ModelNames(
            model=models.model,
            sub_model=models.sub_model,
            at_depth=models.models_at_depth,
            fallbacks=models.fallback_models,
            allowed=models.allow_models,
        )
        settings = ModelSettings(
            api_base=models.api_base, price=models.price, extra=models.model_options
        )
        async with open_lineup(names, settings, limits=self._limits, share=self._pool.share()):
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
    ) -> Record:
        """Return the scored record of a sample; an error of its run is in it.

        Traces go to the folder `traces`, None keeps none.

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
        if strategy == RETRIEVAL_ONLY:
            record = await self._ranked(record, corpus, sample.query or sample.question)
            return await scored(record, task.ranking)
        if strategy in STRATEGIES:
            record = await self._answered(record, corpus, traces)
        else:
            record = await self._by_system(record, corpus)
        return await self.score(task, record, traces) if record.error is None else record

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

    async def _ranked(self, record: Record, corpus: SearchableCorpus, query: str) -> Record:
        started = time.perf_counter()
        request = SearchRequest(query=query[:MAX_QUERY_CHARS], k=RANKED_WINDOWS)
        result = await asyncio.to_thread(corpus.retrieve, request)
        hits = result.hits if isinstance(result, SearchResult) else ()
        spans = tuple((hit.path, hit.line, hit.end_line) for hit in hits)
        return replace(
            record,
            ranked=tuple(dict.fromkeys(hit.path for hit in hits)),
            retrieved=spans[:MAX_SPANS],
            stop_reason="answered",
            seconds=_since(started),
            at=_now(),
        )

    async def _answered(
        self, record: Record, corpus: SearchableCorpus, traces: Path | None
    ) -> Record:
        watch, share = Watch(), self._pool.share()
        started = time.perf_counter()
        options = self._models.options()
        options["limits"] = self._limits
        options["headers"] = self._headers
        options["strategy"] = record.strategy
        options["trace"] = traces or False
        options["on_event"] = watch
        options["share"] = share
        rlm = RLM(**options)
        record = replace(record, model=self._models.model)
        try:
            answer = await rlm.ask_async(corpus, record.question)
        except FATAL:
            raise
        except RlmRagError as error:
            failed = _under_way(record, watch, started, traces)
            return failed.failed(error.kind, error.message)
        record = _with_answer(_under_way(record, watch, started, traces), answer)
        if share.refused:
            return record.failed(BUDGET, "the money for the whole run did not last for it")
        return record

    async def _by_system(self, record: Record, corpus: SearchableCorpus) -> Record:
        record = replace(record, model=self._models.model)
        system = find_system(record.strategy)
        started = time.perf_counter()
        try:
            answer = await system.answer(
                corpus, record.question, models=self._models, limits=self._limits
            )
        except FATAL:
            raise
        except Exception as error:  # noqa: BLE001 a system is anyone's, and others are asked yet
            message = f"{type(error).__name__}: {error}"
            return replace(record, seconds=_since(started), at=_now()).failed(SYSTEM, message)
        return replace(
            record,
            answer=answer.text,
            stop_reason=answer.stop_reason,
            calls=answer.spent.calls,
            root=answer.spent,
            usd=None,
            seconds=_since(started),
            at=_now(),
        )


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
        at=_now(),
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


def _under_way(record: Record, watch: Watch, started: float, traces: Path | None) -> Record:
    usage = watch.usage
    files = sorted(traces.glob("*.jsonl")) if traces is not None else []
    return replace(
        record,
        depth=watch.depth,
        retrieved=watch.retrieved,
        usd=usage.usd,
        calls=usage.calls,
        seconds=_since(started),
        trace=None if not files or traces is None else _below(files[-1], traces),
        at=_now(),
    )


def _below(file: Path, traces: Path) -> str:
    return str(file.relative_to(traces.parents[1]))


def _with_answer(record: Record, answer: Answer) -> Record:
    roles = {role: Spent.of(usage) for role, usage in answer.by_role.items()}
    return replace(
        record,
        answer=answer.text,
        cited=tuple(dict.fromkeys(each.path for each in answer.citations if each.verified)),
        stop_reason=answer.stop_reason,
        usd=answer.usage.usd,
        calls=answer.usage.calls,
        cached_calls=answer.usage.cached_calls,
        root=roles.get("root", Spent()),
        sub=roles.get("sub", Spent()),
        iterations=answer.iterations,
    )


def _since(started: float) -> float:
    return round(time.perf_counter() - started, 4)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
