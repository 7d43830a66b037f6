"""A folder of `rlm_rag.evals` for each system and group of questions, taken up where it is."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.small.rlms import PYTHON_VARIABLE
from benchmarks.small.tasks import GROUPS, PREFIX, SETS
from rlm_rag.engine.limits import Limits
from rlm_rag.evals.config import Models, RunConfig
from rlm_rag.evals.run_folder import CONFIG, RunFolder
from rlm_rag.evals.runner import Progress, resume, start

SYSTEMS = ("auto", "retrieve", "rlm", "map-reduce", "alone", "rlms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is run: at most `limit` questions of each group and system now, None for all.

    `systems` are strategies, `alone` or `rlms`, one after the other, so that the server keeps
    the prompt that they begin with. A question has `seconds`.
    """

    out: Path
    systems: tuple[str, ...]
    groups: tuple[str, ...] = GROUPS
    name: str = "sixty"
    models: Models
    seconds: float = 180.0
    limit: int | None = None
    peer_python: Path | None = None

    def folders(self) -> Iterator[tuple[str, str, Path]]:
        """Yield each system and group with the folder of their run."""
        for system in self.systems:
            for group in self.groups:
                yield system, group, self.out / self.name / f"{system}-{group}"

    def config(self, system: str, group: str) -> RunConfig:
        """Return what a folder's run is started with."""
        chosen = SETS[self.name]
        return RunConfig(
            tasks=(PREFIX + group,),
            strategies=(system,),
            count=chosen.count,
            seed=chosen.seed,
            parallel=1,
            models=self.models,
            limits=Limits(seconds=self.seconds),
        )


def run(plan: Plan, *, say: Callable[[str], None]) -> bool:
    """Ask what is left; return whether it was all that was to be asked now.

    `say` is told a line a question, without its words or its answer. The tasks have to be
    `found_by_evals`.

    Raises:
        RlmRagError: as `rlm_rag.evals.runner.start`; RuntimeError: a corpus cannot be fetched.
    """
    if plan.peer_python is not None:
        os.environ[PYTHON_VARIABLE] = str(plan.peer_python)
    for system, group, folder in plan.folders():
        progress = _run(plan, system, group, folder, say)
        if progress.stopped is not None:
            say(f"{system} {group}: {progress.detail}")
        if progress.stopped == "interrupted":
            return False
    return True


def _run(plan: Plan, system: str, group: str, folder: Path, say: Callable[[str], None]) -> Progress:
    began = time.monotonic()

    def told(progress: Progress) -> None:
        asked = f"{progress.done} of {progress.total}, {progress.errors} errors"
        say(f"{system} {group}: {asked}, {time.monotonic() - began:.0f} s")

    if (folder / CONFIG).exists():
        # The server's port is another each time.
        return resume(folder, api_base=plan.models.api_base, most=plan.limit, on_progress=told)
    return start(plan.config(system, group), folder, most=plan.limit, on_progress=told)


def folders_below(paths: Sequence[Path]) -> list[RunFolder]:
    """Open every run's folder below some.

    Raises:
        RunFolderError: one is damaged.
    """
    found = sorted({each.parent for path in paths for each in path.rglob(CONFIG)})
    return [RunFolder.open(path) for path in found]
