"""Where a block's call came from, and what it may take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol


class Refused(Exception):
    """A call cannot be made as it was asked for; nothing was sent and nothing spent."""


class Told(Protocol):
    """A running RLM as its parent reaches it."""

    def tell(self, text: str) -> None:
        """Have it read `text` in its next turn."""
        ...

    def said(self) -> Sequence[Mapping[str, str]]:
        """What it and its REPL said so far, as role and content."""
        ...

    def so_far(self) -> str:
        """The answer that it would give if it had to end now; empty where it has none."""
        ...


@dataclass(frozen=True, slots=True)
class Caller:
    """`seq` is the call's order within `block`, `item` a place in the batch that it asks for.

    `seconds` it may take, None for no bound. `on_child` is told each child RLM that it starts.
    `answered` is what the call came to in an earlier stretch of the run, where it is only repeated.
    """

    block: int
    seq: int
    seconds: float | None = None
    on_child: Callable[[Told], None] | None = None
    item: int | None = None
    answered: Any = None

    def at(self, item: int) -> Caller:
        """Return the caller of one place in the batch."""
        return replace(self, item=item)
