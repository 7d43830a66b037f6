"""What a run of benchmarks may cost, told before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rlm_rag.api import load
from rlm_rag.engine.estimate import Spend, estimate_tokens
from rlm_rag.engine.lineup import ModelSettings
from rlm_rag.engine.loop_thread import loop_thread
from rlm_rag.engine.windows import with_served_windows
from rlm_rag.evals.base import Sample
from rlm_rag.evals.config import RunConfig
from rlm_rag.evals.record import BYTES_A_TOKEN
from rlm_rag.evals.runner import Job, prepare
from rlm_rag.setting_table import STRATEGIES


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyCost:
    """What all samples may cost by one strategy."""

    strategy: str
    samples: int
    low: Spend
    likely: Spend
    high: Spend


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCost:
    """What a run may cost if all goes quickly, as usual, or at length; samples are asked once."""

    by_strategy: tuple[StrategyCost, ...]
    max_usd: float | None

    def to_dict(self) -> dict[str, Any]:
        """The object that `eval run --estimate --json` prints."""
        return {"schema_version": 1, **asdict(self)}


def cost_of(config: RunConfig) -> RunCost:
    """Return what a run may cost; no model is asked, no key is looked for, no folder is made.

    A server of one's own is asked for a window that nobody has told. A haystack whose length is
    not known is loaded to be measured. What an installed system may cost is not known, and left
    out.

    Raises:
        UsageError, BenchmarkDataError: as `runner.prepare`.
    """
    config, jobs = prepare(config)
    asked = [strategy for strategy in config.strategies if strategy in STRATEGIES]
    settings = config.models.asking
    if asked:
        names = config.models.names
        served = with_served_windows(settings, (names.model, names.sub))
        settings = loop_thread().run(served)
    sizes: dict[str, int] = {}
    costs = []
    for strategy in asked:
        mine = [job for job in jobs if job.strategy == strategy]
        costs.append(_strategy_cost(config, settings, strategy, mine, sizes))
    return RunCost(by_strategy=tuple(costs), max_usd=config.max_usd)


def _strategy_cost(
    config: RunConfig,
    settings: ModelSettings,
    strategy: str,
    jobs: Sequence[Job],
    sizes: dict[str, int],
) -> StrategyCost:
    low = likely = high = Spend(0, 0, 0, 0.0)
    for job in jobs:
        found = estimate_tokens(
            job.sample.question,
            _tokens(job.sample, sizes),
            names=config.models.names,
            settings=settings,
            limits=config.limits,
            strategy=strategy,
            profile=config.models.profile,
        )
        low, likely, high = low + found.low, likely + found.likely, high + found.high
    return StrategyCost(strategy=strategy, samples=len(jobs), low=low, likely=likely, high=high)


def _tokens(sample: Sample, sizes: dict[str, int]) -> int:
    if sample.length_tokens is not None:
        return sample.length_tokens
    key = sample.haystack.key
    if key not in sizes:
        with load(sample.haystack.source()) as corpus:
            sizes[key] = corpus.total_bytes // BYTES_A_TOKEN
    return sizes[key]
