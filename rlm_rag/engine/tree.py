"""What a root RLM and all children below it share, and what each of them is set to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from rlm_rag.engine.budget import Budget
from rlm_rag.engine.calls import PricedModel
from rlm_rag.engine.carried import Carried
from rlm_rag.engine.citations import CitationCheck
from rlm_rag.engine.coverage import Coverage
from rlm_rag.engine.form import Form
from rlm_rag.engine.hosted import HostSide
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.lineup import Lineup
from rlm_rag.engine.live import ReplyText
from rlm_rag.engine.past import Past
from rlm_rag.engine.slots import Places
from rlm_rag.sandbox.confine.view import WorkerLimits
from rlm_rag.sandbox.opening import Isolation
from rlm_rag.trace.recorder import Recorder

if TYPE_CHECKING:
    from rlm_rag.engine.options import RunOptions
    from rlm_rag.engine.pool import Share
    from rlm_rag.engine.subcalls import LeafReply
    from rlm_rag.engine.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """One budget, one trace, one past, one sandbox layer for all RLMs of a run.

    `layer` is None where no code runs. `profile` names the prompts, `auto` those for each root
    model; `system_prompt` takes their place. `options` are what it was started with, and `commit`
    what its corpus is of, for its trace. `on_text` is told replies of root models as they come.
    `elsewhere` is where the children of a batch run, None for here.
    """

    budget: Budget
    limits: Limits
    recorder: Recorder
    coverage: Coverage
    layer: Isolation | None
    worker_limits: WorkerLimits
    profile: str
    system_prompt: str | None
    lineup: Lineup
    slots: Places
    past: Past
    host: HostSide
    citations: CitationCheck
    options: Mapping[str, Any]
    commit: str | None = None
    on_text: Callable[[ReplyText], None] | None = None
    elsewhere: Elsewhere | None = None


@dataclass(frozen=True, slots=True)
class Parent:
    """The RLM that started a child, and from which of its calls."""

    run_id: str
    block: int
    seq: int
    item: int | None
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What one RLM is to answer, and by which root model; the run's root has depth 0.

    `images` are data URLs that its root model is shown with the question, `form` is what its
    answer must be like, `carried` the conversation that it goes on with. `is_followed` says that
    another strategy takes over where it comes to no answer.
    """

    run_id: str
    question: str
    root: PricedModel
    depth: int = 0
    images: tuple[str, ...] = ()
    parent: Parent | None = None
    form: Form | None = None
    carried: Carried | None = None
    is_followed: bool = False


class Elsewhere(Protocol):
    """Where else than in this process children can run."""

    async def run(self, made: Callable[[], Assignment], tree: Tree, view: View) -> LeafReply:
        """Run a child of `tree` over the documents of `view`, recorded and counted as one here.

        `made` gives its assignment, a new one each time that it has to be begun again.
        """
        ...


@dataclass(frozen=True, slots=True)
class Spread:
    """What a run has whose children run elsewhere: its limits are kept where all can ask."""

    share: Share
    slots: Places
    elsewhere: Elsewhere


class Spreading(Protocol):
    """What can have the children of runs run elsewhere."""

    def spread(self, options: RunOptions) -> AbstractAsyncContextManager[Spread]:
        """Give a run what its children run by, which ends with the body."""
        ...
