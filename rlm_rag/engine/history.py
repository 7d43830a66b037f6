"""The conversation with the root model: what it is told first, and after each turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rlm_rag.models.base import Message
from rlm_rag.sandbox.session import BlockError, BlockResult

QUESTION_HEADING = "# Question"
CORPUS_HEADING = "# Corpus"
# A longer message is cut, and stands in the traceback as far as that goes.
MAX_MESSAGE_CHARS = 500


@dataclass(frozen=True, slots=True)
class RanBlock:
    """A block that ran, with what it gave back; `code` as the model wrote it."""

    number: int
    code: str
    result: BlockResult


class History:
    """The messages of one run, roles alternating; `take_new` gives those since the last call."""

    def __init__(
        self,
        *,
        system: str,
        question: str,
        figures: str,
        status: str,
        images: tuple[str, ...] = (),
    ) -> None:
        first = f"{QUESTION_HEADING}\n{question}\n\n{CORPUS_HEADING}\n{figures}\n\n{status}"
        self._messages = [Message("system", system), Message("user", first, images)]
        self._taken = 0

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(self._messages)

    def replied(self, text: str) -> None:
        """Add the root model's reply; an empty one is shown as such, since servers refuse ''."""
        self._messages.append(Message("assistant", text if text.strip() else "(empty reply)"))

    def told(self, text: str) -> None:
        self._messages.append(Message("user", text))

    def instruct(self, system: str) -> None:
        """Put another system prompt in the place of the first one."""
        self._messages[0] = Message("system", system)

    def take_new(self) -> list[Mapping[str, str]]:
        """Return the messages added since the last call, for the trace."""
        new = self._messages[self._taken :]
        self._taken = len(self._messages)
        return [{"role": message.role, "content": message.content} for message in new]

    def retell(self, messages: Sequence[Mapping[str, str]]) -> None:
        """Put what was said in an earlier stretch of the run in the place of the newest."""
        first = len(self._messages) - len(messages)
        for place, told in enumerate(messages, first):
            self._messages[place] = replace(self._messages[place], content=told["content"])


def feedback(blocks: Sequence[RanBlock], notes: Sequence[str], status: str) -> str:
    """Return what the root model is told after a turn: outputs, what did not run, what is left."""
    parts = [_shown(block, many=len(blocks) > 1) for block in blocks]
    parts.extend(f"Note: {note}" for note in notes)
    parts.append(status)
    return "\n\n".join(parts)


def _shown(block: RanBlock, *, many: bool) -> str:
    result = block.result
    title = f"Output of block {block.number}:" if many else "Output:"
    parts = [title]
    if result.stdout:
        parts.append(result.stdout.rstrip("\n"))
    if result.stderr:
        parts.append("stderr:\n" + result.stderr.rstrip("\n"))
    if result.value is not None:
        parts.append("=> " + result.value)
    if result.error is not None:
        parts.append(error_text(result.error))
    if len(parts) == 1:
        parts.append("(the block ran and printed nothing)")
    if result.restarted:
        parts.append(_restart_text(result))
    if result.overwritten:
        names = ", ".join(result.overwritten)
        parts.append(f"You overwrote {names}; restored. Use other names for your variables.")
    return "\n".join(parts)


def _restart_text(result: BlockResult) -> str:
    """What a new worker has of the old one's variables; its files are gone in any case."""
    text = "The REPL was restarted; files that blocks wrote are gone."
    if result.restored_block:
        text += f" Variables are as they were after block {result.restored_block}."
    if result.lost:
        text += f" These could not be kept: {', '.join(result.lost)}."
    return text


def error_text(error: BlockError) -> str:
    """The traceback, and what it leaves out: that the time was up, the worker gone, no way out."""
    traceback = error.traceback.rstrip("\n")
    told = error.message in traceback or len(error.message) > MAX_MESSAGE_CHARS
    if error.type in traceback and told:
        return traceback
    return f"{traceback}\n{error.type}: {error.message}".lstrip("\n")
