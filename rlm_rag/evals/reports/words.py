"""Figures as a report shows them, in every form of it."""

from __future__ import annotations

from collections.abc import Sequence

from rlm_rag.evals.reports.cells import Cell
from rlm_rag.evals.reports.report import Summary

NONE = "–"

COLUMNS = (
    *("length", "strategy", "n", "score %", "95 %", "$/sample", "$", "p50 s", "p95 s"),
    *("parse failures", "errors", "stopped", "calls", "root tokens", "sub tokens"),
)

NOTE = (
    "Scores are means with a 95 % interval by bootstrap over clusters. Parse failures (answers "
    "without the form that was asked for) and answers stopped by a limit are scored by the task's "
    "rule; errors have no score and are in no mean. Calls and tokens are means of a sample."
)


def row(cell: Cell) -> tuple[str, ...]:
    """Return a cell's figures, one for each of `COLUMNS`."""
    return (
        cell.length,
        cell.strategy,
        str(cell.n),
        percent(cell.score),
        between(cell.low, cell.high),
        money(cell.usd_per_sample),
        money(cell.usd),
        seconds(cell.seconds_p50),
        seconds(cell.seconds_p95),
        str(cell.unparsed),
        _errors(cell),
        str(cell.stopped),
        f"{cell.calls:.1f}",
        f"{cell.root_tokens:,.0f}",
        f"{cell.sub_tokens:,.0f}",
    )


def _errors(cell: Cell) -> str:
    kinds = ", ".join(
        f"{kind.replace('_', ' ')} {count}" for kind, count in sorted(cell.error_kinds.items())
    )
    return f"{cell.errors} ({kinds})" if kinds else str(cell.errors)


def facts(run: Summary) -> Sequence[str]:
    """Return what a run was and how far it came, a sentence each."""
    config = run.config
    versions = config["versions"]
    state = "complete" if run.is_complete else "partial"
    said = [
        f"{run.asked:,} of {run.total:,} asked, {run.errors:,} errors ({state}), "
        f"{money(run.spent_usd)} spent",
        f"model {run.model}, seed {config['seed']}, rlm-rag {versions.get('rlm_rag', '?')}, "
        f"revision {versions.get('revision', '?')[:12]}",
        f"samples {config['samples_sha256'][:12]}",
    ]
    if config["judge"] is not None:
        said[1] += f", judged by {config['judge']}"
    if config["data_sha256"]:
        said[-1] += f", data {config['data_sha256'][:12]}"
    return said


def percent(share: float | None) -> str:
    """Return `81.2` for 0.812."""
    return NONE if share is None else f"{100 * share:.1f}"


def between(low: float | None, high: float | None) -> str:
    """Return the ends of an interval."""
    return NONE if low is None or high is None else f"{percent(low)} to {percent(high)}"


def money(usd: float | None) -> str:
    """Return dollars; `?` where the price is not known."""
    return "?" if usd is None else f"${usd:.4f}"


def seconds(value: float | None) -> str:
    """Return seconds, with as many digits as say something."""
    if value is None:
        return NONE
    return f"{value:.3f}" if value < 1 else f"{value:.1f}"
