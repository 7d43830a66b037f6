"""What a run of benchmarks may cost, told before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rlm_rag.api import load
from rlm_rag.engine.estimate import Estimate, Spend, estimate_tokens
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
    """Return what a run may cost; nothing is sent, no key is looked for, no folder is made.

    A haystack whose length is not known is loaded to be measured. What an installed system may
    cost is not known, and left out.

    Raises:
        UsageError, BenchmarkDataError: as `runner.prepare`.
    """
    config, jobs = prepare(config)
    sizes: dict[str, int] = {}
    costs = []
    for strategy in config.strategies:
        if strategy not in STRATEGIES:
            continue
        mine = [job for job in jobs if job.strategy == strategy]
        costs.append(_strategy_cost(config, strategy, mine, sizes))
    return RunCost(by_strategy=tuple(costs), max_usd=config.max_usd)


def _strategy_cost(
    config: RunConfig, strategy: str, jobs: Sequence[Job], sizes: dict[str, int]
) -> StrategyCost:
    low = likely = high = Spend(0, 0, 0, 0.0)
    for job in jobs:
        found = _estimate(config, strategy, job.sample, sizes)
        low, likely, high = low + found.low, likely + found.likely, high + found.high
    return StrategyCost(strategy=strategy, samples=len(jobs), low=low, likely=likely, high=high)


def _estimate(config: RunConfig, strategy: str, sample: Sample, sizes: dict[str, int]) -> Estimate:
    models = config.models
    return estimate_tokens(
        sample.question,
        _tokens(sample, sizes),
        names=models.names,
        settings=models.asking,
        limits=config.limits,
        strategy=strategy,
        profile=models.profile,
    )


def _tokens(sample: Sample, sizes: dict[str, int]) -> int:
    if sample.length_tokens is not None:
        return sample.length_tokens
    key = sample.haystack.key
    if key not in sizes:
        with load(sample.haystack.source()) as corpus:
            sizes[key] = corpus.total_bytes // BYTES_A_TOKEN
    return sizes[key]
