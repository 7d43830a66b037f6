"""The conversation with the root model: what it is told first, and after each turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rlm_rag.engine.budget import Budget
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.looks import Look
from rlm_rag.models.base import Message
from rlm_rag.models.tokens import count_message_tokens
from rlm_rag.sandbox.session import BlockError, BlockResult

QUESTION_HEADING = "# Question"
CORPUS_HEADING = "# Corpus"
BEFORE_HEADING = "# Earlier in this conversation"
SUMMARY_HEADING = "# Your turns so far, in summary"
SUMMARY_NOTE = (
    "(In full they are in the REPL as `history`, a list of dicts with turn, role and content; a "
    "variable of yours by that name is now `own_history`.)"
)
# A longer message is cut, and stands in the traceback as far as that goes.
MAX_MESSAGE_CHARS = 500


@dataclass(frozen=True, slots=True)
class RanBlock:
    """A block that ran, with what it gave back; `code` as the model wrote it.

    `looks` are the look-ups by words that it made.
    """

    number: int
    code: str
    result: BlockResult
    looks: tuple[Look, ...] = ()

    @property
    def shown(self) -> str:
        """What it printed, and the value of its last expression."""
        return self.result.stdout + (self.result.value or "")

    @property
    def answer(self) -> str | None:
        """The answer that it set and called ready, None where there is none."""
        state = self.result.answer
        return None if state is None or not state.ready else state.content

    @property
    def in_vain(self) -> tuple[Look, ...]:
        """The looks that found nothing."""
        return tuple(look for look in self.looks if not look.found)


class History:
    """The messages of one run, roles alternating; `take_new` gives those since the last call.

    `before` is what a conversation said earlier, and stands ahead of the question. Older turns
    can be folded into a summary, and what the model is told in one turn cut to `told_chars`; the
    `record` has every message whole.
    """

    def __init__(
        self,
        *,
        system: str,
        question: str,
        figures: str,
        status: str,
        images: tuple[str, ...] = (),
        before: str = "",
    ) -> None:
        first = f"{QUESTION_HEADING}\n{question}\n\n{CORPUS_HEADING}\n{figures}\n\n{status}"
        if before:
            first = f"{BEFORE_HEADING}\n{before}\n\n{first}"
        self._messages = [Message("system", system), Message("user", first, images)]
        self._taken = 0
        self._folded = 0
        self._summary = ""
        self.told_chars: int | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the root model is sent."""
        system, first, *rest = self._messages
        if self._folded:
            rest = rest[self._folded :]
            told = f"{SUMMARY_HEADING}\n{self._summary}\n\n{SUMMARY_NOTE}"
            first = replace(first, content=f"{first.content}\n\n{told}")
        return (system, first, *map(self._cut, rest))

    @property
    def folded(self) -> int:
        """How many of the oldest replies and outputs a summary stands for."""
        return self._folded

    @property
    def turns(self) -> Sequence[tuple[int, Message]]:
        """Every message but the system prompt, whole, with its turn."""
        turn, found = 1, []
        for message in self._messages[1:]:
            found.append((turn, message))
            turn += message.role == "assistant"
        return found

    def foldable(self, keep_tokens: int) -> int:
        """Return how many messages to fold so that those after them have `keep_tokens` at most.

        The last reply and what it was told stay in any case; `folded` where no more can go.
        """
        rest = self._messages[2:]
        starts = [n for n, message in enumerate(rest) if message.role == "assistant"]
        chosen = self._folded
        for start in starts:
            if start <= self._folded:
                continue
            chosen = start
            if count_message_tokens(map(self._cut, rest[start:])) <= keep_tokens:
                break
        return chosen

    def to_fold(self, count: int) -> Sequence[tuple[int, Message]]:
        """Return those of the first `count` replies and outputs that no summary stands for yet."""
        return self.turns[1 + self._folded : 1 + count]

    @property
    def summary(self) -> str:
        """What stands for the turns that were folded; empty for none."""
        return self._summary

    def fold(self, count: int, summary: str) -> None:
        """Put `summary` in the place of the first `count` replies and outputs."""
        self._folded, self._summary = count, summary

    def _cut(self, message: Message) -> Message:
        most, text = self.told_chars, message.content
        if most is None or len(text) <= most:
            return message
        half = most // 2
        left_out = f"[... {len(text) - 2 * half:,} characters left out ...]"
        return replace(message, content=f"{text[:half]}\n{left_out}\n{text[-half:]}")

    def replied(self, text: str) -> None:
        """Add the root model's reply; an empty one is shown as such, since servers refuse ''."""
        self._messages.append(Message("assistant", text if text.strip() else "(empty reply)"))

    def reword(self, text: str) -> None:
        """Put a text in the place of the newest reply, which nothing was told of yet."""
        self._messages[-1] = Message("assistant", text)

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


def feedback(
    blocks: Sequence[RanBlock], notes: Sequence[str], status: str, memory: str = ""
) -> str:
    """Return what the root model is told after a turn: outputs, what did not run, what is left.

    `memory` is what it keeps in `answers` and `plan`, in brief.
    """
    parts = [_shown(block, many=len(blocks) > 1) for block in blocks]
    parts.extend(f"Note: {note}" for note in notes)
    parts.extend(filter(None, (memory, status)))
    return "\n\n".join(parts)


def status_line(turn: int, limits: Limits, budget: Budget) -> str:
    """Return the turn and what is left of the limits, as the root model sees it."""
    left = [
        f"{amount:{form}} {unit}"
        for amount, form, unit in (
            (budget.calls_left(), ",", "calls"),
            (budget.tokens_left(), ",", "tokens"),
            (budget.usd_left(), ".4f", "dollars"),
            (budget.seconds_left(), ".0f", "seconds"),
        )
        if amount is not None
    ]
    rest = f" Left: {', '.join(left)}." if left else ""
    if turn >= limits.iterations:
        return f"This is turn {turn} of {limits.iterations}, the last: answer in it.{rest}"
    return f"This is turn {turn} of {limits.iterations}.{rest}"


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
