"""One call to a model, before it is known which serves it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from rlm_rag.engine.caller import Caller
from rlm_rag.models.base import Message
from rlm_rag.models.tokens import count_message_tokens

if TYPE_CHECKING:
    from rlm_rag.engine.calls import PricedModel

Role = Literal["root", "sub"]


@dataclass(frozen=True, slots=True)
class Asking:
    """One call as it was asked for, whichever model comes to serve it."""

    messages: tuple[Message, ...]
    prompt_tokens: int
    role: Role
    caller: Caller | None
    turn: int | None
    max_output_tokens: int | None
    final: bool
    summary: bool
    stop: tuple[str, ...]
    schema: Mapping[str, Any] | None

    @property
    def billed(self) -> tuple[Message, ...]:
        """What may be billed: some providers put the schema into the prompt."""
        if self.schema is None:
            return self.messages
        return (*self.messages, Message("system", json.dumps(self.schema)))

    @property
    def billed_tokens(self) -> int:
        """`prompt_tokens`, with those of the schema."""
        added = self.billed[len(self.messages) :]
        return self.prompt_tokens + (count_message_tokens(added) if added else 0)

    def to(self, model: PricedModel) -> Asking:
        """The call as a model takes it."""
        return self if model.schemas.offered else replace(self, schema=None)

    @property
    def place(self) -> tuple[int | None, int | None, int | None]:
        """The block that it was asked from, the order in it, the place in its batch."""
        caller = self.caller
        return (None, None, None) if caller is None else (caller.block, caller.seq, caller.item)
