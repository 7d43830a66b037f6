"""Benchmarks: tasks, samples, scorers, and runs that are reported and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm_rag.evals.base import (
        Haystack,
        Response,
        Sample,
        Score,
        Scorer,
        Task,
        TaskOptions,
    )
    from rlm_rag.evals.config import Models, RunConfig
    from rlm_rag.evals.costs import cost_of
    from rlm_rag.evals.reports.compare import compare
    from rlm_rag.evals.reports.files import write_report
    from rlm_rag.evals.reports.report import report_of
    from rlm_rag.evals.run_folder import RunFolder
    from rlm_rag.evals.runner import Progress, resume, score_again, start
    from rlm_rag.evals.tasks import find_task, task_entries

_HOMES = {
    "Haystack": "base",
    "Response": "base",
    "Sample": "base",
    "Score": "base",
    "Scorer": "base",
    "Task": "base",
    "TaskOptions": "base",
    "Models": "config",
    "RunConfig": "config",
    "cost_of": "costs",
    "compare": "reports.compare",
    "write_report": "reports.files",
    "report_of": "reports.report",
    "RunFolder": "run_folder",
    "Progress": "runner",
    "resume": "runner",
    "score_again": "runner",
    "start": "runner",
    "find_task": "tasks",
    "task_entries": "tasks",
}

__all__ = [
    "Haystack",
    "Models",
    "Progress",
    "Response",
    "RunConfig",
    "RunFolder",
    "Sample",
    "Score",
    "Scorer",
    "Task",
    "TaskOptions",
    "compare",
    "cost_of",
    "find_task",
    "report_of",
    "resume",
    "score_again",
    "start",
    "task_entries",
    "write_report",
]


# Out of sight of type checkers, which would take every misspelt name for a lazy one.
if not TYPE_CHECKING:

    def __getattr__(name):
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'rlm_rag.evals' has no attribute {name!r}")
        import importlib

        value = getattr(importlib.import_module(f"rlm_rag.evals.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
