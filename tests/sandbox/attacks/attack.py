"""An attack: code that tries to get out, and the words in which it says that it did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Attack:
    """Code for `runner.py`, which has won where it leaves `won` true; raising is losing.

    `alone` attacks may take their worker with them. `root` ones work for root only, even where
    nothing confines.
    """

    family: str
    name: str
    code: str
    alone: bool = False
    root: bool = False

    @property
    def title(self) -> str:
        return f"{self.family}: {self.name}"
