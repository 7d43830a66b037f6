"""What happened in a run, one frozen value an event; a trace file is a line of JSON for each.

Ids nest: every event carries the id of its run, a child's `RunStarted` names its parent run
and the call that started it, by block and sequence. What the host answered (replies, retrieval,
all else a block asked) is keyed by block and sequence, so that a run that is taken up again, or
replayed, is answered from the trace and a divergence noticed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Event:
    type: ClassVar[str] = "event"
    run: str


MAP_STRATEGY = "map"
"""What the start of a map over documents, which has no root model, names as its strategy."""


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """Written before anything else: all that a replay must find the same.

    A child whose node died goes on as another one: `instead_of` names the first, and what that
    and others in its place came to is not told again.

    `options`, the root's alone, are what the run was started with besides (`engine.options`);
    no key and no header is among them. `commit` is what the corpus was of, as far as that is known.
    """

    type: ClassVar[str] = "run"
    question: str
    corpus: Mapping[str, Any]
    model: str
    sub_model: str
    strategy: str
    limits: Mapping[str, Any]
    sandbox: str
    version: str
    prompts: str
    worker: str
    parent: str | None = None
    parent_block: int | None = None
    parent_call: int | None = None
    depth: int = 0
    parent_item: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    commit: str | None = None
    instead_of: str | None = None


@dataclass(frozen=True, slots=True)
class Resumed(Event):
    """The run was taken up again here, under these limits; what it had not ended is repeated."""

    type: ClassVar[str] = "resumed"
    limits: Mapping[str, Any]
    version: str


@dataclass(frozen=True, slots=True)
class TurnStarted(Event):
    """`messages` holds those added since the last turn, as role and content."""

    type: ClassVar[str] = "turn"
    turn: int
    messages: Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class SteppedDown(Event):
    """From `turn` on the root model has simpler prompts, of the version named."""

    type: ClassVar[str] = "prompts"
    turn: int
    prompts: str


@dataclass(frozen=True, slots=True)
class Compacted(Event):
    """From `turn` on a summary stands for the first `folded` replies and outputs of the run.

    `asked` says whether the root model wrote it.
    """

    type: ClassVar[str] = "compacted"
    turn: int
    folded: int
    summary: str
    asked: bool


@dataclass(frozen=True, slots=True)
class BlockStarted(Event):
    type: ClassVar[str] = "block"
    turn: int
    block: int
    code: str


@dataclass(frozen=True, slots=True)
class BlockOutput(Event):
    type: ClassVar[str] = "output"
    block: int
    stdout: str
    stderr: str
    value: str | None
    error: str | None
    seconds: float
    waited_seconds: float = 0.0
    restarted: bool = False


@dataclass(frozen=True, slots=True)
class CallSent(Event):
    """A request to a provider; `role` is `root` or `sub`, `seq` its order within the block.

    `item` is its place in the batch that `seq` asked for. Written before it is sent, with the
    `estimate` of what it may cost, which is all that is known where no reply follows. A root
    call's messages are those of its turn and not repeated; one for a `summary` of older turns
    has neither. `constrained` says that the provider was asked to hold the reply to the run's
    schema; where it refused, the same call follows without.
    """

    type: ClassVar[str] = "call"
    call: int
    role: str
    model: str
    block: int | None = None
    seq: int | None = None
    messages: Sequence[Mapping[str, str]] = ()
    item: int | None = None
    estimate: Mapping[str, Any] = field(default_factory=dict)
    summary: bool = False
    constrained: bool = False


@dataclass(frozen=True, slots=True)
class ReplyReceived(Event):
    """A provider's reply, or `error` where there was none. Synced to disk when written.

    `usage` is what the call cost in either case, all its requests together.
    """

    type: ClassVar[str] = "reply"
    call: int
    text: str
    model: str
    finish_reason: str
    usage: Mapping[str, Any]
    seconds: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Retrieved(Event):
    """`seen` are the lines of the corpus that the result shows: path, first, last of each."""

    type: ClassVar[str] = "retrieval"
    block: int
    seq: int
    name: str
    arguments: Mapping[str, Any]
    result: Any
    seconds: float
    error: str | None = None
    kind: str | None = None
    note: str | None = None
    seen: Sequence[Sequence[Any]] = ()


@dataclass(frozen=True, slots=True)
class Served(Event):
    """What the host answered to any other call of a block: its result, or an error of `kind`.

    `asked` is a digest of the arguments, `note` what the block was told beside the result.
    """

    type: ClassVar[str] = "served"
    block: int
    seq: int
    name: str
    asked: str
    result: Any
    error: str | None = None
    kind: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Delegated(Event):
    """Lines of the corpus were sent to a sub-model, and it replied."""

    type: ClassVar[str] = "delegated"
    path: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class TaskStarted(Event):
    """A block spawned a call of `function`; children of it name the same block and seq."""

    type: ClassVar[str] = "task"
    task: int
    block: int
    seq: int
    name: str
    function: str


@dataclass(frozen=True, slots=True)
class TaskTold(Event):
    """A block told a running task something for its next turn."""

    type: ClassVar[str] = "told"
    task: int
    block: int
    text: str


@dataclass(frozen=True, slots=True)
class TaskEnded(Event):
    """`status` is `done`, with the result as a block gets it, `failed` or `cancelled`."""

    type: ClassVar[str] = "task_end"
    task: int
    status: str
    result: Any
    usage: Mapping[str, Any]
    seconds: float


@dataclass(frozen=True, slots=True)
class LimitReached(Event):
    type: ClassVar[str] = "limit"
    name: str
    detail: str


@dataclass(frozen=True, slots=True)
class Answered(Event):
    """The last event of a run, whatever ended it; `cited` has digests of documents by path."""

    type: ClassVar[str] = "answer"
    text: str
    stop_reason: str
    citations: Sequence[Mapping[str, Any]] = ()
    cited: Mapping[str, str] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)
    coverage: Mapping[str, Any] = field(default_factory=dict)
    iterations: int = 0
    seconds: float = 0.0


EVENT_TYPES: Mapping[str, type[Event]] = {
    kind.type: kind
    for kind in (
        RunStarted,
        Resumed,
        TurnStarted,
        SteppedDown,
        Compacted,
        BlockStarted,
        BlockOutput,
        CallSent,
        ReplyReceived,
        Retrieved,
        Served,
        Delegated,
        TaskStarted,
        TaskTold,
        TaskEnded,
        LimitReached,
        Answered,
    )
}
