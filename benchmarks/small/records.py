"""Questions of records: how many, which is the largest, which group has most.

Records of deliveries as CSV, as JSON lines, as a log, as CSV by month; their notes are sentences
of real prose.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from functools import cache
from itertools import groupby
from random import Random

from benchmarks.small.documents import SIZES, prose
from benchmarks.small.questions import Question, places, rng_of
from benchmarks.small.sources import Files

GROUP = "records"
KINDS = ("count", "count of both", "largest", "most")

_DEPOTS = ("Arnfeld", "Brosna", "Calder", "Dornick", "Eskham", "Fenwold", "Glarnis", "Hulme")
_STATUSES = ("delivered", "refused", "late", "lost", "returned")
_FIRST_DAY = date(2023, 1, 1)
_NOTE_CHARS = 90


@dataclass(frozen=True, slots=True)
class Delivery:
    """One record; `amount` is in cents."""

    id: str
    day: str
    depot: str
    status: str
    amount: int
    note: str


@dataclass(frozen=True, slots=True)
class _Form:
    """How records are written, and about how many bytes one takes."""

    write: Callable[[Sequence[Delivery]], Files]
    record_bytes: int


def _csv_text(records: Sequence[Delivery]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(Delivery.__slots__)
    writer.writerows(tuple(asdict(each).values()) for each in records)
    return out.getvalue()


def _csv(records: Sequence[Delivery]) -> Files:
    return (("deliveries.csv", _csv_text(records)),)


def _by_month(records: Sequence[Delivery]) -> Files:
    months = groupby(records, key=lambda each: each.day[:7])
    return tuple((f"deliveries/{month}.csv", _csv_text(list(mine))) for month, mine in months)


def _jsonl(records: Sequence[Delivery]) -> Files:
    return (("deliveries.jsonl", "".join(json.dumps(asdict(each)) + "\n" for each in records)),)


def _log(records: Sequence[Delivery]) -> Files:
    lines = (
        f"{each.day} {each.status.upper()} depot={each.depot} id={each.id} amount={each.amount} "
        f"note={each.note}\n"
        for each in records
    )
    return (("deliveries.log", "".join(lines)),)


_FORMS = {
    "20kb": _Form(_csv, 128),
    "200kb": _Form(_jsonl, 203),
    "2mb": _Form(_log, 154),
    "6mb": _Form(_by_month, 128),
    "20mb": _Form(_jsonl, 203),
}


def record_questions(seed: int, count: int) -> Iterator[Question]:
    """Yield `count` questions of records of 20 KB to 20 MB."""
    for place in places(KINDS, tuple(_FORMS), count):
        rng = rng_of(GROUP, seed, place.number)
        text, gold = _ASK[place.kind](deliveries(seed, place.corpus), rng)
        yield Question(kind=place.kind, corpus=place.corpus, text=text, gold=gold)


def files(seed: int, size: str) -> Files:
    """Write the records of a size; the same each time."""
    return _FORMS[size].write(deliveries(seed, size))


@cache
def deliveries(seed: int, size: str) -> tuple[Delivery, ...]:
    """Return the records of a size, in the order of their days; no amount comes twice."""
    rng = rng_of(GROUP, seed, size)
    count = SIZES[size] // _FORMS[size].record_bytes
    notes = [text[:_NOTE_CHARS].rpartition(" ")[0] for text in prose()]
    depots = rng.sample(_DEPOTS, 6)
    weights = [rng.uniform(0.6, 1.4) for _ in depots]
    amounts = rng.sample(range(100, 100 + 40 * count), count)
    days = sorted(rng.randrange(365) for _ in range(count))
    return tuple(
        Delivery(
            f"D{number:06}",
            (_FIRST_DAY + timedelta(days=day)).isoformat(),
            rng.choices(depots, weights)[0],
            rng.choices(_STATUSES, (60, 12, 12, 6, 10))[0],
            amount,
            rng.choice(notes),
        )
        for number, (day, amount) in enumerate(zip(days, amounts, strict=True), 1)
    )


def _count(records: Sequence[Delivery], rng: Random) -> tuple[str, dict[str, object]]:
    status = rng.choice(_STATUSES)
    question = f"How many deliveries have the status {status}?"
    return question, {"number": sum(each.status == status for each in records)}


def _count_of_both(records: Sequence[Delivery], rng: Random) -> tuple[str, dict[str, object]]:
    some = rng.choice(records)
    question = f"How many deliveries of the depot {some.depot} have the status {some.status}?"
    count = sum((each.depot, each.status) == (some.depot, some.status) for each in records)
    return question, {"number": count}


def _largest(records: Sequence[Delivery], rng: Random) -> tuple[str, dict[str, object]]:
    if rng.random() < 0.5:
        best = max(records, key=lambda each: each.amount)
        return "What is the id of the delivery with the largest amount?", {"name": best.id}
    depot = rng.choice(records).depot
    best = max((each for each in records if each.depot == depot), key=lambda each: each.amount)
    question = f"What is the largest amount of a delivery of the depot {depot}?"
    return question, {"number": best.amount}


def _most(records: Sequence[Delivery], rng: Random) -> tuple[str, dict[str, object]]:
    names = sorted({each.depot for each in records})
    statuses = list(_STATUSES)
    rng.shuffle(statuses)
    for status in statuses:
        counts = Counter(each.depot for each in records if each.status == status)
        (first, most), (_, second) = counts.most_common(2)
        if most > second:
            question = f"Which depot has the most deliveries with the status {status}? Name it."
            return question, {"name": first, "names": names}
    raise RuntimeError("no status has a depot with the most deliveries")


_ASK = {"count": _count, "count of both": _count_of_both, "largest": _largest, "most": _most}
