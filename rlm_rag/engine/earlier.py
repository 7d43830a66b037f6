"""What a kept conversation was before its last questions, so that they can still be undone.

One question changes few variables: each earlier state is kept as its differences from the next.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rlm_rag.engine.carried import Carried, damaged

MAX_STATES = 20
MAX_CHARS = 64 << 20
"""As much as a worker may leave of its variables (`sandbox.frames.MAX_KEPT_CHARS`)."""


def differences(earlier: Sequence[Carried], last: Carried) -> list[dict[str, Any]]:
    """Return the states before `last`, given oldest first, for `states`: as JSON, newest first.

    At most MAX_STATES and MAX_CHARS of them: the oldest are left out.
    """
    rows: list[dict[str, Any]] = []
    room, after = MAX_CHARS, last
    for state in reversed(earlier[-MAX_STATES:]):
        row = _difference(state, after)
        room -= len(json.dumps(row))
        if room < 0:
            break
        rows.append(row)
        after = state
    return rows


def states(rows: Any, last: Mapping[str, Any]) -> tuple[Carried, ...]:
    """Return the states of `differences`, oldest first; `last` is `Carried.to_json` of the last.

    Raises:
        SessionError: they are nothing of the kind.
    """
    found: list[Carried] = []
    after = last
    try:
        for row in rows:
            after = _whole(row, after)
            found.append(Carried.from_json(after))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(error) from error
    return tuple(reversed(found))


def _difference(state: Carried, after: Carried) -> dict[str, Any]:
    variables, later = state.variables, after.variables or {}
    if variables is not None:
        pieces = _changed(variables["variables"], later.get("variables", {}))
        variables = {**variables, "variables": pieces}
    return {
        "exchanges": len(state.exchanges),
        "variables": variables,
        "names": [list(row) for row in state.names],
        "added": _changed(state.added, after.added),
        "contexts": [list(row) for row in state.contexts],
    }


def _whole(row: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    variables, later = row["variables"], after["variables"] or {}
    if variables is not None:
        pieces = _filled(variables["variables"], later.get("variables", {}))
        variables = {**variables, "variables": pieces}
    return {
        **row,
        "exchanges": after["exchanges"][: row["exchanges"]],
        "variables": variables,
        "added": _filled(row["added"], after["added"]),
    }


def _changed(values: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values by name, None for those that are the same later."""
    return {name: None if later.get(name) == value else value for name, value in values.items()}


def _filled(values: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    return {name: later[name] if value is None else value for name, value in values.items()}
