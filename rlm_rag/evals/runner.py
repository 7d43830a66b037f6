"""Run benchmarks: every sample by every strategy, as many at a time as one controller lets."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

from rlm_rag.engine.loop_thread import loop_thread, outcome
from rlm_rag.engine.options import without_password
from rlm_rag.engine.pool import Pool
from rlm_rag.errors import (
    RlmRagError,
    RunFolderError,
    UsageError,
)
from rlm_rag.evals.answering import FATAL
from rlm_rag.evals.asking import Answers, Asker, Money, blank, scored
from rlm_rag.evals.base import Sample, Task
from rlm_rag.evals.config import (
    RETRIEVAL_ONLY,
    RunConfig,
    changes,
    collect_versions,
    digest_of_data,
    digest_of_samples,
)
from rlm_rag.evals.corpora import Corpora
from rlm_rag.evals.record import BUDGET, Key, Record
from rlm_rag.evals.run_folder import Appender, RunFolder
from rlm_rag.evals.spread import spread
from rlm_rag.evals.tasks import find_task

MOST_ERRORS = 5
"""So many samples in a row that fail end a run: the next would fail too, and cost as much."""
INTERRUPT_SECONDS = 10.0

Stop = Literal["budget_usd", "errors", "interrupted"]


class Job(NamedTuple):
    """One sample to be asked in one way."""

    task: Task
    sample: Sample
    strategy: str

    @property
    def key(self) -> Key:
        return Key(self.task.name, self.sample.id, self.strategy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: of `total` samples by strategy `done` have a score, `errors` none.

    `stopped` says why it ended before all were asked; `detail` says it in words.
    """

    total: int
    done: int = 0
    errors: int = 0
    spent_usd: float = 0.0
    stopped: Stop | None = None
    detail: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every sample has a score."""
        return self.done == self.total


def prepare(config: RunConfig) -> tuple[RunConfig, list[Job]]:
    """Return the configuration with what the run is made of, and what there is to ask.

    Raises:
        UsageError: a task, option or strategy that cannot be used.
        BenchmarkDataError: data that is not in the benchmark's published format.
    """
    config = _in_full(config)
    tasks = [find_task(name) for name in config.tasks]
    options = config.task_options
    samples = [(task, sample) for task in tasks for sample in task.samples(options)]
    _check(config, samples)
    config = replace(
        config,
        samples=len(samples),
        samples_sha256=digest_of_samples((task.name, sample) for task, sample in samples),
        data_sha256=_digest_of_files(config),
        versions=collect_versions(),
    )
    return config, [
        Job(task, sample, strategy) for task, sample in samples for strategy in config.strategies
    ]


def _in_full(config: RunConfig) -> RunConfig:
    """The configuration with whole paths, so that it means the same in any folder."""

    def whole(path: str) -> str:
        return str(Path(path).resolve()) if Path(path).exists() else path

    return replace(
        config,
        tasks=tuple(whole(name) if Path(name).is_file() else name for name in config.tasks),
        data=None if config.data is None else str(Path(config.data).resolve()),
        corpus=None if config.corpus is None else whole(config.corpus),
    )


def _digest_of_files(config: RunConfig) -> str | None:
    """The digest of the benchmark's own data, and of one's own questions."""
    files = [Path(name) for name in config.tasks if Path(name).is_file()]
    files += [Path(config.data)] if config.data is not None else []
    if not files:
        return None
    return hashlib.sha256("\n".join(map(digest_of_data, files)).encode()).hexdigest()


def _check(config: RunConfig, samples: Sequence[tuple[Task, Sample]]) -> None:
    if not samples:
        raise UsageError(
            "there is no sample to ask",
            hint="longer --lengths, or other data; see rlm-rag eval list",
        )
    seen: set[tuple[str, str]] = set()
    for task, sample in samples:
        if (task.name, sample.id) in seen:
            raise UsageError(
                f"{task.name} has two samples with the id {sample.id!r}",
                hint="ids tell samples apart; name each task once",
            )
        seen.add((task.name, sample.id))
        if task.ranking is None and RETRIEVAL_ONLY in config.strategies:
            raise UsageError(
                f"{task.name} has no gold paths, so that retrieval alone cannot be scored",
                hint="leave --retrieval-only out",
            )


def start(
    config: RunConfig,
    out: Path,
    *,
    headers: Mapping[str, str] | None = None,
    most: int | None = None,
    ray: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Progress:
    """Begin a run in the new folder `out` and take it as far as it goes, or `most` samples far.

    Samples are asked on the nodes of the Ray cluster at `ray` (`HOST:PORT`, or `local`), or
    here. `on_progress` is called on the library's thread. Ctrl-C ends it in order: `stopped` is
    `interrupted` then, and `resume` goes on.

    Raises:
        UsageError, BenchmarkDataError: as `prepare`.
        RunFolderError: the folder cannot be used.
        ModelError, SandboxError: what keeps every sample from being answered.
    """
    config, jobs = prepare(config)
    if any(strategy != RETRIEVAL_ONLY for strategy in config.strategies):
        asker = Asker(config.models, config.limits, pool=Pool(usd=config.max_usd), headers=headers)
        loop_thread().run(asker.check())
    kept = replace(config.models, api_base=without_password(config.models.api_base))
    folder = RunFolder.create(out, replace(config, models=kept))
    folder.config = config
    return _run(
        folder,
        jobs,
        headers=headers,
        max_usd=config.max_usd,
        most=most,
        ray=ray,
        on_progress=on_progress,
    )


def resume(
    path: Path,
    *,
    max_usd: float | None = None,
    api_base: str | None = None,
    headers: Mapping[str, str] | None = None,
    most: int | None = None,
    ray: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Progress:
    """Go on with a run: what has an answer is not asked again, what failed is.

    A sample that was cut short, by the end of its process or for want of money or nodes, goes on
    from its trace. At most `most` samples are asked now. `max_usd` takes the place of the run's
    own, and what was spent counts; `api_base` that of where its models were. `ray` is as for
    `start`.

    Raises:
        RunFolderError: the configuration, the data or this package is not what the run began
            with.
        UsageError, ModelError, SandboxError: as `start`.
    """
    folder = RunFolder.open(path)
    config, jobs = prepare(folder.config)
    changed = changes(folder.config, config)
    if changed:
        raise RunFolderError(
            f"{path} cannot be gone on with: {'; '.join(changed[:3])}",
            hint="start a new run: samples of two do not mix",
        )
    if api_base is not None:
        folder.config = replace(config, models=replace(config.models, api_base=api_base))
    limit = config.max_usd if max_usd is None else max_usd
    return _run(
        folder,
        jobs,
        headers=headers,
        max_usd=limit,
        most=most,
        ray=ray,
        on_progress=on_progress,
    )


def score_again(path: Path) -> tuple[int, int]:
    """Score a run's answers by the scorers of today; return how many there are, and how many
    scores changed.

    Raises:
        RunFolderError: the folder cannot be used.
        UsageError: a task that there is none of any more.
    """
    folder = RunFolder.open(path)
    records = [record for record in folder.records().values() if record.is_answered]
    tasks = {task.name: task for task in map(find_task, folder.config.tasks)}
    changed = 0
    with folder.appending() as appender:
        for record in records:
            task = tasks[record.task]
            scorer = task.ranking if record.strategy == RETRIEVAL_ONLY else task.scorer
            again = loop_thread().run(scored(record, scorer))
            if again != record:
                appender.append(again)
                changed += 1
    return len(records), changed


def _run(
    folder: RunFolder,
    jobs: Sequence[Job],
    *,
    headers: Mapping[str, str] | None,
    max_usd: float | None,
    most: int | None,
    ray: str | None,
    on_progress: Callable[[Progress], None] | None,
) -> Progress:
    """Run on the library's loop, and wait for the end in order where this is interrupted."""
    with folder.appending() as appender:
        runner = Runner(folder, jobs, appender, most=most, on_progress=on_progress)
        ended = threading.Event()
        future = loop_thread().submit(
            _to_end(runner, folder, ended, headers=headers, max_usd=max_usd, ray=ray)
        )
        try:
            outcome(future)
        except KeyboardInterrupt:
            _interrupt(future, ended)
            return replace(runner.progress, stopped="interrupted", detail="interrupted")
        return runner.progress


async def _to_end(
    runner: Runner,
    folder: RunFolder,
    ended: threading.Event,
    *,
    headers: Mapping[str, str] | None,
    max_usd: float | None,
    ray: str | None,
) -> None:
    config, spent_usd = folder.config, folder.spent_usd()
    money: Money = Pool(usd=max_usd, spent_usd=spent_usd, concurrency=config.limits.concurrency)
    answers: Answers | None = None
    try:
        async with AsyncExitStack() as stack:
            if ray is not None:
                answers, money = await stack.enter_async_context(
                    spread(
                        ray,
                        config.models,
                        config.limits,
                        usd=max_usd,
                        spent_usd=spent_usd,
                        headers=headers,
                    )
                )
            asker = Asker(
                config.models,
                config.limits,
                pool=money,
                headers=headers,
                judge=config.judge,
                answers=answers,
            )
            await runner.run(asker, money)
    finally:
        ended.set()


def _interrupt(future: Future[None], ended: threading.Event) -> None:
    future.cancel()
    ended.wait(INTERRUPT_SECONDS)


class Runner:
    """What is left of a run's jobs, or the first `most`, asked in order; used once."""

    def __init__(
        self,
        folder: RunFolder,
        jobs: Sequence[Job],
        appender: Appender,
        *,
        most: int | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._folder = folder
        self._spent_usd = folder.spent_usd()
        self._appender = appender
        self._on_progress = on_progress
        self._known = known = folder.records()
        answered = {key for key, record in known.items() if record.is_answered}
        self._left = iter([job for job in jobs if job.key not in answered][:most])
        self._unjudged = {key: record for key, record in known.items() if record.wants_judge}
        self._total = len(jobs)
        self._done = {key for key, record in known.items() if record.error is None}
        self._failed = known.keys() - self._done
        self._fingerprints = {
            each.haystack: each.fingerprint for each in known.values() if each.fingerprint
        }
        self._errors_in_a_row = 0
        self._stopped: Stop | None = None
        self._detail: str | None = None

    @property
    def progress(self) -> Progress:
        """How far it is."""
        return Progress(
            total=self._total,
            done=len(self._done),
            errors=len(self._failed),
            spent_usd=self._spent_usd,
            stopped=self._stopped,
            detail=self._detail,
        )

    async def run(self, asker: Asker, money: Money) -> None:
        """Ask what is left, of what spends `money`.

        Raises:
            RlmRagError: what keeps every sample from being answered.
        """
        corpora = Corpora()
        workers = [
            asyncio.create_task(self._work(asker, money, corpora))
            for _ in range(self._folder.config.parallel)
        ]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await corpora.aclose()
            self._spent_usd = await money.spent()

    async def _work(self, asker: Asker, money: Money, corpora: Corpora) -> None:
        for job in self._left:
            record = await self._asked(job, asker, corpora)
            # Not in a thread, which an interrupt would leave behind: a sample is paid for once.
            self._appender.append(record)
            self._count(record)
            self._spent_usd = await money.spent()
            if self._on_progress is not None:
                self._on_progress(self.progress)
            if self._stopped is not None:
                return

    async def _asked(self, job: Job, asker: Asker, corpora: Corpora) -> Record:
        digest = self._folder.digest
        unjudged = self._unjudged.get(job.key)
        if unjudged is not None:
            return await asker.score(job.task, unjudged, self._folder.trace_folder(job.key))
        try:
            before = await asyncio.to_thread(
                self._folder.cut_short, job.key, self._known.get(job.key)
            )
            if before is not None and before.root is not None:
                self._check_unchanged(job.sample, str(before.root.corpus["fingerprint"]))
            async with corpora.use(job.sample.haystack) as corpus:
                self._check_unchanged(job.sample, corpus.fingerprint)
                return await asker.ask(
                    job.task,
                    job.sample,
                    corpus,
                    job.strategy,
                    config=digest,
                    traces=self._folder.trace_folder(job.key),
                    before=before,
                )
        except (RunFolderError, *FATAL):
            raise
        except RlmRagError as error:
            # The haystack could not be loaded, or not be searched.
            record = blank(job.task.name, job.sample, job.strategy, config=digest)
            return record.failed(error.kind, error.message)

    def _check_unchanged(self, sample: Sample, fingerprint: str) -> None:
        known = self._fingerprints.setdefault(sample.haystack.key, fingerprint)
        if known != fingerprint:
            raise RunFolderError(
                f"the documents of {sample.haystack.key} changed since the run began",
                hint="start a new run: samples of two do not mix",
            )

    def _count(self, record: Record) -> None:
        if record.error is None:
            self._done.add(record.key)
            self._failed.discard(record.key)
            self._errors_in_a_row = 0
            return
        self._failed.add(record.key)
        if record.error.kind == BUDGET:
            self._stop("budget_usd", record.error.message)
            return
        self._errors_in_a_row += 1
        if self._errors_in_a_row >= MOST_ERRORS:
            count = self._errors_in_a_row
            self._stop("errors", f"{count} samples in a row failed: {record.error.message}")

    def _stop(self, reason: Stop, detail: str) -> None:
        if self._stopped is None:
            self._stopped, self._detail = reason, detail
