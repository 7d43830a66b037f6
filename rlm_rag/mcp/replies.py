"""What a tool replies: text for a model or a person to read, and the same as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rlm_rag.errors import RlmRagError
from rlm_rag.models.redact import environment_secrets, redact
from rlm_rag.shown import printable, printable_line

T = TypeVar("T")

MAX_REPLY_CHARS = 40_000
"""About 10,000 tokens, from where on some clients warn of a tool's reply or cut it themselves."""

# Values of these keys, and the keys of `counts`, are paths or names: one line each.
_LINES = ("path", "name", "scope")


@dataclass(frozen=True, slots=True)
class Reply:
    """`data` is of the tool's output schema; both are safe to print, and encode to UTF-8."""

    text: str
    data: dict[str, Any] = field(default_factory=dict)
    is_error: bool = False


def shown(value: Any, key: str = "") -> Any:
    """Return JSON data with what a terminal would obey or hide in its texts as escapes."""
    if isinstance(value, str):
        return printable_line(value) if key in _LINES else printable(value)
    if isinstance(value, dict):
        return {printable_line(name): shown(each, name) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(each, key) for each in value]
    return value


def refused(message: str, hint: str | None = None) -> Reply:
    """Return what says that a tool could not do what was asked, and what to do about it."""
    text = f"{message}\n{hint}" if hint else message
    return Reply(printable(redact(text, environment_secrets())), is_error=True)


def failed(error: Exception) -> Reply:
    """Return what is told of an error."""
    if isinstance(error, RlmRagError):
        return refused(error.message, error.hint)
    return refused(f"unexpected {type(error).__name__}: {error}")


def fitting(items: Sequence[T], size_of: Callable[[T], int]) -> Sequence[T]:
    """Return the first items that take no more than `MAX_REPLY_CHARS` together, at least one."""
    left = MAX_REPLY_CHARS
    for count, item in enumerate(items):
        left -= size_of(item)
        if left < 0:
            return items[: max(1, count)]
    return items


def with_note(lines: Sequence[str], note: str | None) -> str:
    """Return lines as one text, ended by what is to be said of them."""
    return "\n".join([*lines, f"({note})"] if note else lines)
