"""The one method in front of every provider, and the values that cross it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant"]
FinishReason = Literal["stop", "length", "content_filter", "other"]


@dataclass(frozen=True, slots=True)
class Message:
    """`images` are data URLs (`data:image/png;base64,...`), shown after the text."""

    role: Role
    content: str
    images: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One chat request. `max_output_tokens` None leaves the provider's own limit.

    `on_text` is told the reply's text as it comes, by a model that can; in an attempt that
    fails, a part of it.
    A reply ends before any of the texts in `stop`. The whole of it is to be JSON of `schema`,
    by a provider that can hold it to one.
    """

    messages: tuple[Message, ...]
    max_output_tokens: int | None = None
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    timeout_seconds: float = 300.0
    extra: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, Any] | None = None
    on_text: Callable[[str], None] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money of one or more calls. `usd` is None where a price is not known.

    `calls` counts requests sent, `cached_calls` those answered without sending one, which
    would have cost `saved_usd` (0 where the price is not known).
    """

    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    usd: float | None = 0.0
    cached_calls: int = 0
    saved_usd: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            usd=usd,
            cached_calls=self.cached_calls + other.cached_calls,
            saved_usd=self.saved_usd + other.saved_usd,
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """A provider's reply. `usage` is the provider's own figures where it sent them."""

    text: str
    usage: Usage
    model: str
    finish_reason: FinishReason = "stop"


class LanguageModel(Protocol):
    """A named model of one provider."""

    @property
    def name(self) -> str:
        """The model's name as the user spelled it."""
        ...

    async def complete(self, request: ModelRequest) -> Completion:
        """Send one request, once (retries are the caller's).

        Raises:
            ModelError: one of its subclasses, with the provider's message, never a key.
        """
        ...
