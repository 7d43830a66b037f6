"""Values that are too large for one message, sent as parts of which the other side makes one.

The worker imports this module in a bare interpreter.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def halves(value: Any) -> tuple[Any, Any] | None:
    """Return two values that `join` makes one again; None for what has no two parts."""
    if not isinstance(value, (list, tuple, dict)) or not value:
        return None
    if len(value) > 1:
        middle = len(value) // 2
        if not isinstance(value, dict):
            return value[:middle], value[middle:]
        items = list(value.items())
        return dict(items[:middle]), dict(items[middle:])
    if not isinstance(value, dict):
        return None
    ((name, only),) = value.items()
    parts = halves(only)
    return None if parts is None else ({name: parts[0]}, {name: parts[1]})


def join(first: Any, rest: Any) -> None:
    """Add what `halves` cut off a list or a dict to it, in place."""
    if isinstance(first, list):
        first += rest
        return
    for name, value in rest.items():
        known = first.get(name)
        if isinstance(known, (list, dict)) and type(known) is type(value):
            join(known, value)
        else:
            first[name] = value
