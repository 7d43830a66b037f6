"""The figures of a run: a cell for each task, bucket of lengths and strategy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rlm_rag.evals.base import length_bucket, length_label, parse_length
from rlm_rag.evals.intervals import mean_interval, percentile
from rlm_rag.evals.record import Record

ALL_LENGTHS = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What counts once: a sample, or samples that are right only together.

    `value` is the least of their scores, None where one of them has none.
    """

    id: str
    cluster: str
    records: tuple[Record, ...]
    value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The samples of one task and length by one strategy.

    `score` is the mean of those that are `scored`; `low` and `high` are its 95 % interval, None
    without a second cluster. `unparsed` answers had not the form that was asked for, `stopped`
    ones were ended by a limit: both are among the scored, by the task's rule; `errors` are not.
    `n` is scored and errors together. `usd` is None where a price is not known; calls and tokens
    are means of a sample, `error_kinds` counts what went wrong.
    """

    task: str
    length: str
    length_tokens: int | None
    strategy: str
    n: int
    scored: int
    clusters: int
    score: float | None
    low: float | None
    high: float | None
    unparsed: int
    stopped: int
    errors: int
    usd: float | None
    usd_per_sample: float | None
    seconds_p50: float | None
    seconds_p95: float | None
    calls: float
    root_tokens: float
    sub_tokens: float
    depth: int
    error_kinds: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return it in values of JSON."""
        return asdict(self)


def bucket_of(record: Record, lengths: Collection[int]) -> str:
    """Return the length that was asked for, where that is its own, else its power of two."""
    tokens = record.haystack_tokens
    return length_label(tokens) if tokens in lengths and tokens else length_bucket(tokens)


def cells_of(records: Iterable[Record], *, lengths: Collection[int] = ()) -> list[Cell]:
    """Return the cells of records, and one over all lengths where a task has several.

    `lengths` are those that were asked for, in tokens.
    """
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        bucket = bucket_of(record, lengths)
        for length in (bucket, ALL_LENGTHS):
            groups.setdefault((record.task, length, record.strategy), []).append(record)
    buckets: dict[str, set[str]] = {}
    for task, length, _ in groups:
        buckets.setdefault(task, set()).add(length)
    cells = [
        _cell(*key, group)
        for key, group in groups.items()
        if key[1] != ALL_LENGTHS or len(buckets[key[0]]) > 2
    ]
    tasks = list(dict.fromkeys(cell.task for cell in cells))
    ways = list(dict.fromkeys(cell.strategy for cell in cells))
    return sorted(cells, key=lambda c: (tasks.index(c.task), _rank(c), ways.index(c.strategy)))


def _rank(cell: Cell) -> float:
    if cell.length == ALL_LENGTHS:
        return float("inf")
    return cell.length_tokens or 0


def units_of(records: Iterable[Record]) -> list[Unit]:
    """Return what counts once, in the order in which it came first."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        name = ("sample", record.id) if record.joint is None else ("joint", record.joint)
        groups.setdefault(name, []).append(record)
    return [_unit(name, group) for (_, name), group in groups.items()]


def _unit(name: str, records: Sequence[Record]) -> Unit:
    scores = [record.score for record in records]
    known = [score for score in scores if score is not None]
    cluster = records[0].cluster
    return Unit(
        id=name,
        cluster=f"alone {name}" if cluster is None else f"in {cluster}",
        records=tuple(records),
        value=min(known) if len(known) == len(scores) else None,
    )


def _cell(task: str, length: str, strategy: str, records: Sequence[Record]) -> Cell:
    units = units_of(records)
    known = [(unit.value, unit.cluster) for unit in units if unit.value is not None]
    interval = None
    if known:
        interval = mean_interval([value for value, _ in known], [name for _, name in known])
    answered = [record for record in records if record.error is None]
    seconds = [record.seconds for record in answered]
    money = [record.usd for record in records]
    usd = None if None in money else sum(each for each in money if each is not None)
    n = len(units)
    return Cell(
        task=task,
        length=length,
        length_tokens=None if length == ALL_LENGTHS else parse_length(length),
        strategy=strategy,
        n=n,
        scored=len(known),
        clusters=len({name for _, name in known}),
        score=None if interval is None else interval.mean,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        unparsed=sum(record.parse_ok is False for record in answered),
        stopped=sum(record.stop_reason != "answered" for record in answered),
        errors=n - len(known),
        usd=usd,
        usd_per_sample=None if usd is None else usd / n,
        seconds_p50=percentile(seconds, 0.5) if seconds else None,
        seconds_p95=percentile(seconds, 0.95) if seconds else None,
        calls=sum(record.calls for record in records) / n,
        root_tokens=sum(record.root.tokens for record in records) / n,
        sub_tokens=sum(record.sub.tokens for record in records) / n,
        depth=max(record.depth for record in records),
        error_kinds=dict(Counter(r.error.kind for r in records if r.error is not None)),
    )
