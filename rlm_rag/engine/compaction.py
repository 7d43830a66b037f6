"""Older turns of a root model make room for new ones: folded into a summary before its window ends.

The model is asked for the summary where the limits have room for that call; else the turns are
listed in short. Every message stays in the REPL's `history`.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlm_rag.engine.admission import LimitReached
from rlm_rag.engine.calls import ModelCalls
from rlm_rag.engine.history import History
from rlm_rag.engine.tree import Assignment, Tree
from rlm_rag.errors import ModelError
from rlm_rag.models.base import Message
from rlm_rag.models.tokens import count_message_tokens
from rlm_rag.trace.events import Compacted

FULL_SHARE = 0.7
"""A prompt beyond this part of the window is compacted: the rest is for the reply, and for what
counting without the model's tokenizer gets wrong."""
KEPT_SHARE = 0.3
"""The newest turns stay word for word up to this part of it."""
TOLD_SHARE = 0.2
"""What is told in one turn is cut to this part, so that several turns fit."""
PATIENT_TOKENS = 100_000
"""A window that is not known is found by a provider's refusal, and taken as this at most: most
models of today take more, and to compact for nothing would lose more than a refused request."""
REFUSED_SHARE = 0.7
SUMMARY_CHARS = 6_000
LEAST_CALLS = 3
_CHARS_A_TOKEN = 3
_CODE_CHARS, _OUTPUT_CHARS = 300, 400

ASK = (
    "Below are the older turns of a run in which you answer a question about a corpus through a "
    "Python REPL. Sum them up for yourself; they will not be shown again. Keep, in short lines: "
    "what was found, with `path:line` and the exact figures and names; what was looked for in "
    "vain; the variables you made and what they hold; what is left to do. No code, no answer yet."
)


class Compaction:
    """Keeps the prompts of one root model within its window."""

    def __init__(
        self, tree: Tree, assignment: Assignment, *, history: History, calls: ModelCalls
    ) -> None:
        self._run_id = assignment.run_id
        self._history = history
        self._calls = calls
        self._root = assignment.root
        self._budget = tree.budget
        self._recorder = tree.recorder
        self._past = tree.past
        self._window = self._root.facts.context_window
        if self._window is not None:
            history.told_chars = int(self._window * TOLD_SHARE * _CHARS_A_TOKEN)

    async def before(self, turn: int, *, may_ask: bool = True) -> None:
        """Compact what that turn would be asked with, if it has grown too large.

        A turn that was answered before is compacted as it was then.
        """
        for past in self._past.compactions(self._run_id, turn):
            self._history.fold(past.folded, past.summary)
        if self._past.is_over or self._past.root_reply(self._run_id, turn) is not None:
            return
        window = self._window or PATIENT_TOKENS
        if count_message_tokens(self._history.messages) > window * FULL_SHARE:
            await self._compact(turn, window, may_ask=may_ask)

    async def refused(self, turn: int) -> bool:
        """Compact what a provider refused as too long; False where nothing can go any more."""
        tokens = count_message_tokens(self._history.messages)
        self._window = int(min(tokens, self._window or tokens) * REFUSED_SHARE)
        self._history.told_chars = int(self._window * TOLD_SHARE * _CHARS_A_TOKEN)
        await self._compact(turn, self._window, may_ask=True)
        return count_message_tokens(self._history.messages) < tokens

    async def shorten(self, turn: int) -> bool:
        """List older turns in short, as limits have no room for them; False where none can go."""
        tokens = count_message_tokens(self._history.messages)
        await self._compact(turn, int(tokens * REFUSED_SHARE), may_ask=False)
        return count_message_tokens(self._history.messages) < tokens

    async def _compact(self, turn: int, window: int, *, may_ask: bool) -> None:
        history = self._history
        count = history.foldable(int(window * KEPT_SHARE))
        older = history.to_fold(count)
        if not older:
            return
        listed = _listed(older)
        most = min(SUMMARY_CHARS, int(window * KEPT_SHARE * _CHARS_A_TOKEN / 2))
        asked = await self._asked(turn, older, window) if may_ask else ""
        summary = _within(asked or "\n".join(filter(None, (history.summary, listed))), most)
        history.fold(count, summary)
        self._recorder.record(
            Compacted(run=self._run_id, turn=turn, folded=count, summary=summary, asked=bool(asked))
        )

    async def _asked(self, turn: int, older: Sequence[tuple[int, Message]], window: int) -> str:
        """Return the model's own summary; empty where the limits or the provider allow none."""
        left = self._budget.calls_left()
        if left is not None and left < LEAST_CALLS:
            return ""
        room = int(window * FULL_SHARE * _CHARS_A_TOKEN * 0.8)
        told = "\n\n".join(f"[turn {turn}, {each.role}]\n{each.content}" for turn, each in older)
        before = f"Your summary of the turns before these:\n{self._history.summary}\n\n"
        question = self._history.turns[0][1].content[: room // 4]
        text = (before if self._history.summary else "") + _within(told, room // 2)
        try:
            completion = await self._calls.complete(
                self._root,
                [Message("system", ASK), Message("user", f"{question}\n\n# Older turns\n{text}")],
                role="root",
                turn=turn,
                summary=True,
            )
        except (ModelError, LimitReached):
            return ""
        return completion.text.strip()


def _listed(older: Sequence[tuple[int, Message]]) -> str:
    """Return turns in short: the beginning of each reply, and of what came out."""
    lines = []
    for turn, message in older:
        if message.role == "assistant":
            lines.append(f"Turn {turn}, you: {_short(message.content, _CODE_CHARS)}")
        else:
            lines.append(f"It gave: {_short(message.content, _OUTPUT_CHARS)}")
    return "\n".join(lines)


def _short(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[:most] + " ..."


def _within(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[...]\n{text[-half:]}"
