"""What providers refused for good: nothing more is sent for it where it would be refused again."""

from __future__ import annotations

from dataclasses import dataclass

from rlm_rag.errors import ModelError, ModelKeyError, ModelNotFoundError

FOR_GOOD = (ModelKeyError, ModelNotFoundError)
"""Errors that each prompt to the model would meet, and no other: a policy, a length or a parameter
may fit the next one."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The calls of one block of a run, and the children that it starts."""

    run_id: str
    block: int


class Refusals:
    """The key or the model's name, as a provider refused it, by batch and model.

    They hold for every prompt of a batch, and for no longer: the next block asks once more, since
    a key can be mended and a server can load another model.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[Batch, str], ModelError] = {}

    def note(self, batch: Batch | None, model: str, error: Exception) -> None:
        """Remember an error, if it is one that is for good."""
        if batch is not None and isinstance(error, FOR_GOOD):
            self._found.setdefault((batch, model), error)

    def check(self, batch: Batch | None, model: str) -> None:
        """Return where the model may be asked for the batch.

        Raises:
            ModelKeyError, ModelNotFoundError: what an earlier call of the batch met.
        """
        error = None if batch is None else self._found.get((batch, model))
        if error is not None:
            raise type(error)(
                f"not sent: {error.message}",
                hint=error.hint,
                provider_message=error.provider_message,
            )
