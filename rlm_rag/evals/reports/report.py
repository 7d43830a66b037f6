"""What one run, or several side by side, came to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rlm_rag.evals.config import RunConfig
from rlm_rag.evals.record import Record
from rlm_rag.evals.reports.cells import Cell, cells_of
from rlm_rag.evals.run_folder import RunFolder

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One run in figures: samples by strategy that were `asked`, of `total`; errors among them.

    `spent_usd` has what failed attempts cost, too.
    """

    name: str
    model: str
    total: int
    asked: int
    errors: int
    spent_usd: float
    config: Mapping[str, Any]

    @property
    def is_complete(self) -> bool:
        """Whether every sample has a score."""
        return self.asked == self.total and not self.errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Runs and their cells; where there are several runs, a strategy is named `run: strategy`."""

    runs: tuple[Summary, ...]
    cells: tuple[Cell, ...]

    def by_task(self) -> Iterator[tuple[str, list[Cell]]]:
        """Yield each task with its cells."""
        for task in dict.fromkeys(cell.task for cell in self.cells):
            yield task, [cell for cell in self.cells if cell.task == task]

    def to_dict(self) -> dict[str, Any]:
        """Return it in values of JSON."""
        return {
            "schema_version": SCHEMA_VERSION,
            "runs": [asdict(run) | {"complete": run.is_complete} for run in self.runs],
            "cells": [cell.to_dict() for cell in self.cells],
        }


def report_of(folders: Sequence[RunFolder]) -> Report:
    """Return the report of runs, each once.

    Raises:
        RunFolderError: a folder cannot be read.
    """
    folders = list({folder.path.resolve(): folder for folder in folders}.values())
    names = names_of(folders)
    summaries = []
    records: list[Record] = []
    for name, folder in zip(names, folders, strict=True):
        order = folder.config.strategies.index
        mine = sorted(folder.records().values(), key=lambda each: order(each.strategy))
        summaries.append(_summary(name, folder, mine))
        if len(folders) > 1:
            mine = [replace(each, strategy=f"{name}: {each.strategy}") for each in mine]
        records += mine
    cells = cells_of(records, lengths=asked_lengths(folders))
    return Report(runs=tuple(summaries), cells=tuple(cells))


def names_of(folders: Sequence[RunFolder]) -> list[str]:
    """Return a name for each folder: its last part, the whole path where that is not enough."""
    names = [folder.path.resolve().name for folder in folders]
    if len(set(names)) == len(names):
        return names
    return [str(folder.path) for folder in folders]


def asked_lengths(folders: Sequence[RunFolder]) -> set[int]:
    """Return the lengths that were asked for in any of the runs, in tokens."""
    return {tokens for folder in folders for tokens in folder.config.lengths}


def _summary(name: str, folder: RunFolder, records: Sequence[Record]) -> Summary:
    config: RunConfig = folder.config
    return Summary(
        name=name,
        model=config.models.model,
        total=config.samples * len(config.strategies),
        asked=len(records),
        errors=sum(record.error is not None for record in records),
        spent_usd=folder.spent_usd(),
        config=asdict(config),
    )
