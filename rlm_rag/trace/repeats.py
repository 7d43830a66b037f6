"""Results in a trace of which most values repeat: each value once, and where it stands.

A batch of a hundred thousand prompts that the limits refuse has as many replies, which say much
the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from typing import Any

LEAST_VALUES = 32
"""Shorter results are written as they are, so that whoever looks into the file reads them."""
MAX_VALUES = 1 << 20
"""More than a message between host and worker holds (`sandbox.frames.MAX_ITEMS`)."""
_RESULT, _IN_TASK, _REPEATS = "result", "value", "repeats"


def fold(entry: dict[str, Any], default: Callable[[object], Any]) -> None:
    """Have an event's `result`, or a task's `value` in it, hold each of its values once.

    `repeats` then says which value stands how often in a row, and by what keys. It is done where
    more than half are repeats. `default` makes plain JSON of what is none.
    """
    result = entry.get(_RESULT)
    task = result if isinstance(result, dict) and _IN_TASK in result else None
    found = result if task is None else task[_IN_TASK]
    if not isinstance(found, list | dict) or len(found) < LEAST_VALUES:
        return
    values = list(found.values()) if isinstance(found, dict) else found
    distinct, runs = _runs(values, default)
    if 2 * len(distinct) > len(values):
        return
    entry[_RESULT] = distinct if task is None else {**task, _IN_TASK: distinct}
    keys = list(found) if isinstance(found, dict) else None
    entry[_REPEATS] = {"in_task": task is not None, "runs": runs, "keys": keys}


def _runs(
    values: Sequence[Any], default: Callable[[object], Any]
) -> tuple[list[Any], list[list[int]]]:
    places: dict[str, int] = {}
    distinct: list[Any] = []
    runs: list[list[int]] = []
    for value in values:
        place = places.setdefault(json.dumps(value, default=default), len(distinct))
        if place == len(distinct):
            distinct.append(value)
        if runs and runs[-1][0] == place:
            runs[-1][1] += 1
        else:
            runs.append([place, 1])
    return distinct, runs


def unfold(entry: dict[str, Any]) -> None:
    """Undo `fold`.

    Raises:
        ValueError: it was not written by `fold`.
    """
    folded = entry.get(_REPEATS)
    if folded is None:
        return
    try:
        in_task, runs, keys = folded["in_task"], folded["runs"], folded["keys"]
        distinct = entry[_RESULT][_IN_TASK] if in_task else entry[_RESULT]
        if sum(count for _, count in runs) > MAX_VALUES or min(map(min, runs)) < 0:
            raise ValueError("its result is folded from too many values")
        values = list(chain.from_iterable(repeat(distinct[place], n) for place, n in runs))
        found = values if keys is None else dict(zip(keys, values, strict=True))
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError("its result is folded in an unknown way") from error
    entry[_RESULT] = {**entry[_RESULT], _IN_TASK: found} if in_task else found
