"""A model that is not there: a run only repeated from its trace, or a REPL without one."""

from __future__ import annotations

from rlm_rag.errors import ModelRequestError
from rlm_rag.models.base import Completion, ModelRequest


class AbsentModel:
    """Bears a model's name and answers nothing; `why` is what its error says."""

    def __init__(self, name: str, why: str) -> None:
        self._name = name
        self._why = why

    @property
    def name(self) -> str:
        """The name of the model that it stands for."""
        return self._name

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer nothing.

        Raises:
            ModelRequestError: always.
        """
        raise ModelRequestError(self._why)
