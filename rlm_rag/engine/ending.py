"""How a run ends, and what drives one to its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rlm_rag.engine.answer import StopReason, is_unfinished
from rlm_rag.engine.carried import Left


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended: its text, why it stopped, and what a limit or failure said.

    `is_answer` is false where there is none, and the text only says so; `is_blind` is true where
    no block ever ran well, so that the text rests on nothing; `is_cut` where the output limit of
    its call cut it. `notes` name what of the last reply was not run.
    """

    text: str
    stop_reason: StopReason
    detail: str | None = None
    is_answer: bool = True
    is_blind: bool = False
    is_cut: bool = False
    notes: tuple[str, ...] = ()


def answered(text: str, *, is_cut: bool = False, notes: tuple[str, ...] = ()) -> Ending:
    """Return the ending of a run whose model gave `text`, which may say that it is no answer."""
    if is_unfinished(text):
        detail = "the search did not come to its end"
        return Ending(text, "errors", detail, is_answer=False, notes=notes)
    return Ending(text, "answered", is_cut=is_cut, notes=notes)


class Driver(Protocol):
    """Brings one question to its ending: the loop of an RLM, or a strategy without a REPL."""

    iterations: int

    async def run(self) -> Ending:
        """Return the ending; a limit is one.

        Raises:
            ModelError: the very first call to the root model failed.
        """
        ...

    async def look_back(self) -> None:
        """Take what a part that was cut short had come to, for `interrupted`."""
        ...

    def interrupted(self) -> Ending:
        """Return what there is, without another call."""
        ...

    async def leave(self, *, seconds: float) -> Left:
        """Return what a conversation goes on with, within about so many seconds."""
        ...
