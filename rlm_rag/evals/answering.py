"""What a sample comes to on this machine: asked of a model by a strategy, or of the index alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from rlm_rag.api import SearchableCorpus
from rlm_rag.engine.answer import Answer
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.loop_thread import loop_thread
from rlm_rag.engine.past import Past
from rlm_rag.engine.pool import Share
from rlm_rag.engine.recorded import unheard, usage_of
from rlm_rag.engine.run import Run
from rlm_rag.engine.tally import Tally
from rlm_rag.errors import (
    DivergedError,
    ModelKeyError,
    ModelNotFoundError,
    RlmRagError,
    SandboxUnavailableError,
    UsageError,
)
from rlm_rag.evals.config import RETRIEVAL_ONLY, Models
from rlm_rag.evals.record import BUDGET, SYSTEM, Record, Spent
from rlm_rag.evals.systems import find_system
from rlm_rag.indexes.requests import MAX_QUERY_CHARS, SearchRequest, SearchResult
from rlm_rag.models.base import Usage
from rlm_rag.rlm import RLM
from rlm_rag.setting_table import STRATEGIES
from rlm_rag.trace.events import CallSent, Event, ReplyReceived, Retrieved, RunStarted
from rlm_rag.trace.reader import Trace
from rlm_rag.trace.store import TraceStore

RANKED_WINDOWS = 400
"""Windows that retrieval alone is asked for; published rules look at 100 documents at most."""
MAX_SPANS = 1_000

# What is wrong for one sample is wrong for all.
FATAL = (UsageError, ModelKeyError, ModelNotFoundError, SandboxUnavailableError)


@dataclass(slots=True)
class Watch:
    """What a run tells while it is under way: how deep it goes, what it sees and costs.

    `tell` is told it too, unless it is of the `past`. `replied` has what was replied to,
    `lost` what those calls of the past may have cost whose replies died with their process.
    """

    tell: Callable[[Event], None] | None = None
    run: str = ""
    depth: int = 0
    replied: Tally = field(default_factory=Tally)
    lost: Usage = field(default_factory=Usage)
    spans: dict[tuple[str, int, int], None] = field(default_factory=dict)
    _sent: dict[tuple[str, int], CallSent] = field(default_factory=dict)

    def past(self, trace: Trace) -> None:
        """Take what the run had told where it began."""
        for event in trace.events:
            self._take(event)
        for sent in self._sent.values():
            self.lost += usage_of(unheard(sent))
        self._sent.clear()

    def __call__(self, event: Event) -> None:
        if self.tell is not None:
            self.tell(event)
        self._take(event)

    def _take(self, event: Event) -> None:
        match event:
            case RunStarted():
                self.run = self.run or event.run
                self.depth = max(self.depth, event.depth)
            case CallSent():
                self._sent[event.run, event.call] = event
            case ReplyReceived():
                sent = self._sent.pop((event.run, event.call))
                self.replied.add_recorded(usage_of(event.usage), sent)
            case Retrieved():
                self.spans.update(((path, a, b), None) for path, a, b in event.seen)

    @property
    def retrieved(self) -> tuple[tuple[str, int, int], ...]:
        """Spans of the corpus that were shown, in their order, capped."""
        return tuple(self.spans)[:MAX_SPANS]


class Answering:
    """Has samples answered here, with models and limits that stay the same.

    Every run has a part of what `share` gives one of. `headers` go with each request.
    """

    def __init__(
        self,
        models: Models,
        limits: Limits,
        *,
        share: Callable[[], Share],
        headers: Mapping[str, str] | None = None,
        tell: Callable[[Event], None] | None = None,
    ) -> None:
        self._models = models
        self._limits = limits
        self._share = share
        self._headers = headers or {}
        self._tell = tell

    async def __call__(
        self,
        record: Record,
        corpus: SearchableCorpus,
        traces: Path | None,
        *,
        before: Trace | None = None,
    ) -> Record:
        """Return the record of a sample with its answer, or with what its run failed with.

        Its run goes on from what it came to `before`, with `traces` in the same file.

        Raises:
            DivergedError: it does something else now.
            RlmRagError: one of `FATAL`.
        """
        if record.strategy == RETRIEVAL_ONLY:
            return await self._ranked(record, corpus, record.query or record.question)
        if record.strategy in STRATEGIES:
            return await self._answered(record, corpus, traces, before or Trace(Path(), ()))
        return await self._by_system(record, corpus)

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
            at=now(),
        )

    async def _answered(
        self, record: Record, corpus: SearchableCorpus, traces: Path | None, before: Trace
    ) -> Record:
        watch, share, past = Watch(self._tell), self._share(), Past(before)
        watch.past(before)
        started = time.perf_counter() - past.elapsed_seconds
        options = self._models.options()
        options["limits"] = self._limits
        options["headers"] = self._headers
        options["strategy"] = record.strategy
        options["trace"] = traces or False
        options["on_event"] = watch
        options["share"] = share
        run = Run(
            corpus=corpus,
            retriever=corpus.ready_retriever(),
            question=record.question,
            options=RLM(**options).options,
            past=past,
        )
        record = replace(record, model=self._models.model)
        try:
            answer = await loop_thread().awaited(run.execute())
        except (DivergedError, *FATAL):
            raise
        except RlmRagError as error:
            failed = _under_way(record, watch, started, traces)
            return failed.failed(error.kind, error.message)
        record = _with_answer(_under_way(record, watch, started, traces), answer)
        if past.is_over and before.answer is not None:
            record = replace(record, seconds=round(before.answer.seconds, 4))
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
            return replace(record, seconds=_since(started), at=now()).failed(SYSTEM, message)
        return replace(
            record,
            answer=answer.text,
            stop_reason=answer.stop_reason,
            calls=answer.spent.calls,
            root=answer.spent,
            usd=None,
            seconds=_since(started),
            at=now(),
        )


def _under_way(record: Record, watch: Watch, started: float, traces: Path | None) -> Record:
    usage, by_role = watch.replied.usage, watch.replied.by_role
    file = Path() if traces is None else TraceStore(traces).path_of(watch.run)
    return replace(
        record,
        depth=watch.depth,
        retrieved=watch.retrieved,
        usd=(usage + watch.lost).usd,
        calls=usage.calls,
        cached_calls=usage.cached_calls,
        root=Spent.of(by_role.get("root", Usage())),
        sub=Spent.of(by_role.get("sub", Usage())),
        seconds=_since(started),
        trace=below(file, traces) if traces is not None and file.exists() else None,
        at=now(),
    )


def below(file: Path, traces: Path) -> str:
    """Return the path of a trace below the folder of its run."""
    return str(file.relative_to(traces.parents[1]))


def _with_answer(record: Record, answer: Answer) -> Record:
    return replace(
        record,
        answer=answer.text,
        cited=tuple(dict.fromkeys(each.path for each in answer.citations if each.verified)),
        stop_reason=answer.stop_reason,
        iterations=answer.iterations,
    )


def _since(started: float) -> float:
    return round(time.perf_counter() - started, 4)


def now() -> str:
    """Return the time in ISO UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
