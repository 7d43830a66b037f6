"""Other people's systems beside the strategies: asked the same samples, in the same run."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Protocol, runtime_checkable

from rlm_rag.corpus import Corpus
from rlm_rag.engine.limits import Limits
from rlm_rag.errors import UsageError
from rlm_rag.evals.config import SYSTEMS, Models
from rlm_rag.evals.record import Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemAnswer:
    """What a system answered, and what its model read and wrote for it.

    `stop_reason` is `answered`, `timeout`, or `errors` where it failed by itself: such answers
    are scored like any other, with whatever `text` there is.
    """

    text: str
    stop_reason: str = "answered"
    spent: Spent = field(default_factory=Spent)


@runtime_checkable
class System(Protocol):
    """What answers a question of a corpus in a way of its own, named like a strategy.

    It keeps to `limits.seconds` itself. An exception is an error of that sample.
    """

    async def answer(
        self, corpus: Corpus, question: str, *, models: Models, limits: Limits
    ) -> SystemAnswer: ...


def find_system(name: str) -> System:
    """Return what is installed under a name of the entry points `rlm_rag.systems`.

    Raises:
        UsageError: there is none, or it is no system.
    """
    for point in entry_points(group=SYSTEMS, name=name):
        try:
            made = point.load()()
        # What others installed may fail in any way.
        except Exception as error:
            raise UsageError(
                f"the installed system {name!r} cannot be loaded: {error}", hint=point.value
            ) from error
        if isinstance(made, System):
            return made
        raise UsageError(
            f"the installed system {name!r} is a {type(made).__name__}",
            hint="it must have answer: rlm_rag.evals.systems.System",
        )
    raise UsageError(f"no system is installed as {name!r}", hint=f"entry points {SYSTEMS}")
