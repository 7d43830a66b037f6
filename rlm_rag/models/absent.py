"""A model that is not there: what is only repeated from a trace asks nobody."""

from __future__ import annotations

from rlm_rag.errors import ModelRequestError
from rlm_rag.models.base import Completion, ModelRequest


class AbsentModel:
    """Bears a model's name and answers nothing."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """The name of the model that it stands for."""
        return self._name

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer nothing.

        Raises:
            ModelRequestError: always.
        """
        raise ModelRequestError(
            f"model {self._name!r} is not asked here: the run is only repeated from its trace"
        )
