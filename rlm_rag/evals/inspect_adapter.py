"""Our tasks and strategies inside inspect_ai: its dataset, its solver, its scorer (an extra)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rlm_rag.engine.limits import Limits
from rlm_rag.engine.loop_thread import loop_thread
from rlm_rag.engine.pool import Pool
from rlm_rag.errors import MissingExtraError, RlmRagError
from rlm_rag.evals.asking import Asker
from rlm_rag.evals.base import Sample, Task, TaskOptions, length_bucket
from rlm_rag.evals.config import Models
from rlm_rag.evals.corpora import Corpora
from rlm_rag.evals.record import Record, from_dict
from rlm_rag.evals.tasks import find_task

_STORED = "rlm_rag"
_NO_RUN = "inspect"


def inspect_task(
    task: str | Task,
    *,
    strategy: str = "auto",
    options: TaskOptions | None = None,
    models: Models | None = None,
    limits: Limits | None = None,
    max_usd: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """Return an `inspect_ai.Task` that asks our samples by a strategy, or `search` without a model.

    The models are those of `models`, reached as `rlm_rag.RLM` reaches them, so that inspect's
    own is not asked (`inspect eval FILE --model none`). `max_usd` holds for all samples together.
    A sample whose run fails is an error of inspect's, by its `fail_on_error`. Standard errors
    are clustered as our intervals are; each score has what our record has of it in its metadata.

    Raises:
        MissingExtraError: inspect_ai is not installed.
        UsageError, BenchmarkDataError: as the task's `samples`.
    """
    try:
        import inspect_ai
        from inspect_ai.dataset import MemoryDataset
    except ImportError as error:
        raise MissingExtraError(
            "inspect_ai is not installed", hint="pip install 'rlm-rag[inspect]'"
        ) from error
    ours = find_task(task) if isinstance(task, str) else task
    samples = {sample.id: sample for sample in ours.samples(options or TaskOptions())}
    limits = limits or Limits()
    pool = Pool(usd=max_usd, concurrency=limits.concurrency)
    asker = Asker(models or Models(), limits, pool=pool, headers=headers)
    return inspect_ai.Task(
        name=f"rlm_rag/{ours.name}",
        dataset=MemoryDataset([_sample(sample) for sample in samples.values()], name=ours.name),
        solver=_solver(ours, samples, asker, strategy),
        scorer=_scorer(),
    )


def _sample(sample: Sample) -> Any:
    from inspect_ai.dataset import Sample as InspectSample

    gold = sample.gold
    is_plain = isinstance(gold, str) or (
        isinstance(gold, list) and all(isinstance(each, str) for each in gold)
    )
    return InspectSample(
        id=sample.id,
        input=sample.question,
        target=gold if is_plain else json.dumps(gold),
        metadata={
            "cluster": sample.cluster or sample.id,
            "length_tokens": sample.length_tokens,
            "length": length_bucket(sample.length_tokens),
        },
    )


def _solver(task: Task, samples: Mapping[str, Sample], asker: Asker, strategy: str) -> Any:
    from inspect_ai.model import ModelOutput, ModelUsage
    from inspect_ai.solver import solver

    corpora = Corpora()

    async def asked(sample: Sample) -> Record:
        async with corpora.use(sample.haystack) as corpus:
            return await asker.ask(task, sample, corpus, strategy, config=_NO_RUN, traces=None)

    def made() -> Callable[[Any, Any], Awaitable[Any]]:
        async def solve(state: Any, _generate: Any) -> Any:
            # Corpora, money and requests in flight belong to the library's own loop.
            run = loop_thread().submit(asked(samples[str(state.sample_id)]))
            record = await asyncio.wrap_future(run)
            if record.error is not None:
                raise RlmRagError(f"{record.error.kind}: {record.error.message}")
            state.store.set(_STORED, json.loads(json.dumps(record.to_dict())))
            state.output = ModelOutput.from_content(record.model or strategy, record.answer)
            given = record.root.input_tokens + record.sub.input_tokens
            made = record.root.output_tokens + record.sub.output_tokens
            state.output.usage = ModelUsage(
                input_tokens=given, output_tokens=made, total_tokens=given + made
            )
            return state

        return solve

    return solver(name=f"rlm_rag_{strategy}")(made)()


def _scorer() -> Any:
    from inspect_ai.scorer import Score, mean, scorer, stderr

    def made() -> Callable[[Any, Any], Awaitable[Any]]:
        async def score(state: Any, _target: Any) -> Any:
            record = from_dict(state.store.get(_STORED))
            parsed = record.parsed
            return Score(
                value=record.score,
                answer=parsed if isinstance(parsed, str) else json.dumps(parsed),
                metadata={
                    "parse_ok": record.parse_ok,
                    "stop_reason": record.stop_reason,
                    "usd": record.usd,
                    **record.detail,
                },
            )

        return score

    metrics = [mean(), stderr(cluster="cluster")]
    return scorer(metrics=metrics, name="rlm_rag")(made)()
