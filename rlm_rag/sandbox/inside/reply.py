"""What the host's services return to a block."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from typing import Any


class Text(str):
    """A str that is shown as it is, not quoted, when it is a block's last value."""

    __slots__ = ()


NO_USAGE: Mapping[str, float] = {
    "calls": 0,
    "input_tokens": 0,
    "cached_tokens": 0,
    "output_tokens": 0,
    "reasoning_tokens": 0,
    "usd": 0.0,
    "cached_calls": 0,
    "saved_usd": 0.0,
}
"""What a call that was not sent has used; the host's frames leave out what is none."""


class Reply(Text):
    """A reply as a str: `ok`, `error`, `truncated`, `usage` and `model` say how it came about.

    The text of a failed one starts with `Error: `. `citations` are the places that a child's
    answer cites, each with the `status` that the host's check gave it. It may be awaited, and
    yields itself.
    """

    ok: bool
    error: str | None
    truncated: bool
    usage: Mapping[str, Any]
    model: str | None
    citations: Sequence[Mapping[str, Any]]

    def __new__(
        cls,
        text: str = "",
        *,
        ok: bool = True,
        error: str | None = None,
        truncated: bool = False,
        usage: Mapping[str, Any] | None = None,
        model: str | None = None,
        citations: Sequence[Mapping[str, Any]] = (),
    ) -> Reply:
        reply = super().__new__(cls, text)
        reply.ok = ok
        reply.error = error
        reply.truncated = truncated
        reply.usage = {**NO_USAGE, **(usage or {})}
        reply.model = model
        reply.citations = citations
        return reply

    @classmethod
    def failed(cls, message: str) -> Reply:
        """Return the reply of a call that failed, or was not made."""
        return cls(f"Error: {message}", ok=False, error=message)

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Reply:
        """Return the reply that a host's frame describes."""
        return cls(
            value["text"],
            ok=value["ok"],
            error=value["error"],
            truncated=value.get("truncated", False),
            usage=value.get("usage"),
            model=value.get("model", ""),
            citations=value.get("citations", ()),
        )

    def __await__(self) -> Generator[Any, None, Reply]:
        return itself(self)


class Replies(list):  # type: ignore[type-arg]
    """Replies aligned with their prompts; it may be awaited, and yields itself."""

    def __await__(self) -> Generator[Any, None, Replies]:
        return itself(self)


class ReplyMap(dict):  # type: ignore[type-arg]
    """Replies by path; it may be awaited, and yields itself."""

    def __await__(self) -> Generator[Any, None, ReplyMap]:
        return itself(self)


def itself(value: Any) -> Generator[Any, None, Any]:
    """Return an iterator that ends at once with `value`: what awaiting it gives."""
    return value
    yield
