"""The table: right answers with their interval, tokens read, seconds, failures by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.small.running import SYSTEMS
from benchmarks.small.scoring import FAILURES, failure_of
from benchmarks.small.tasks import GROUPS, PREFIX, SETS
from rlm_rag.evals.intervals import percentile, wilson
from rlm_rag.evals.record import Record
from rlm_rag.evals.run_folder import RunFolder

_HEAD = ("right", "95 %", *GROUPS, "tokens read", "p50 s", "p95 s", *FAILURES)


def table(folders: Sequence[RunFolder]) -> str:
    """Return Markdown: a table for each set and model, a row for each system.

    The interval is Wilson's: questions are taken as independent. An error counts as a wrong
    answer; what was not asked yet is in no figure.
    """
    by_title: dict[str, dict[str, list[Record]]] = {}
    for folder in folders:
        config = folder.config
        system = config.strategies[0]
        mine = by_title.setdefault(_title(folder), {})
        mine.setdefault(system, []).extend(folder.records().values())
    return "\n\n".join(_table(title, mine) for title, mine in sorted(by_title.items())) + "\n"


def _title(folder: RunFolder) -> str:
    config = folder.config
    name = next(name for name, chosen in SETS.items() if chosen.seed == config.seed)
    model = Path(config.models.model.removeprefix("local:")).name
    version = f"revision {config.versions['revision'][:9]}"
    return f"{name}, {model}, {config.limits.seconds:g} s a question, {version}"


def _table(title: str, systems: dict[str, list[Record]]) -> str:
    rows = [f"**{title}**", "", f"| system | {' | '.join(_HEAD)} |"]
    rows.append("|---" + "|---:" * len(_HEAD) + "|")
    for system in sorted(systems, key=_place):
        if systems[system]:
            rows.append(f"| {system} | {' | '.join(_cells(systems[system]))} |")
    return "\n".join(rows)


def _place(system: str) -> int:
    return SYSTEMS.index(system) if system in SYSTEMS else len(SYSTEMS)


def _cells(records: Sequence[Record]) -> Iterator[str]:
    failures = [failure_of(record) for record in records]
    right, asked = failures.count(None), len(records)
    interval = wilson(right / asked, asked)
    yield f"{right} of {asked}"
    yield f"{100 * (interval.low or 0):.0f} to {100 * (interval.high or 0):.0f}"
    for group in GROUPS:
        mine = [
            failure
            for record, failure in zip(records, failures, strict=True)
            if record.task == PREFIX + group
        ]
        yield f"{mine.count(None)} of {len(mine)}" if mine else "-"
    yield f"{median(record.root.input_tokens + record.sub.input_tokens for record in records):,.0f}"
    seconds = [record.seconds for record in records]
    yield f"{percentile(seconds, 0.5):.0f}"
    yield f"{percentile(seconds, 0.95):.0f}"
    counts = Counter(failures)
    for failure in FAILURES:
        yield str(counts[failure])


def listing(folders: Sequence[RunFolder], *, wrong_only: bool) -> Iterator[str]:
    """Yield each question with its answer, but none that is held out."""
    held = {chosen.seed for chosen in SETS.values() if chosen.held}
    for folder in folders:
        if folder.config.seed in held:
            continue
        for record in folder.records().values():
            failure = failure_of(record)
            if failure is None and wrong_only:
                continue
            trace = folder.path / record.trace if record.trace else "no trace"
            said = record.error.message if record.error else " ".join(record.answer.split())
            yield (
                f"{record.strategy} {record.task.removeprefix(PREFIX)} {record.id} "
                f"{record.meta['kind']} of {record.meta['corpus']}: {failure or 'right'}, "
                f"{record.seconds:.0f} s\n  {record.question}\n  right: {record.gold}\n"
                f"  said: {said:.400}\n  {trace}"
            )
