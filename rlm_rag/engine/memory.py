"""What a model keeps for itself in `answers` and `plan`, said to it again each turn."""

from __future__ import annotations

from collections.abc import Sequence

from rlm_rag.sandbox.session import BlockResult


class Memory:
    """Follows both through the turns of one RLM."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}

    def after(self, results: Sequence[BlockResult]) -> str:
        """Return them as the last block left them: what changed in brief, the rest by name.

        Empty where they hold nothing.
        """
        if not results:
            return self._unchanged(list(self._shown))
        # A worker that was lost has shown nothing of them, and has them again.
        if results[-1].restarted and not results[-1].memory:
            return self._unchanged(list(self._shown))
        now = dict(results[-1].memory)
        changed = [name for name, text in now.items() if self._shown.get(name) != text]
        same = [name for name in now if name not in changed]
        self._shown = now
        lines = [f"`{name}` is now: {now[name]}" for name in changed]
        return "\n".join(filter(None, (*lines, self._unchanged(same))))

    def _unchanged(self, names: Sequence[str]) -> str:
        if not names:
            return ""
        named = " and ".join(f"`{name}`" for name in names)
        return f"{named} {'stands' if len(names) == 1 else 'stand'} as before."
