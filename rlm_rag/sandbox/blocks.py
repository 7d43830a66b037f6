"""What a session and its user hand each other: calls and replies, blocks and their results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ServiceCall:
    """A call of model code for a service of the host; nothing in it is to be trusted."""

    call: int
    block: int
    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ServiceReply:
    """A service's value, as JSON, and a note that the worker prints to the block's stderr."""

    value: Any
    note: str | None = None


class ServiceError(Exception):
    """Raised by `serve`: the call is answered with an error, and the block goes on.

    `kind` is a stable word such as `budget` or `bad_argument`; `message` says what to do.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


Serve = Callable[[ServiceCall], Awaitable[ServiceReply]]


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """What a worker is told before its first block (the `init` frame).

    `shape` is how `context` appears (`documents`, `text`, `texts`, `mapping`); `services` and
    `tools` are the names the host serves; `info` is what `capabilities()` shows. `numbers` are
    those of the corpus's documents that `context` has, None for all; `added` are more of them,
    by path, as they are when a worker starts; `task` is bound where it is given. `waiting`, which
    the host keeps to itself, are the services that may wait for somebody else, as `tools` may:
    the time for which they say so (`calls.uncounted`) is not the block's. `contexts` are the
    corpora of a conversation in their order, how many documents each has and its shape.
    """

    shape: str = "documents"
    services: tuple[str, ...] = ()
    waiting: Set[str] = frozenset()
    tools: tuple[str, ...] = ()
    info: Mapping[str, Any] = field(default_factory=dict)
    await_seconds: float = 600
    numbers: Sequence[int] | None = None
    added: Mapping[str, str] = field(default_factory=dict)
    task: str | None = None
    contexts: Sequence[tuple[int, str]] = ()


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the record that a REPL has as `history`: of which question, in which turn."""

    question: int
    turn: int
    role: str
    content: str


@dataclass(frozen=True, slots=True)
class AnswerState:
    """The `answer` of a worker after a block."""

    content: str
    ready: bool


@dataclass(frozen=True, slots=True)
class BlockError:
    """Why a block ended early: an exception's name, `Timeout` or `WorkerLost`."""

    type: str
    message: str
    traceback: str


@dataclass(frozen=True, slots=True)
class BlockResult:
    """What one block did.

    `seconds` is the host's wall time of the block, of which `waited_seconds` were spent waiting
    for somebody else and are not the block's; `variables` are (name, type, size as text);
    `stdout_cut` and `stderr_cut` count characters left out. `restarted` says that the worker was
    replaced during the block or just before it: the variables are again as they were after block
    `restored_block`, those apart that `lost` names. No text has lone surrogates, nor an error
    control characters; other texts may have these: they are data, to be cleaned where shown.
    `memory` has `answers` and `plan` in brief (name, text) where they hold something.
    """

    block: int
    stdout: str = ""
    stderr: str = ""
    value: str | None = None
    error: BlockError | None = None
    answer: AnswerState | None = None
    overwritten: tuple[str, ...] = ()
    variables: tuple[tuple[str, str, str], ...] = ()
    seconds: float = 0.0
    waited_seconds: float = 0.0
    stdout_cut: int = 0
    stderr_cut: int = 0
    restarted: bool = False
    restored_block: int = 0
    lost: tuple[str, ...] = ()
    memory: tuple[tuple[str, str], ...] = ()
