"""Two ways of asking compared sample by sample."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from rlm_rag.errors import UsageError
from rlm_rag.evals.intervals import difference_interval, mcnemar
from rlm_rag.evals.record import Record
from rlm_rag.evals.reports.cells import ALL_LENGTHS, Unit, bucket_of, units_of
from rlm_rag.evals.reports.report import asked_lengths, names_of
from rlm_rag.evals.run_folder import RunFolder

# Fractions are sums of tenths and thirds.
_RIGHT = 1 - 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What pairs of the same samples say of a task and length, the first against the second.

    `difference` is the mean of the first's score less the second's, `low` and `high` its 95 %
    interval by bootstrap over clusters, None without a second one. `only_first` counts those
    that only the first had fully right, `p` is McNemar's of these two counts. `unpaired` samples
    have a score on one side alone, or are not the same on both.
    """

    task: str
    length: str
    first: str
    second: str
    pairs: int
    unpaired: int
    first_score: float | None
    second_score: float | None
    difference: float | None
    low: float | None
    high: float | None
    only_first: int
    only_second: int
    p: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return it in values of JSON."""
        return asdict(self)


class _Side(NamedTuple):
    name: str
    records: Sequence[Record]


def compare(folders: Sequence[RunFolder]) -> list[Comparison]:
    """Compare the strategies of one run with its first, or two runs strategy by strategy.

    Two runs without a strategy in common are compared where each has but one.

    Raises:
        UsageError: there is nothing to compare.
        RunFolderError: a folder cannot be read.
    """
    lengths = asked_lengths(folders)
    comparisons = [
        found for first, second in _sides(folders) for found in _compared(first, second, lengths)
    ]
    if not comparisons:
        raise UsageError("no sample was asked on both sides", hint="see: rlm-rag eval report")
    return comparisons


def _sides(folders: Sequence[RunFolder]) -> Iterator[tuple[_Side, _Side]]:
    names = names_of(folders)
    strategies = [
        _by_strategy(name if len(folders) > 1 else "", folder)
        for name, folder in zip(names, folders, strict=True)
    ]
    if len(folders) == 1:
        first, *others = strategies[0].values()
        if not others:
            raise UsageError(
                "a run of one strategy has nothing to be compared with",
                hint="name a second run, or ask with --strategy rlm,direct",
            )
        yield from ((first, other) for other in others)
        return
    one, other = strategies
    common = [name for name in one if name in other]
    if common:
        yield from ((one[name], other[name]) for name in common)
    elif len(one) == len(other) == 1:
        yield next(iter(one.values())), next(iter(other.values()))
    else:
        raise UsageError(
            "the two runs have no strategy in common", hint="compare runs of the same strategies"
        )


def _by_strategy(run: str, folder: RunFolder) -> dict[str, _Side]:
    records = list(folder.records().values())
    return {
        name: _Side(
            f"{run}: {name}" if run else name,
            [record for record in records if record.strategy == name],
        )
        for name in folder.config.strategies
    }


def _compared(first: _Side, second: _Side, asked: Collection[int]) -> Iterator[Comparison]:
    for task in dict.fromkeys(record.task for record in first.records):
        one, other = (_units(side.records, task) for side in (first, second))
        if not one.keys() & other.keys():
            continue
        lengths: dict[str, list[str]] = {}
        for name in dict.fromkeys([*one, *other]):
            unit = one.get(name) or other[name]
            lengths.setdefault(bucket_of(unit.records[0], asked), []).append(name)
        if len(lengths) > 1:
            lengths[ALL_LENGTHS] = list(dict.fromkeys([*one, *other]))
        for length, ids in lengths.items():
            pairs = [(one[name], other[name]) for name in ids if name in one and name in other]
            yield _comparison(task, length, (first.name, second.name), pairs, len(ids))


def _units(records: Iterable[Record], task: str) -> dict[str, Unit]:
    return {unit.id: unit for unit in units_of(each for each in records if each.task == task)}


def _comparison(
    task: str, length: str, names: tuple[str, str], pairs: Sequence[tuple[Unit, Unit]], units: int
) -> Comparison:
    scores = [
        (one.value, other.value, one.cluster)
        for one, other in pairs
        if one.value is not None and other.value is not None and _is_same(one, other)
    ]
    interval = None
    if scores:
        differences = [one - other for one, other, _ in scores]
        interval = difference_interval(differences, [cluster for _, _, cluster in scores])
    right = [(one >= _RIGHT, other >= _RIGHT) for one, other, _ in scores]
    only_first, only_second = right.count((True, False)), right.count((False, True))
    count = len(scores)
    return Comparison(
        task=task,
        length=length,
        first=names[0],
        second=names[1],
        pairs=count,
        unpaired=units - count,
        first_score=sum(one for one, _, _ in scores) / count if count else None,
        second_score=sum(other for _, other, _ in scores) / count if count else None,
        difference=None if interval is None else interval.mean,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        only_first=only_first,
        only_second=only_second,
        p=mcnemar(only_first, only_second) if count else None,
    )


def _is_same(one: Unit, other: Unit) -> bool:
    """Whether two units are of the same samples: equal ids alone may be of other seeds."""
    return {_asked(record) for record in one.records} == {
        _asked(record) for record in other.records
    }


def _asked(record: Record) -> tuple[str, str, str]:
    return record.id, record.question, json.dumps(record.gold, sort_keys=True)
