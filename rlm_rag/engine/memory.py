"""What a model keeps for itself in `answers` and `plan`, said to it again each turn."""

from __future__ import annotations

from collections.abc import Sequence

from rlm_rag.sandbox.session import BlockResult


class Memory:
    """Follows both through the turns of one RLM."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._folded = 0

    def after(self, results: Sequence[BlockResult], *, folded: int = 0) -> str:
        """Return them as the last block left them: what changed in brief, the rest by name.

        All of it in brief where more turns are `folded` than before: what showed it may be among
        them. Empty where they hold nothing.
        """
        afresh, self._folded = folded != self._folded, folded
        now = self._shown
        # A worker that was lost has shown nothing of them, and has them again.
        if results and (results[-1].memory or not results[-1].restarted):
            now = dict(results[-1].memory)
        changed = [name for name, text in now.items() if afresh or self._shown.get(name) != text]
        same = [name for name in now if name not in changed]
        self._shown = now
        lines = [f"`{name}` is now: {now[name]}" for name in changed]
        return "\n".join(filter(None, (*lines, self._unchanged(same))))

    def _unchanged(self, names: Sequence[str]) -> str:
        if not names:
            return ""
        named = " and ".join(f"`{name}`" for name in names)
        return f"{named} {'stands' if len(names) == 1 else 'stand'} as before."
