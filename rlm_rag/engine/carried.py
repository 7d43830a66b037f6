"""What one question of a conversation leaves to the next: what was said, and its variables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rlm_rag.errors import SessionError
from rlm_rag.sandbox.session import Said

SHOWN_EXCHANGES = 5
SHOWN_QUESTION_CHARS = 500
SHOWN_ANSWER_CHARS = 1_500
SHOWN_NAMES = 50


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question with its answer; `said` are the messages of its run, whole."""

    question: str
    answer: str
    stop_reason: str
    run: str
    said: tuple[Said, ...] = ()
    usage: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Carried:
    """`variables` is what a worker left, opaque and never read on the host; `names` are its
    variables with type and size. `contexts` are the corpora in their order, how many documents
    each has and its shape; `added` what blocks added."""

    exchanges: tuple[Exchange, ...] = ()
    variables: Mapping[str, Any] | None = None
    names: tuple[tuple[str, str, str], ...] = ()
    added: Mapping[str, str] = field(default_factory=dict)
    contexts: tuple[tuple[int, str], ...] = ()

    @property
    def said(self) -> tuple[Said, ...]:
        """Every message so far."""
        return tuple(each for exchange in self.exchanges for each in exchange.said)

    @property
    def block(self) -> int:
        """The number of the last block that left variables; the next ones go on from it."""
        return 0 if self.variables is None else int(self.variables["last_block"])

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON, for `from_json`."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Any) -> Carried:
        """Return what `to_json` returned.

        Raises:
            SessionError: it is nothing of the kind.
        """
        try:
            exchanges = tuple(
                Exchange(**{**each, "said": tuple(Said(**said) for said in each["said"])})
                for each in value["exchanges"]
            )
            carried = cls(
                exchanges=exchanges,
                variables=value["variables"],
                names=tuple((str(a), str(b), str(c)) for a, b, c in value["names"]),
                added={str(path): str(text) for path, text in value["added"].items()},
                contexts=tuple((int(count), str(shape)) for count, shape in value["contexts"]),
            )
            _ = carried.block
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise damaged(error) from error
        return carried


def damaged(error: Exception) -> SessionError:
    """Return what a kept conversation is, of which reading it failed."""
    return SessionError(
        f"the conversation is damaged: {type(error).__name__}: {error!s:.100}",
        hint="begin a new one",
    )


def before(carried: Carried | None) -> str:
    """Return the last questions and answers as the root model is shown them; empty for none."""
    if carried is None or not carried.exchanges:
        return ""
    number = max(0, len(carried.exchanges) - SHOWN_EXCHANGES)
    parts = [f"({number} earlier questions are left out.)"] if number else []
    for exchange in carried.exchanges[number:]:
        question = _cut(exchange.question, SHOWN_QUESTION_CHARS)
        answer = _cut(exchange.answer, SHOWN_ANSWER_CHARS)
        parts.append(f"Question {number}: {question}\nYour answer: {answer}")
        number += 1
    return "\n\n".join(parts)


def variables(carried: Carried, restored: Collection[str]) -> str:
    """Return what the REPL has from before, as the root model is told."""
    last = len(carried.exchanges) - 1
    lines = [
        f"In the REPL `history_0` to `history_{last}` have all that was said, a list of dicts."
    ]
    there = [row for row in carried.names if row[0] in restored]
    if there:
        shown = ", ".join(
            f"{name} ({kind}, {size})" if size else f"{name} ({kind})"
            for name, kind, size in there[-SHOWN_NAMES:]
        )
        lines.append(f"Your variables are still there: {shown}.")
    lost = [name for name, _, _ in carried.names if name not in restored]
    if lost:
        lines.append(f"These could not be kept: {', '.join(lost[-SHOWN_NAMES:])}.")
    return "\n".join(lines)


def described(contexts: Sequence[tuple[int, str]]) -> str:
    """Return how several corpora lie in the REPL; empty for one."""
    if len(contexts) < 2:
        return ""
    each = ", ".join(f"`context_{n}` ({count:,})" for n, (count, _) in enumerate(contexts))
    return f"`context` holds the documents of {each}; search and grep span them all."


def _cut(text: str, most: int) -> str:
    return (
        text if len(text) <= most else f"{text[:most]} [... {len(text) - most:,} more characters]"
    )


@dataclass(frozen=True, slots=True)
class Left:
    """What the driver of a run leaves: its messages, and the REPL's variables where there was one.

    `said` have the turn, the role and the content of each.
    """

    said: Sequence[tuple[int, str, str]]
    variables: Mapping[str, Any] | None = None
    names: tuple[tuple[str, str, str], ...] = ()
