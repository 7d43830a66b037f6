"""The reply of a root model, told while it comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReplyText:
    """The next piece of a root model's reply to the call `call` of `run`.

    A request that failed in the middle is sent again: the pieces of a higher `attempt` begin
    the reply anew.
    """

    run: str
    call: int
    attempt: int
    text: str


class LiveReply:
    """Tells the pieces of one call's reply; a model that does not stream has one."""

    def __init__(
        self,
        tell: Callable[[ReplyText], None],
        *,
        run: str,
        call: int,
        attempt: Callable[[], int],
    ) -> None:
        self._tell = tell
        self._run = run
        self._call = call
        self._attempt = attempt
        self._told = 0

    def piece(self, text: str) -> None:
        """Tell the next piece."""
        self._told = self._attempt()
        self._tell(ReplyText(self._run, self._call, self._told, text))

    def whole(self, text: str) -> None:
        """Tell all of a reply that has come, unless its pieces were told."""
        if self._told != self._attempt():
            self.piece(text)
