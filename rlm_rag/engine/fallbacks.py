"""What stands in for a model whose provider cannot serve it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar


class Named(Protocol):
    @property
    def name(self) -> str: ...


Model = TypeVar("Model", bound=Named)

# A model that had to be replaced is not tried again for so long: each try costs several
# requests and their waits.
REST_SECONDS = 60.0


class Fallbacks(Generic[Model]):
    """The models to try, in order, for a call; those that failed lately come last."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.models: tuple[Model, ...] = ()
        self._clock = clock
        self._resting: dict[str, float] = {}

    def for_call(self, model: Model) -> Iterator[Model]:
        """Yield `model` and what may take its place, each once."""
        chain = {candidate.name: candidate for candidate in (model, *self.models)}
        now = self._clock()
        yield from sorted(chain.values(), key=lambda each: self._resting.get(each.name, 0.0) > now)

    def failed(self, model: Model) -> None:
        """Let a model rest."""
        self._resting[model.name] = self._clock() + REST_SECONDS

    def answered(self, model: Model) -> None:
        """Take a model for well again."""
        self._resting.pop(model.name, None)
