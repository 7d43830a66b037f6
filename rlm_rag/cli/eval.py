"""`rlm-rag eval`: long-context benchmarks."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlm_rag.cli import completion, streams
from rlm_rag.cli.asking import check_models, estimate_option, settings_options, take_settings
from rlm_rag.cli.exits import DONE, INTERRUPTED, PARTIAL
from rlm_rag.cli.model_options import ModelFlags, model_options, take_models
from rlm_rag.cli.options import json_option, ray_option
from rlm_rag.cli.progress import ERASE_LINE
from rlm_rag.cli.spending import estimated
from rlm_rag.counts import counted
from rlm_rag.engine.limits import Limits
from rlm_rag.errors import UsageError
from rlm_rag.settings import Settings

if TYPE_CHECKING:
    from rlm_rag.evals.config import RunConfig
    from rlm_rag.evals.costs import RunCost
    from rlm_rag.evals.record import Record
    from rlm_rag.evals.runner import Progress

FOLDER = click.Path(path_type=Path)


@click.group("eval")
def eval_() -> None:
    """Run long-context benchmarks, and report and compare what models make of them."""


@eval_.command("list")
@json_option
def list_(as_json: bool) -> int:
    """List the tasks, and what each needs."""
    from rlm_rag.evals.tasks import task_entries

    entries = task_entries()
    if as_json:
        tasks = [{"name": e.name, "summary": e.summary, "needs": e.needs} for e in entries]
        streams.result_json({"tasks": tasks})
        return DONE
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        needs = "" if entry.needs == "nothing" else f"  (--{entry.needs})"
        streams.result(f"{entry.name:<{width}}  {entry.summary}{needs}")
    streams.result(f"{'./FILE.jsonl':<{width}}  questions of one's own  (--corpus)")
    return DONE


@eval_.command()
@click.argument(
    "tasks", nargs=-1, required=True, shell_complete=completion.tasks, metavar="TASK..."
)
@click.option("--lengths", metavar="N,N", help="Tokens of haystacks, such as 8k,32k,1m.")
@click.option("-n", "--count", type=click.IntRange(min=1), help="Samples of each length.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of what is generated.")
@click.option("--data", metavar="PATH", help="The benchmark's own file or folder.")
@click.option("--corpus", metavar="SOURCE", help="What one's own questions are asked of.")
@click.option("--retrieval-only", is_flag=True, help="Score ranked paths; no model is asked.")
@click.option("--out", type=FOLDER, help="The run's folder; runs/TASK-TIME if unset.")
@click.option("--parallel", type=click.IntRange(min=1), default=4, help="Samples at a time.")
@click.option("--judge", metavar="NAME", help="A model that scores answers in place of the rule.")
@ray_option
@estimate_option
@settings_options
@model_options
@json_option
def run(
    tasks: tuple[str, ...],
    retrieval_only: bool,
    out: Path | None,
    ray: str | None,
    estimate: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Ask the samples of TASK by every --strategy (several, parted by commas) in one run.

    --max-usd holds for the whole run, the other limits for each sample.

    \b
        rlm-rag eval run ruler:niah --lengths 8k,32k -n 50 --strategy rlm,direct --model offline
        rlm-rag eval run ./qa.jsonl --corpus ./repo --model openai/gpt-5-mini
    """
    from rlm_rag.evals.costs import cost_of
    from rlm_rag.evals.runner import start

    named = options.pop("strategy")
    models = take_models(options)
    sources = [each for each in (options["corpus"], options["data"]) if each]
    asked = {name: options.pop(name) for name in _TASK_OPTIONS}
    settings = take_settings(options, sources=sources)
    strategies = ("search",) if retrieval_only else _parted(named or settings.strategy)
    config = _config(tasks, strategies, asked, settings, models)
    if not retrieval_only:
        check_models(settings, models, with_keys=not estimate)
    if estimate:
        _show_cost(cost_of(config), as_json=as_json)
        return DONE
    folder = out or _new_folder(tasks)
    # Raises where the working folder is gone, which is told as such.
    folder.absolute()
    with _Line() as line:
        progress = start(config, folder, ray=ray, on_progress=line)
    return _ended(folder, progress, as_json=as_json)


_TASK_OPTIONS = ("lengths", "count", "seed", "data", "corpus", "parallel", "judge")


def _config(
    tasks: tuple[str, ...],
    strategies: tuple[str, ...],
    asked: dict[str, Any],
    settings: Settings,
    models: ModelFlags,
) -> RunConfig:
    from rlm_rag.evals.config import Models, RunConfig

    limits: dict[str, Any] = dict(settings.limits)
    max_usd = limits.pop("usd", None)
    return RunConfig(
        tasks=tasks,
        strategies=strategies,
        max_usd=max_usd,
        limits=Limits(**limits),
        models=Models(
            model=settings.model or "offline",
            sub_model=settings.sub_model,
            api_base=settings.api_base,
            context_window=settings.context_window,
            sub_context_window=settings.sub_context_window,
            temperature=settings.temperature,
            profile=settings.profile,
            sandbox=settings.sandbox,
            sandbox_image=settings.sandbox_image,
            sandbox_packages=settings.sandbox_packages,
            sandbox_memory_bytes=settings.sandbox_memory,
            cache=settings.cache,
            **models,
        ),
        **(asked | {"lengths": _lengths(asked["lengths"])}),
    )


def _lengths(text: str | None) -> tuple[int, ...]:
    from rlm_rag.evals.base import parse_length

    lengths = []
    for part in _parted(text or ""):
        tokens = parse_length(part)
        if tokens is None:
            raise UsageError(
                f"--lengths {text}: {part!r} is no length", hint="for example --lengths 8k,32k,1m"
            )
        lengths.append(tokens)
    return tuple(lengths)


def _parted(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _new_folder(tasks: tuple[str, ...]) -> Path:
    """One that no run has, where several begin within a second too."""
    folder = Path("runs") / f"{_name(tasks)}-{datetime.now():%Y%m%d-%H%M%S}"
    others = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
    return next(each for each in chain([folder], others) if not each.exists())


def _name(tasks: tuple[str, ...]) -> str:
    first = Path(tasks[0]).stem.replace(":", "-")
    return first if len(tasks) == 1 else f"{first}-and-{len(tasks) - 1}"


@eval_.command()
@click.argument("folder", type=FOLDER, metavar="RUN")
@click.option("--max-usd", type=click.FloatRange(min=0), help="Money, what was spent included.")
@click.option("--api-base", metavar="URL", help="Where the server is now.")
@ray_option
@json_option
def resume(
    folder: Path, max_usd: float | None, api_base: str | None, ray: str | None, as_json: bool
) -> int:
    """Go on with RUN, the folder of a run; what has an answer is not asked and paid for again.

    Errors are asked again. A run whose configuration, data or version of this program is not
    what it began with is refused.
    """
    from rlm_rag.evals.runner import resume as resume_run

    with _Line() as line:
        progress = resume_run(folder, max_usd=max_usd, api_base=api_base, ray=ray, on_progress=line)
    return _ended(folder, progress, as_json=as_json)


@eval_.command()
@click.argument("folder", type=FOLDER, metavar="RUN")
@json_option
def score(folder: Path, as_json: bool) -> int:
    """Score the answers of RUN again, by the scorers of this version; no model is asked."""
    from rlm_rag.evals.runner import score_again

    answers, changed = score_again(folder)
    if as_json:
        streams.result_json({"answers": answers, "changed": changed})
    else:
        streams.result(f"{counted(answers, 'answer')} scored, {counted(changed, 'score')} changed")
    return DONE


@eval_.command()
@click.argument("folders", nargs=-1, required=True, type=FOLDER, metavar="RUN...")
@click.option("--out", type=FOLDER, help="Where to; RUN itself if unset, where there is one.")
@json_option
def report(folders: tuple[Path, ...], out: Path | None, as_json: bool) -> int:
    """Report one RUN, or several side by side: Markdown here, and .md, .json, .html as files."""
    from rlm_rag.evals.reports.files import write_report
    from rlm_rag.evals.reports.markdown import to_markdown
    from rlm_rag.evals.reports.report import report_of
    from rlm_rag.evals.run_folder import RunFolder

    found = report_of([RunFolder.open(folder) for folder in folders])
    if as_json:
        streams.result_json(found.to_dict())
    else:
        streams.result(to_markdown(found).rstrip("\n"))
    place = out or (folders[0] if len(folders) == 1 else None)
    if place is not None:
        for path in write_report(found, place):
            streams.note(str(path))
    return DONE if all(each.is_complete for each in found.runs) else PARTIAL


@eval_.command()
@click.argument("first", type=FOLDER, metavar="RUN")
@click.argument("second", type=FOLDER, required=False, metavar="[RUN]")
@json_option
def compare(first: Path, second: Path | None, as_json: bool) -> int:
    """Compare two RUNs sample by sample, or the strategies of one with its first.

    The difference has a 95 % interval by bootstrap, and p is that of McNemar's test.
    """
    from rlm_rag.evals.reports.compare import compare as compare_runs
    from rlm_rag.evals.reports.markdown import comparisons_to_markdown
    from rlm_rag.evals.run_folder import RunFolder

    folders = [first] if second is None else [first, second]
    found = compare_runs([RunFolder.open(folder) for folder in folders])
    if as_json:
        streams.result_json({"comparisons": [each.to_dict() for each in found]})
    else:
        streams.result(comparisons_to_markdown(found).rstrip("\n"))
    return DONE


def _ended(folder: Path, progress: Progress, *, as_json: bool) -> int:
    """Report a run as far as it came, and return what that says to the shell."""
    from rlm_rag.evals.reports.files import write_report
    from rlm_rag.evals.reports.markdown import to_markdown
    from rlm_rag.evals.reports.report import report_of
    from rlm_rag.evals.run_folder import RunFolder

    opened = RunFolder.open(folder)
    found = report_of([opened])
    write_report(found, folder)
    if as_json:
        streams.result_json({"run": str(folder), "stopped": progress.stopped} | found.to_dict())
    else:
        streams.result(to_markdown(found).rstrip("\n"))
    streams.flush()
    streams.note(f"run: {folder}")
    _note_errors(opened.records().values())
    if progress.stopped is not None:
        detail = f": {progress.detail}" if progress.detail else ""
        streams.note(streams.one_line(f"stopped early ({progress.stopped}){detail}"))
    if progress.is_complete:
        return DONE
    more = " --max-usd USD" if progress.stopped == "budget_usd" else ""
    streams.note(f"to go on: rlm-rag eval resume {folder}{more}")
    return INTERRUPTED if progress.stopped == "interrupted" else PARTIAL


def _note_errors(records: Iterable[Record]) -> None:
    """Say of each kind of error how often it came, and of which sample what it was."""
    failed: dict[str, list[str]] = {}
    for record in records:
        if record.error is not None:
            said = f"{record.id} by {record.strategy}: {record.error.message}"
            failed.setdefault(record.error.kind, []).append(said)
    for kind, mine in failed.items():
        streams.note(
            streams.one_line(f"{counted(len(mine), 'error')} ({kind}), such as {mine[-1]}")
        )


def _show_cost(cost: RunCost, *, as_json: bool) -> None:
    if as_json:
        streams.result_json(cost.to_dict())
        return
    for each in cost.by_strategy:
        streams.result(f"{each.strategy}, {counted(each.samples, 'sample')}")
        for name in ("low", "likely", "high"):
            streams.result(f"  {estimated(name, getattr(each, name))}")
    if not cost.by_strategy:
        streams.result("nothing: no model is asked")


class _Line:
    """One line on a terminal's standard error that says how far a run is."""

    def __init__(self) -> None:
        self._shown = streams.shows_progress()

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            streams.to_stderr(ERASE_LINE)

    def __call__(self, progress: Progress) -> None:
        if self._shown:
            streams.to_stderr(
                f"{ERASE_LINE}{progress.done:,} of {progress.total:,} done, "
                f"{counted(progress.errors, 'error')}, ${progress.spent_usd:.4f}"
            )
